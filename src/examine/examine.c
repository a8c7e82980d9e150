// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/buffer.h"
#include "base/sized.h"
#include "examine/process_look.h"

#define MAX_REPORT_BYTES (1u << 26)

int sonde_examine_process(const struct sonde_examine_options *given)
{
	struct buffer report = BUFFER_INIT(MAX_REPORT_BYTES);
	struct process_look look = { 0 };
	struct sonde_examine_options options;
	struct diag diag = { 0 };
	int err = sized_options(&options, sizeof(options), given, &diag);

	if (!err && (!options.tgid || !options.text))
		err = -EINVAL;
	if (!err)
		err = process_look_take(&look, options.tgid, options.stacks_ns, &diag);
	if (!err && options.json)
		process_json(&look, &report);
	else if (!err)
		process_report(&look, options.colour, &report);
	if (!err)
		err = report.err ? report.err : options.text(options.arg, report.data);
	process_look_done(&look);
	buffer_done(&report);
	return err;
}
