// SPDX-License-Identifier: Apache-2.0
/* perf_dump FILE FORMAT [lines|times]: converts a recording of perf's to one of our formats; its account goes to stderr. FILE may be
 * "-". */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <sonde/sonde.h>

#include "output/export.h"
#include "model/account_text.h"
#include "replay/perf_profile.h"

static int dump(const struct perf_data_source *source, const struct perf_profile_options *options, const char *format_name)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer report = BUFFER_INIT((size_t)4 << 30), account = BUFFER_INIT(1u << 20);
	const struct export_options how = { .annotate = true };
	enum export_format format;
	struct diag diag = { 0 };
	int err = profile ? export_format_by_name(format_name, &diag, &format) : -ENOMEM;

	if (!err)
		err = perf_profile_read(source, options, profile, &diag);
	if (!err)
		err = export_write(profile, format, &how, &report, &diag);
	if (err) {
		fprintf(stderr, "perf_dump: %s\n", diag.text[0] ? diag.text : strerror(-err));
		return 1;
	}
	account_text(profile_account(profile), 0, &account);
	fprintf(stderr, "%s", account.data ? account.data : "");
	return fwrite(report.data, 1, report.size, stdout) == report.size ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct perf_profile_options options = { .lines = argc > 3 && !strcmp(argv[3], "lines"),
						.timestamps = argc > 3 && !strcmp(argv[3], "times") };
	CLEANUP(closep) int fd = -1;
	int code;

	if (sonde_is_worker(argc, argv, &code))
		return code;
	if (argc < 3)
		return 2;
	fd = strcmp(argv[1], "-") ? open(argv[1], O_RDONLY | O_CLOEXEC) : dup(0);
	if (fd < 0) {
		fprintf(stderr, "perf_dump: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	return dump(&(struct perf_data_source){ .fd = fd }, &options, argv[2]);
}
