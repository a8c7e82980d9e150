// SPDX-License-Identifier: Apache-2.0
#include "counter/spec.h"

#include <errno.h>
#include <string.h>

#include "base/event.h"
#include "base/tracefs.h"

#define FIRST_DYNAMIC_TYPE (PERF_TYPE_BREAKPOINT + 1) /* PMUs from here on get their numbers at boot */
#define EVENT_FLAGS \
	(SONDE_COUNTER_ENABLED | SONDE_COUNTER_ON_EXEC | SONDE_COUNTER_NO_INHERIT | SONDE_COUNTER_HYPERVISOR | SONDE_COUNTER_NO_USER | \
	 SONDE_COUNTER_NO_KERNEL | SONDE_COUNTER_NO_HOST | SONDE_COUNTER_NO_GUEST | SONDE_COUNTER_NO_IDLE | SONDE_COUNTER_PINNED | \
	 SONDE_COUNTER_EXCLUSIVE)

void spec_done(struct spec *spec)
{
	pmu_done(&spec->pmu);
}

/* u, k and h name what is counted and exclude the rest; G and H likewise. */
static int parse_modifiers(const char *text, uint64_t *flags)
{
	bool user = strchr(text, 'u'), kernel = strchr(text, 'k'), hypervisor = strchr(text, 'h'), guest = strchr(text, 'G'),
	     host = strchr(text, 'H');

	if (!*text || strspn(text, "ukhGHIDe") != strlen(text))
		return -EINVAL;
	if (user || kernel || hypervisor)
		*flags |= (user ? 0 : SONDE_COUNTER_NO_USER) | (kernel ? 0 : SONDE_COUNTER_NO_KERNEL) |
			  (hypervisor ? SONDE_COUNTER_HYPERVISOR : 0);
	if (guest != host)
		*flags |= guest ? SONDE_COUNTER_NO_HOST : SONDE_COUNTER_NO_GUEST;
	*flags |= (strchr(text, 'I') ? SONDE_COUNTER_NO_IDLE : 0) | (strchr(text, 'D') ? SONDE_COUNTER_PINNED : 0) |
		  (strchr(text, 'e') ? SONDE_COUNTER_EXCLUSIVE : 0);
	return 0;
}

static void describe(struct spec *spec, const struct event *event)
{
	snprintf(spec->json, sizeof(spec->json), "%s", event->json);
	if (event->is_clock)
		snprintf(spec->unit, sizeof(spec->unit), "ns");
}

/* Parses a name that all machines have in common. */
static int parse_common(const char *stem, struct spec *spec)
{
	struct event event;
	int err = event_parse(stem, NULL, &event);

	if (err)
		return err;
	spec->event.type = event.type;
	spec->event.config = event.config;
	describe(spec, &event);
	return 0;
}

static bool is_common_type(uint32_t type)
{
	return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE;
}

int spec_sum_kinds(struct spec *specs, uint32_t nr)
{
	struct diag reason = { 0 };
	struct pmu kinds = { 0 };
	bool is_known = false;
	int err = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct spec *spec = &specs[i];

		if (spec->err || spec->pmu.name[0] || !is_common_type(spec->event.type))
			continue;
		spec->pmu.is_of_cores = spec->event.config >> PERF_PMU_TYPE_SHIFT; /* the caller has put a PMU's number in */
		if (spec->pmu.is_of_cores)
			continue;
		if (!is_known)
			err = pmu_find_kinds(&reason, &kinds);
		is_known = true;
		if (err == -ENOMEM)
			return err;
		spec->err = err;
		spec->diag = reason;
		if (kinds.nr_types) {
			spec->pmu = kinds;
			spec->is_sum = true;
		}
	}
	return 0;
}

/* cpu_core/cycles/: an event that all processors have in common, on one kind of cores. False: not such an event. */
static bool is_common_on_pmu(const char *terms, const struct pmu *pmu, struct pmu_event *ret_found, uint32_t *ret_type)
{
	struct event event;

	if (!pmu->is_of_cores || event_parse(terms, NULL, &event) || !is_common_type(event.type) || strchr(terms, ':'))
		return false;
	*ret_found = (struct pmu_event){ .config = { event.config }, .unit_scale = 1 };
	*ret_type = event.type;
	if (strcmp(pmu->name, "cpu")) /* `cpu` is the only kind */
		ret_found->config[0] |= (uint64_t)pmu->types[0] << PERF_PMU_TYPE_SHIFT;
	return true;
}

/* Parses pmu/terms/. */
static int parse_on_pmu(char *stem, struct diag *diag, struct spec *spec)
{
	char *terms = strchr(stem, '/') + 1, *end = strrchr(terms, '/');
	struct diag reason = { 0 };
	struct pmu_event found;
	int err;

	if (!end || end[1])
		return diag_errno(diag, EINVAL, "'%.100s': write pmu/terms/, followed by modifiers", spec->event.name);
	terms[-1] = *end = '\0';
	err = pmu_find(stem, diag, &spec->pmu);
	if (err)
		return err;
	spec->event.type = spec->pmu.types[0];
	err = pmu_parse(&spec->pmu, terms, &reason, &found);
	if (err == -ENOENT && is_common_on_pmu(terms, &spec->pmu, &found, &spec->event.type)) {
		spec->pmu.types[0] = spec->event.type;
		err = 0;
	}
	if (err) {
		*diag = reason;
		return err;
	}
	spec->event.config = found.config[0];
	spec->event.config1 = found.config[1];
	spec->event.config2 = found.config[2];
	spec->event.period = found.period;
	spec->unit_scale = found.unit_scale;
	snprintf(spec->unit, sizeof(spec->unit), "%s", found.unit);
	return 0;
}

/* Parses subsystem:event. */
static int parse_tracepoint(char *stem, struct diag *diag, struct spec *spec)
{
	char *colon = strchr(stem, ':');

	*colon = '\0';
	spec->event.type = PERF_TYPE_TRACEPOINT;
	return tracefs_id(stem, colon + 1, diag, &spec->event.config);
}

static int no_such_event(const char *text, struct diag *diag)
{
	return diag_errno(diag, EINVAL,
			  "no such event: '%.100s' (perf's names: cycles, page-faults, LLC-load-misses, rNNN, pmu/terms/, "
			  "subsystem:tracepoint; :u or :k behind it)",
			  text);
}

/* The last colon begins modifiers, unless the text before it is a subsystem of tracepoints. */
static int parse_stem(char *stem, struct diag *diag, struct spec *spec)
{
	char *slash = strrchr(stem, '/'), *colon = strrchr(slash ? slash : stem, ':');
	const char *modifiers = colon ? colon + 1 : NULL;

	if (slash || (colon && strchr(stem, ':') != colon)) {
		if (colon)
			*colon = '\0';
		else if (!parse_modifiers(slash + 1, &spec->event.flags)) /* cpu/cycles/u: perf accepts this too */
			slash[1] = '\0';
		if (modifiers && parse_modifiers(modifiers, &spec->event.flags))
			return no_such_event(spec->event.name, diag);
		return slash ? parse_on_pmu(stem, diag, spec) : parse_tracepoint(stem, diag, spec);
	}
	if (colon) {
		*colon = '\0';
		if (!parse_common(stem, spec))
			return parse_modifiers(modifiers, &spec->event.flags) ? no_such_event(spec->event.name, diag) : 0;
		*colon = ':';
		return *stem == ':' || !*modifiers ? no_such_event(spec->event.name, diag) : parse_tracepoint(stem, diag, spec);
	}
	return parse_common(stem, spec) ? no_such_event(spec->event.name, diag) : 0;
}

/* An event that this machine does not have must not fail the whole set. Its error goes to the spec. */
static int forgive(int err, struct diag *diag, const struct diag *reason, struct spec *spec)
{
	if (err == -EINVAL || err == -ENOMEM) {
		if (diag && !diag->err)
			*diag = *reason;
		return err;
	}
	spec->err = err;
	spec->diag = *reason;
	if (err) /* only if no other reason is stored yet */
		diag_errno(&spec->diag, -err, "what '%s' is cannot be read: %s", spec->event.name, strerror(-err));
	return 0;
}

int spec_parse(const char *text, const char *modifiers, struct diag *diag, struct spec *ret_spec)
{
	CLEANUP(spec_done) struct spec spec = { .event.size = sizeof(struct sonde_event), .unit_scale = 1 };
	CLEANUP(freep) char *stem = strdup(text);
	struct diag reason = { 0 };
	int err;

	if (!stem)
		return -ENOMEM;
	if (!*text || (size_t)snprintf(spec.event.name, sizeof(spec.event.name), "%s%s%s", text, *modifiers ? ":" : "", modifiers) >=
			  sizeof(spec.event.name))
		return no_such_event(text, diag);
	err = parse_stem(stem, &reason, &spec);
	if (*modifiers && parse_modifiers(modifiers, &spec.event.flags))
		return no_such_event(spec.event.name, diag);
	err = forgive(err, diag, &reason, &spec);
	if (err)
		return err;
	if (!spec.pmu.nr_types) {
		spec.pmu.nr_types = 1;
		spec.pmu.types[0] = spec.event.type;
	}
	*ret_spec = spec;
	spec.pmu.mask = (struct cpus){ 0 };
	return 0;
}

/* Fills in the usual name of an event that is given by numbers. */
static void name_event(struct spec *spec)
{
	struct sonde_event *event = &spec->event;
	struct event known;

	for (size_t i = 0; event_at(i, &known); i++) {
		if (known.type != event->type || known.config != event->config)
			continue;
		describe(spec, &known);
		if (!event->name[0])
			snprintf(event->name, sizeof(event->name), "%s", known.name);
	}
	if (!event->name[0] && event->type == PERF_TYPE_RAW)
		snprintf(event->name, sizeof(event->name), "r%llx", (unsigned long long)event->config);
	else if (!event->name[0])
		snprintf(event->name, sizeof(event->name), "type %u config %#llx", event->type, (unsigned long long)event->config);
}

int spec_of(const struct sonde_event *event, struct diag *diag, struct spec *ret_spec)
{
	CLEANUP(spec_done) struct spec spec = { .event = *event, .unit_scale = 1 };
	struct diag reason = { 0 };
	int err;

	if (!memchr(event->name, '\0', sizeof(event->name)))
		return diag_errno(diag, EINVAL, "the name of an event does not end");
	if (event->flags & ~(uint64_t)EVENT_FLAGS || (event->period && event->freq_hz))
		return diag_errno(diag, EINVAL, "'%s': %s", event->name,
				  event->period && event->freq_hz ? "a period and a frequency exclude each other" : "unknown flags");
	name_event(&spec);
	err = event->type >= FIRST_DYNAMIC_TYPE ? pmu_of_type(event->type, &reason, &spec.pmu) : 0;
	err = forgive(err, diag, &reason, &spec);
	if (err)
		return err;
	if (!spec.pmu.nr_types) {
		spec.pmu.nr_types = 1;
		spec.pmu.types[0] = event->type;
	}
	*ret_spec = spec;
	spec.pmu.mask = (struct cpus){ 0 };
	return 0;
}
