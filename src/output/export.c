// SPDX-License-Identifier: Apache-2.0
#include "output/export.h"

#include <errno.h>
#include <string.h>

#include "formats/formats.h"
#include "output/annotate.h"
#include "page/page_formats.h"
#include "show/text_formats.h"

#define X(id, name, suffixes, text) name,
static const char *const names[] = { EXPORT_FORMAT_LIST(X) };
#undef X
#define X(id, name, suffixes, text) suffixes,
static const char *const suffix_lists[] = { EXPORT_FORMAT_LIST(X) };
#undef X
#define X(id, name, suffixes, text) " " name
static const char all_names[] = EXPORT_FORMAT_LIST(X);
#undef X
#define X(id, name, suffixes, text) " " suffixes
static const char all_suffixes[] = EXPORT_FORMAT_LIST(X);
#undef X

typedef int (*write_fn)(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
static const write_fn writers[] = {
	[EXPORT_TEXT] = write_text,   [EXPORT_FOLDED] = write_folded, [EXPORT_JSON] = write_json,
	[EXPORT_PPROF] = write_pprof, [EXPORT_HTML] = write_html,     [EXPORT_TOP] = write_top,
	[EXPORT_JSONL] = write_jsonl, [EXPORT_SPEEDSCOPE] = write_speedscope, [EXPORT_CPUPROFILE] = write_cpuprofile,
	[EXPORT_PERF_SCRIPT] = write_perf_script, [EXPORT_FIREFOX] = write_firefox,
	[EXPORT_OTLP_JSON] = write_otlp_json, [EXPORT_OTLP_PROTOBUF] = write_otlp_protobuf,
	[EXPORT_OTLP_1_9] = write_otlp_1_9, [EXPORT_OTLP_1_8] = write_otlp_1_8,
	[EXPORT_SVG] = write_svg,
};

const char *export_format_name(enum export_format format)
{
	return names[format];
}

int export_format_by_name(const char *name, struct diag *diag, enum export_format *ret_format)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i])) {
			*ret_format = (enum export_format)i;
			return 0;
		}
	}
	return diag_errno(diag, EINVAL, "unknown format '%.64s'; there are:%s", name, all_names);
}

static bool ends_with(const char *path, const char *suffix, size_t suffix_size)
{
	size_t size = strlen(path);

	return size > suffix_size && !memcmp(path + size - suffix_size, suffix, suffix_size);
}

/* Returns the size of the longest suffix that matches, or 0. */
static size_t suffix_size(const char *path, const char *suffixes)
{
	size_t longest = 0;

	for (;;) {
		size_t size = strcspn(suffixes, " ");

		if (size > longest && ends_with(path, suffixes, size))
			longest = size;
		if (!suffixes[size])
			return longest;
		suffixes += size + 1;
	}
}

int export_format_by_path(const char *path, struct diag *diag, enum export_format *ret_format)
{
	size_t longest = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffix_lists); i++) {
		size_t size = suffix_size(path, suffix_lists[i]);

		if (size > longest) {
			longest = size;
			*ret_format = (enum export_format)i;
		}
	}
	if (longest)
		return 0;
	return diag_errno(diag, EINVAL, "no format matches the name '%.256s'; known suffixes:%s (or say --format)", path, all_suffixes);
}

bool export_format_has_histograms(enum export_format format)
{
	return format == EXPORT_TEXT || format == EXPORT_JSON || format == EXPORT_JSONL || format == EXPORT_HTML || format == EXPORT_TOP;
}

bool export_format_has_lines(enum export_format format)
{
	switch (format) {
	case EXPORT_TEXT:
	case EXPORT_FOLDED:
	case EXPORT_TOP:
	case EXPORT_SVG:
	case EXPORT_JSON: /* only with --lines: small by default */
	case EXPORT_JSONL:
		return false;
	default:
		return true;
	}
}

/* Does the format show widths or shares? Those are parts of a sum. */
static bool needs_sum(enum export_format format)
{
	return format != EXPORT_TEXT && format != EXPORT_FOLDED && format != EXPORT_JSON && format != EXPORT_JSONL;
}

/* The page with the source and instructions that options->source_lines asks for. */
static int write_annotated_page(const struct profile *profile, const struct export_options *options, struct buffer *buffer,
				struct diag *diag)
{
	CLEANUP(annotated_code_done) struct annotated_code code = { 0 };
	struct export_options with_code = *options;
	int err = annotate_hottest(profile, options->source_lines, diag, &code);

	with_code.code = &code;
	return err ? err : write_html(profile, &with_code, buffer);
}

int export_write(const struct profile *profile, enum export_format format, const struct export_options *options, struct buffer *buffer,
		 struct diag *diag)
{
	uint32_t nr_types, shown = profile_shown_value(profile);
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);
	size_t max = buffer->max;
	int err;

	if (needs_sum(format) && types[shown].fold != VALUE_SUM)
		return diag_errno(
		    diag, EINVAL,
		    "'%.60s' is not a sum, and the %s format shows parts of one: choose another value, or text, folded, json or jsonl",
		    profile_string_text(profile, types[shown].type), names[format]);
	err = format == EXPORT_HTML && options->source_lines ? write_annotated_page(profile, options, buffer, diag)
							     : writers[format](profile, options, buffer);
	if (!err)
		err = buffer->err;
	if (err == -EFBIG)
		return diag_errno(diag, EFBIG, "the %s report is larger than %zu bytes", names[format], max);
	if (err == -E2BIG)
		return diag_errno(diag, E2BIG,
				  "the %s format has an entry for each sample, and there are too many samples: choose another format",
				  names[format]);
	return err ? diag_errno(diag, -err, "no memory for the %s report", names[format]) : 0;
}
