// SPDX-License-Identifier: Apache-2.0
#include "send/parca_push.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "codec/protobuf.h"
#include "send/grpc.h"

/* WriteRawRequest */
enum { REQUEST_SERIES = 2 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES };
enum { LABELS_LABELS = 1 };
enum { SAMPLE_PROFILE = 1 };

int parca_labels_init(struct series_labels *labels, const char *const *texts, uint32_t nr, struct diag *diag)
{
	char node[128];
	const char *const defaults[] = { "__name__=sonde", node, NULL };
	struct utsname names = { 0 };

	uname(&names);
	snprintf(node, sizeof(node), "node=%.64s", *names.nodename ? names.nodename : "unknown");
	return series_labels_init(labels, defaults, texts, nr, diag);
}

static int pack(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	size_t frame = grpc_open(body), series = protobuf_open(body, REQUEST_SERIES), part = protobuf_open(body, SERIES_LABELS);

	series_labels_write(settings, LABELS_LABELS, body);
	protobuf_close(body, part);
	part = protobuf_open(body, SERIES_SAMPLES);
	protobuf_bytes(body, SAMPLE_PROFILE, profile->bytes, profile->size); /* gzipped by itself */
	protobuf_close(body, part);
	protobuf_close(body, series);
	grpc_close(body, frame, false);
	return body->err;
}

const struct push_type parca_push = {
	.format = "pprof",
	.headers = (const char *const[]){ "content-type: application/grpc+proto", "te: trailers", "expect:", NULL },
	.is_http2 = true,
	.pack = pack,
	.judge = push_judge_grpc,
};
