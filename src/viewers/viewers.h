/* SPDX-License-Identifier: Apache-2.0 */
/* viewers: readers of the files of viewers, which are all JSON. Each reads all of importer->bytes into importer->profile. 0, -EBADMSG,
 * -EFBIG or -ENOMEM. Where a file has times as distances only, they become values. */
#pragma once
#include "importer/importer.h"

/* speedscope's file-format-schema.json: profiles of samples and of events. */
MUST_CHECK int read_speedscope(struct importer *importer);
/* V8's Profiler.Profile (Chromium's DevTools protocol; node --cpu-prof). */
MUST_CHECK int read_cpuprofile(struct importer *importer);
/* The Firefox Profiler's processed format, versions with tables for each thread and with shared ones (its src/types/profile.js). */
MUST_CHECK int read_firefox(struct importer *importer);
/* The page that sonde writes (page/html.c). */
#define PAGE_DATA_BEGINS "{\"format\":\"sonde-view\"" /* the profile in it */
MUST_CHECK int read_page(struct importer *importer);
