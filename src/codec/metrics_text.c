// SPDX-License-Identifier: Apache-2.0
#include "codec/metrics_text.h"

#include <inttypes.h>

void metrics_head(struct buffer *buffer, const char *name, const char *type, const char *help)
{
	buffer_printf(buffer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_label(struct buffer *buffer, const char *before, const char *label, const char *value)
{
	buffer_printf(buffer, "%s%s=\"", before, label);
	for (; *value; value++)
		buffer_printf(buffer, *value == '\n' ? "\\n" : *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
	buffer_text(buffer, "\"");
}

void metrics_number(struct buffer *buffer, const char *name, const char *type, const char *help, uint64_t number)
{
	metrics_head(buffer, name, type, help);
	buffer_printf(buffer, "%s %" PRIu64 "\n", name, number);
}
