// SPDX-License-Identifier: Apache-2.0
#include "counter/pmu.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/dir.h"
#include "base/number.h"
#include "base/small_file.h"

static bool is_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) < PMU_NAME_BYTES;
}

/* Reads a file of the PMU. */
static int read_file(const char *pmu, const char *file, char *text, size_t room)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), PMU_DEVICES "/%s/%s", pmu, file) >= sizeof(path))
		return -ENAMETOOLONG;
	return small_file_read(AT_FDCWD, path, text, room);
}

static int read_type(const char *name, uint32_t *ret_type)
{
	char text[24];
	uint64_t type;
	int err = read_file(name, "type", text, sizeof(text));

	if (!err)
		err = number_u64(text, UINT32_MAX, &type);
	if (!err)
		*ret_type = (uint32_t)type;
	return err;
}

void pmu_done(struct pmu *pmu)
{
	cpus_done(&pmu->mask);
}

/* Some PMUs have none. */
static int read_mask(struct pmu *pmu)
{
	char text[4096];
	int err = read_file(pmu->name, "cpumask", text, sizeof(text));

	if (err || !*text)
		return err == -ENOENT ? 0 : err;
	return cpus_parse(text, &pmu->mask);
}

/* True for uncore_imc_3 and uncore_imc3 when `name` is uncore_imc. */
static bool is_unit_of(const char *name, const char *unit)
{
	size_t length = strlen(name);

	if (strncmp(name, unit, length))
		return false;
	unit += length;
	unit += *unit == '_';
	return *unit && strspn(unit, "0123456789") == strlen(unit);
}

static int compare_types(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The PMU of a kind of cores has a file that lists them. A machine with equal cores has one PMU; on x86 it has another mark. Returns 1: it
 * is of cores; 0; a negative errno. */
static int is_of_cores(const char *pmu)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), PMU_DEVICES "/%s/cpus", pmu) >= sizeof(path))
		return 0;
	return access(path, F_OK) == 0 ? 1 : errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

/* Finds all PMUs that are called `name` with a number after it; without a name, those of cores. */
static int find_units(const char *name, struct pmu *pmu)
{
	CLEANUP(closedirp) DIR *dir = opendir(PMU_DEVICES);
	const struct dirent *entry;
	int err = 0, wanted;

	if (!dir)
		return -errno;
	while (!err && (entry = dir_next(dir, &err))) {
		wanted = !is_name(entry->d_name) ? 0 : name ? is_unit_of(name, entry->d_name) : is_of_cores(entry->d_name);
		if (wanted < 0)
			return wanted;
		if (!wanted)
			continue;
		if (pmu->nr_types == PMU_MAX_UNITS)
			return -E2BIG;
		err = read_type(entry->d_name, &pmu->types[pmu->nr_types]);
		if (!err && (!pmu->nr_types++ || strcmp(entry->d_name, pmu->name) < 0))
			snprintf(pmu->name, sizeof(pmu->name), "%.*s", PMU_NAME_BYTES - 1, entry->d_name);
	}
	qsort(pmu->types, pmu->nr_types, sizeof(*pmu->types), compare_types); /* a directory has no order */
	return err ? err : pmu->nr_types ? 0 : -ENOENT;
}

static int take(struct pmu *pmu, struct pmu *ret_pmu)
{
	int of_cores = is_of_cores(pmu->name), err = of_cores < 0 ? of_cores : read_mask(pmu);

	if (!err) {
		pmu->is_of_cores = of_cores || pmu->types[0] == PERF_TYPE_RAW;
		*ret_pmu = *pmu;
		pmu->mask = (struct cpus){ 0 };
	}
	return err;
}

int pmu_find(const char *name, struct diag *diag, struct pmu *ret_pmu)
{
	CLEANUP(pmu_done) struct pmu pmu = { 0 };
	int err;

	if (!is_name(name))
		return diag_errno(diag, EINVAL, "'%.60s' is no name of a PMU", name);
	err = read_type(name, &pmu.types[0]);
	if (!err) {
		pmu.nr_types = 1;
		snprintf(pmu.name, sizeof(pmu.name), "%s", name);
	} else if (err == -ENOENT) {
		err = find_units(name, &pmu);
	}
	if (!err)
		err = take(&pmu, ret_pmu);
	if (err == -ENOENT)
		return diag_errno(diag, ENOENT, "this machine has no PMU '%s' (%s has those that there are)", name, PMU_DEVICES);
	return err ? diag_errno(diag, -err, "cannot read the PMU '%s' in %s: %s", name, PMU_DEVICES, strerror(-err)) : 0;
}

/* A machine with a PMU `cpu` has one kind. Without sysfs the kinds are not known. */
int pmu_find_kinds(struct diag *diag, struct pmu *ret_pmu)
{
	struct pmu pmu = { .is_of_cores = true };
	int err = access(PMU_DEVICES "/cpu", F_OK) ? find_units(NULL, &pmu) : -ENOENT;

	if (err == -ENOENT || (!err && pmu.nr_types < 2))
		pmu = (struct pmu){ 0 };
	else if (err)
		return diag_errno(diag, -err, "cannot read which PMUs the cores have, in %s: %s", PMU_DEVICES, strerror(-err));
	*ret_pmu = pmu;
	return 0;
}

int pmu_of_type(uint32_t type, struct diag *diag, struct pmu *ret_pmu)
{
	CLEANUP(closedirp) DIR *dir = opendir(PMU_DEVICES);
	CLEANUP(pmu_done) struct pmu pmu = { .nr_types = 1, .types = { type } };
	const struct dirent *entry;
	uint32_t found;
	int err = dir ? 0 : -errno;

	while (!err && (entry = dir_next(dir, &err))) {
		if (is_name(entry->d_name) && !read_type(entry->d_name, &found) && found == type) {
			snprintf(pmu.name, sizeof(pmu.name), "%.*s", PMU_NAME_BYTES - 1, entry->d_name);
			return take(&pmu, ret_pmu);
		}
	}
	if (err && err != -ENOENT)
		return diag_errno(diag, -err, "cannot read %s: %s", PMU_DEVICES, strerror(-err));
	return diag_errno(diag, ENOENT, "this machine has no PMU of the number %u", type);
}

/* --- terms ---------------------------------------------------------------------------------------------------------------------------- */

struct terms {
	const struct pmu *pmu;
	struct pmu_event *event;
	struct diag *diag;
	const char *all;       /* the text between the slashes */
	bool in_alias;
};

static int parse_value(const char *text, uint64_t *ret_value)
{
	const char *pos = text + 2;

	if (text[0] != '0' || (text[1] | ' ') != 'x')
		return number_u64(text, UINT64_MAX, ret_value);
	return number_hex(&pos, text + strlen(text), ret_value) || *pos ? -EINVAL : 0;
}

/* Spreads the low bits of `value` over the bits that the format names ("config1:0-7,32"). -EINVAL: not a format; -ERANGE: they do not
 * fit. */
static int spread(const char *format, uint64_t value, uint64_t config[3])
{
	unsigned int which = 0, first, last;
	int length = 0;

	if (strncmp(format, "config", 6))
		return -EINVAL;
	format += 6;
	if (*format >= '1' && *format <= '2')
		which = (unsigned int)(*format++ - '0');
	if (*format++ != ':')
		return -EINVAL;
	while (*format) {
		if (sscanf(format, "%2u%n", &first, &length) != 1)
			return -EINVAL;
		format += length;
		last = first;
		if (*format == '-' && sscanf(++format, "%2u%n", &last, &length) == 1)
			format += length;
		if (last < first || last > 63 || (*format && *format++ != ','))
			return -EINVAL;
		for (unsigned int bit = first; bit <= last; bit++, value >>= 1)
			config[which] = (config[which] & ~(1ULL << bit)) | (value & 1) << bit;
	}
	return value ? -ERANGE : 0;
}

static int put_field(struct terms *terms, const char *name, uint64_t value)
{
	static const char *const whole[] = { "config", "config1", "config2" };
	char file[PMU_NAME_BYTES + 16], format[128];
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		if (!strcmp(name, whole[i])) {
			terms->event->config[i] = value;
			return 0;
		}
	}
	if (!strcmp(name, "period")) {
		terms->event->period = value;
		return 0;
	}
	snprintf(file, sizeof(file), "format/%s", name);
	err = read_file(terms->pmu->name, file, format, sizeof(format));
	if (err)
		return err;
	err = spread(format, value, terms->event->config);
	if (err == -ERANGE)
		return diag_errno(terms->diag, EINVAL, "%s=%#llx does not fit: the PMU '%s' has %s for it", name, (unsigned long long)value,
				  terms->pmu->name, format);
	return err ? diag_errno(terms->diag, -err, "the PMU '%s' describes '%s' in an unknown way: %.60s", terms->pmu->name, name,
				format)
		   : 0;
}

static int parse_terms(struct terms *terms, const char *text);

/* Reads an alias's unit and scale (the worth of one count). */
static int read_unit(struct terms *terms, const char *alias)
{
	char file[PMU_NAME_BYTES + 24], text[64];
	int length = 0;

	snprintf(file, sizeof(file), "events/%s.unit", alias);
	if (!read_file(terms->pmu->name, file, text, sizeof(text)))
		snprintf(terms->event->unit, sizeof(terms->event->unit), "%.*s", (int)sizeof(terms->event->unit) - 1, text);
	snprintf(file, sizeof(file), "events/%s.scale", alias);
	if (!read_file(terms->pmu->name, file, text, sizeof(text)) &&
	    (sscanf(text, "%lf%n", &terms->event->unit_scale, &length) != 1 || text[length]))
		return diag_errno(terms->diag, EBADMSG, "the scale of '%s' of the PMU '%s' is no number: '%s'", alias, terms->pmu->name,
				  text);
	return 0;
}

/* A word alone is an alias, or a field that is 1. */
static int put_word(struct terms *terms, const char *word)
{
	struct terms inner = *terms;
	char file[PMU_NAME_BYTES + 16], text[512];
	int err;

	if (terms->in_alias) /* an alias cannot refer to another alias */
		return put_field(terms, word, 1);
	snprintf(file, sizeof(file), "events/%s", word);
	err = read_file(terms->pmu->name, file, text, sizeof(text));
	if (err == -ENOENT)
		return put_field(terms, word, 1);
	if (err)
		return err;
	inner.in_alias = true;
	err = parse_terms(&inner, text);
	return err ? err : read_unit(terms, word);
}

/* True when the terms contain "field=". */
static bool is_given(const char *all, const char *field)
{
	size_t length = strlen(field);

	for (; all; all = strchr(all, ',')) {
		all += *all == ',';
		if (!strncmp(all, field, length) && all[length] == '=')
			return true;
	}
	return false;
}

static int put_term(struct terms *terms, char *term)
{
	char *equals = strchr(term, '=');
	uint64_t value;
	int err;

	if (equals)
		*equals = '\0';
	if (!is_name(term))
		return diag_errno(terms->diag, EINVAL, "'%.60s' is no field of an event", term);
	if (equals && !strcmp(equals + 1, "?") && terms->in_alias)
		return is_given(terms->all, term)
			   ? 0
			   : diag_errno(terms->diag, EINVAL, "this event needs '%s': append %s=N", term, term);
	if (equals && parse_value(equals + 1, &value))
		return diag_errno(terms->diag, EINVAL, "'%.60s=%.60s': want a number", term, equals + 1);
	err = equals ? put_field(terms, term, value) : put_word(terms, term);
	if (err == -ENOENT)
		return diag_errno(terms->diag, ENOENT, "the PMU '%s' has no %s '%s'", terms->pmu->name, equals ? "field" : "event", term);
	return err ? diag_errno(terms->diag, -err, "cannot read '%s' of the PMU '%s': %s", term, terms->pmu->name, strerror(-err)) : 0;
}

static int parse_terms(struct terms *terms, const char *text)
{
	CLEANUP(freep) char *copy = strdup(text);
	char *rest = copy, *term;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (term = strsep(&rest, ",")))
		err = put_term(terms, term);
	return err;
}

int pmu_parse(const struct pmu *pmu, const char *text, struct diag *diag, struct pmu_event *ret_event)
{
	struct pmu_event event = { .unit_scale = 1 };
	struct terms terms = { .pmu = pmu, .event = &event, .diag = diag, .all = text };
	int err = parse_terms(&terms, text);

	if (!err)
		*ret_event = event;
	return err;
}
