// SPDX-License-Identifier: Apache-2.0
#include "send/series_labels.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/protobuf.h"

enum { LABEL_NAME = 1, LABEL_VALUE };

/* As Prometheus has them. */
static bool is_name(const char *text, size_t size)
{
	if (!size || size >= SERIES_NAME_BYTES || isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	}
	return true;
}

static struct series_label *find(struct series_labels *labels, const char *name, size_t size)
{
	for (uint32_t i = 0; i < labels->nr; i++) {
		if (strlen(labels->list[i].name) == size && !memcmp(labels->list[i].name, name, size))
			return &labels->list[i];
	}
	return labels->nr < SERIES_MAX_LABELS ? &labels->list[labels->nr++] : NULL;
}

static int set(struct series_labels *labels, const char *text, struct diag *diag)
{
	size_t size = strcspn(text, "=");
	const char *value = text[size] ? text + size + 1 : "";
	struct series_label *label;

	if (!is_name(text, size) || !*value || strlen(value) >= sizeof(label->value))
		return diag_errno(diag, EINVAL, "'%.80s' is no label: NAME=VALUE, a name of letters, digits and _", text);
	label = find(labels, text, size);
	if (!label)
		return diag_errno(diag, EINVAL, "more than %d labels", SERIES_MAX_LABELS);
	snprintf(label->name, sizeof(label->name), "%.*s", (int)size, text);
	snprintf(label->value, sizeof(label->value), "%s", value);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct series_label *)a)->name, ((const struct series_label *)b)->name);
}

int series_labels_init(struct series_labels *labels, const char *const *defaults, const char *const *texts, uint32_t nr,
		       struct diag *diag)
{
	int err = 0;

	labels->nr = 0;
	for (; !err && *defaults; defaults++)
		err = set(labels, *defaults, diag);
	for (uint32_t i = 0; !err && i < nr; i++)
		err = set(labels, texts[i], diag);
	qsort(labels->list, labels->nr, sizeof(*labels->list), by_name);
	return err;
}

void series_labels_write(const struct series_labels *labels, uint32_t field, struct buffer *buffer)
{
	for (uint32_t i = 0; i < labels->nr; i++) {
		const struct series_label *label = &labels->list[i];
		size_t opened = protobuf_open(buffer, field);

		protobuf_bytes(buffer, LABEL_NAME, label->name, strlen(label->name));
		protobuf_bytes(buffer, LABEL_VALUE, label->value, strlen(label->value));
		protobuf_close(buffer, opened);
	}
}
