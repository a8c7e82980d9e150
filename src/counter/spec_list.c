// SPDX-License-Identifier: Apache-2.0
#include "counter/spec.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/event.h"
#include "base/sized.h"

void spec_list_done(struct spec_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++)
		spec_done(&list->specs[i]);
	free(list->specs);
	*list = (struct spec_list){ 0 };
}

/* Takes ownership of the spec. */
static int add(struct spec_list *list, struct spec *spec, struct diag *diag)
{
	if (list->nr == SPEC_MAX_EVENTS)
		return diag_errno(diag, E2BIG, "more than %u events", SPEC_MAX_EVENTS);
	if (!array_grow(&list->specs, list->nr, &list->max, sizeof(*list->specs), 16, SPEC_MAX_EVENTS))
		return -ENOMEM;
	list->specs[list->nr++] = *spec;
	*spec = (struct spec){ 0 };
	return 0;
}

static int add_text(struct spec_list *list, const char *text, const char *modifiers, uint32_t group, struct diag *diag)
{
	CLEANUP(spec_done) struct spec spec = { 0 };
	int err = spec_parse(text, modifiers, diag, &spec);

	spec.event.group = group;
	return err ? err : add(list, &spec, diag);
}

/* The end of the name at `text`: a comma or brace outside of slashes. */
static const char *end_of_name(const char *text)
{
	bool in_terms = false;

	for (; *text && (in_terms || !strchr(",{}", *text)); text++)
		in_terms ^= *text == '/';
	return text;
}

/* Adds the names up to the brace or the end of the text. */
static int add_names(struct spec_list *list, const char *from, const char *end, uint32_t group, const char *modifiers, struct diag *diag)
{
	int err = 0;

	while (!err) {
		const char *stop = end_of_name(from);
		CLEANUP(freep) char *name = strndup(from, (size_t)(stop - from));

		err = name ? add_text(list, name, modifiers, group, diag) : -ENOMEM;
		if (stop >= end)
			break;
		from = stop + 1;
	}
	return err;
}

/* Parses {a,b}:u and moves *text behind it. */
static int add_group(struct spec_list *list, const char **text, struct diag *diag)
{
	const char *from = *text + 1, *end = from;
	char modifiers[16] = "";
	size_t length;

	while (*end && *end != '}') {
		end = end_of_name(end);
		if (*end == '{')
			return diag_errno(diag, EINVAL, "a group within a group: '%.60s'", *text);
		end += *end == ',';
	}
	if (!*end)
		return diag_errno(diag, EINVAL, "a brace is open: '%.60s'", *text);
	*text = end + 1;
	if (**text == ':') {
		length = strcspn(*text + 1, ",");
		if (!length || length >= sizeof(modifiers))
			return diag_errno(diag, EINVAL, "no such modifiers: '%.60s'", *text);
		memcpy(modifiers, *text + 1, length);
		*text += 1 + length;
	}
	return add_names(list, from, end, ++list->last_group, modifiers, diag);
}

static int add_text_list(struct spec_list *list, const char *text, struct diag *diag)
{
	int err = 0;

	while (!err) {
		const char *end = end_of_name(text);

		if (*text == '{') {
			err = add_group(list, &text, diag);
			end = text;
		} else {
			err = *end == '{' || *end == '}' ? diag_errno(diag, EINVAL, "a brace where none can be: '%.60s'", text)
							 : add_names(list, text, end, 0, "", diag);
		}
		if (err || !*end)
			return err;
		if (*end != ',')
			return diag_errno(diag, EINVAL, "want a comma before '%.60s'", end);
		text = end + 1;
	}
	return err;
}

static int add_events(struct spec_list *list, const struct sonde_event *events, uint32_t nr, struct diag *diag)
{
	size_t stride = nr ? events->size : 0; /* a caller built against another version has another size */
	uint32_t nr_groups = list->last_group; /* the groups before these have their numbers already */
	int err = 0;

	for (uint32_t i = 0; !err && i < nr; i++) {
		CLEANUP(spec_done) struct spec spec = { 0 };
		struct sonde_event event;
		size_t size;

		memcpy(&size, (const char *)events + i * stride, sizeof(size));
		if (size != stride)
			return diag_errno(diag, EINVAL, "event %u of the list has another size than the first", i);
		err = sized_copy(&event, sizeof(event), (const char *)events + i * stride);
		if (err)
			return diag_errno(diag, -err, "event %u of the list has an unknown size or unknown fields", i);
		event.group += event.group ? nr_groups : 0;
		if (event.group > list->last_group)
			list->last_group = event.group;
		err = spec_of(&event, diag, &spec);
		if (!err)
			err = add(list, &spec, diag);
	}
	return err;
}

static int add_kinds(struct spec_list *list, uint32_t kinds, struct diag *diag)
{
	static const uint32_t bits[] = {
		[EVENT_HARDWARE] = SONDE_EVENTS_HARDWARE, [EVENT_SOFTWARE] = SONDE_EVENTS_SOFTWARE, [EVENT_CACHE] = SONDE_EVENTS_CACHE
	};
	struct event event;
	int err = 0;

	if (kinds & ~(uint32_t)(SONDE_EVENTS_HARDWARE | SONDE_EVENTS_SOFTWARE | SONDE_EVENTS_CACHE))
		return diag_errno(diag, EINVAL, "no such kinds of events: %#x", kinds);
	for (size_t i = 0; !err && event_at(i, &event); i++) {
		if (kinds & bits[event.kind])
			err = add_text(list, event.name, "", 0, diag);
	}
	return err;
}

int spec_list_fill(struct spec_list *list, const struct sonde_counter_options *options, struct diag *diag)
{
	int err = options->names ? add_text_list(list, options->names, diag) : 0;

	if (!err)
		err = add_events(list, options->events, options->nr_events, diag);
	if (!err)
		err = add_kinds(list, options->kinds, diag);
	if (!err && !list->nr)
		return diag_errno(diag, ENODATA, "no events were asked for");
	for (uint32_t i = 0; !err && options->flags & SONDE_COUNTER_GROUP && i < list->nr; i++)
		list->specs[i].event.group = 1;
	return err ? err : spec_sum_kinds(list->specs, list->nr);
}
