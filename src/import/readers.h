/* SPDX-License-Identifier: Apache-2.0 */
/* readers: one per format. Each reads all of importer->bytes into importer->profile. 0, -EBADMSG, -EFBIG or -ENOMEM. */
#pragma once
#include "importer/importer.h"

MUST_CHECK int read_pprof(struct importer *importer);
MUST_CHECK int read_folded(struct importer *importer);
MUST_CHECK int read_json(struct importer *importer);
MUST_CHECK int read_jsonl(struct importer *importer);
MUST_CHECK int read_perf_script(struct importer *importer);
MUST_CHECK int read_otlp(struct importer *importer);
MUST_CHECK int read_otlp_json(struct importer *importer);
/* Is it OTLP's JSON, if the outermost object has this key with a value that begins with `bracket`? */
bool otlp_json_is(const char *key, char bracket);
