// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_files.h"

#include <string.h>

#include "cli/output.h"

const char *profile_read_format_at(uint32_t i)
{
	const char *text;

	return sonde_read_format_name(i, &text);
}

const char *profile_write_format_at(uint32_t i)
{
	const char *suffixes, *text;

	return sonde_format_name(i, &suffixes, &text);
}

int profile_read(struct sonde_profile *profile, const char *path, const struct sonde_read_options *options)
{
	const char *warning;
	int err = sonde_profile_read(profile, path, options);

	while (!err && (warning = sonde_profile_warning(profile)))
		output_say("warning: %s", warning);
	return err;
}

int profile_write_all(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs, const struct sonde_write_options *options)
{
	int code = SONDE_EXIT_REPORT;

	for (uint32_t i = 0; i < outputs->nr; i++) {
		if (sonde_profile_write(profile, outputs->texts[i], options)) {
			int failure = profile_failed(verb, profile);

			code = code ? code : failure;
		}
	}
	return code;
}

int profile_failed(const struct verb *verb, const struct sonde_profile *profile)
{
	const char *text = sonde_profile_error(profile);

	if (sonde_profile_exit_code(profile) == SONDE_EXIT_USAGE)
		return output_usage(verb, text);
	output_say("%s", text);
	return SONDE_EXIT_FAILED;
}

bool profile_is_empty(const struct sonde_profile *profile)
{
	return !sonde_profile_nr_samples(profile) && !sonde_profile_nr_histograms(profile);
}

int profile_no_samples(const char *path)
{
	output_say("no samples: there are none in %s", strcmp(path, "-") ? path : "standard input");
	return SONDE_EXIT_NO_SAMPLES;
}
