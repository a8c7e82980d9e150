// SPDX-License-Identifier: Apache-2.0
#include "page/labels_json.h"

#include <errno.h>

#include "base/interned.h"
#include "formats/label_json.h"

#define LIST_BYTES_MAX ((size_t)1 << 30)

struct writer {
	struct json *json;
	const struct profile *profile;
	const struct view *view;
	struct interned sets, labels; /* of the profile's number of a set, and of struct profile_label */
};

static void writer_done(struct writer *writer)
{
	interned_done(&writer->sets);
	interned_done(&writer->labels);
}

static int write_set(struct writer *writer, uint32_t set)
{
	uint32_t nr_labels;
	const struct profile_label *labels = profile_labels_at(writer->profile, set, &nr_labels);

	json_open(writer->json, '[');
	for (uint32_t i = 0; i < nr_labels; i++) {
		uint32_t number = interned_add(&writer->labels, &labels[i]);

		if (number == INTERNED_NONE)
			return -ENOMEM;
		json_u64(writer->json, number);
	}
	json_close(writer->json, ']');
	return 0;
}

static int write_all(struct writer *writer)
{
	struct json *json = writer->json;
	int err = 0;

	json_key(json, "labels");
	json_open(json, '{');
	json_key(json, "of_sample");
	json_open(json, '[');
	for (uint32_t i = 0; i < writer->view->nr_samples; i++) {
		uint32_t number = interned_add(&writer->sets, &writer->view->samples[i].labels);

		if (number == INTERNED_NONE)
			return -ENOMEM;
		json_u64(json, number);
	}
	json_close(json, ']');
	json_key(json, "sets");
	json_open(json, '[');
	for (uint32_t i = 0; i < writer->sets.nr && !err; i++)
		err = write_set(writer, *(uint32_t *)interned_at(&writer->sets, i));
	json_close(json, ']');
	json_key(json, "labels");
	json_open(json, '[');
	for (uint32_t i = 0; i < writer->labels.nr; i++)
		write_label(json, writer->profile, interned_at(&writer->labels, i));
	json_close(json, ']');
	json_close(json, '}');
	return err;
}

int write_labels(struct json *json, const struct view *view, const struct profile *profile)
{
	CLEANUP(writer_done)
	struct writer writer = {
		.json = json, .profile = profile, .view = view,
		.sets = INTERNED_INIT(uint32_t, sizeof(uint32_t), LIST_BYTES_MAX),
		.labels = INTERNED_INIT(struct profile_label, sizeof(struct profile_label), LIST_BYTES_MAX)
	};

	for (uint32_t i = 0; i < view->nr_samples; i++) {
		if (view->samples[i].labels != PROFILE_NO_LABELS)
			return write_all(&writer);
	}
	return 0;
}
