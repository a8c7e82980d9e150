// SPDX-License-Identifier: Apache-2.0
/* Writes a self-contained page: the viewer (assets/, put together by tools/embed.py) with the profile as JSON in its middle. */
#include "page/assets/page.h"
#include "page/page_formats.h"
#include "page/view.h"

int write_html(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(view_done) struct view view = { 0 };
	struct json json = { .buffer = buffer, .in_html = true };
	int err = view_build(profile, options->threads, &view);

	if (err)
		return err;
	buffer_append(buffer, page_before_data, page_before_data_size);
	err = view_write(&view, profile, options->code, &json);
	if (err)
		return err;
	buffer_append(buffer, page_after_data, page_after_data_size);
	return 0;
}
