/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The working memory of a runtime that has labels. */
#pragma once
#include "../abi/record.h"

#define LABEL_BUFFER_WORDS 34

struct label_walk {
	struct sonde_labels_record record;                /* sent with the first record.nr_labels of `labels` */
	struct sonde_label labels[SONDE_MAX_LABELS + 1];  /* the last one is for a further label, when there are too many */
	__u64 context[SONDE_CONTEXT_BYTES / 8];           /* the end of it: a context follows the last label */
	__u64 hashes[SONDE_MAX_LABELS + 1];               /* of each label */
	__u64 buffer[LABEL_BUFFER_WORDS];                 /* a bucket, or the list */
	__u64 buckets, old_buckets;
	__u64 overflow;                                   /* the bucket that continues the last one; 0: none */
	__u32 nr_buckets, nr_old_buckets;
	__u32 next_bucket;                                /* the old ones follow the others */
	__u32 pad;
};
