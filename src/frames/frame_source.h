/* SPDX-License-Identifier: Apache-2.0 */
/* frame_source: frames that an interpreter runs belong to a source file as native ones do to a mapped file. Their names alone say little
 * (<module>, __init__, main): where a frame is one text, the file's base name stands behind: "main (app.py)". */
#pragma once
#include "model/profile.h"

/* What stands behind the last slash, or all of a path that ends in one. */
const char *path_base(const char *path);
/* The path (a string) of the file that a frame belongs to: mapped, or the source of what an interpreter runs; "" where there is none. */
uint32_t frame_path(const struct profile *profile, const struct profile_location *location);
/* The first line of a function that an interpreter runs: in one file there may be several of a name. Of others, and where it is not known,
 * 0. */
uint32_t frame_start_line(const struct profile *profile, const struct profile_location *location);
/* What stands behind the name of a frame that an interpreter runs: the base name of its file; "" where none is known, and of others. */
const char *frame_source(const struct profile *profile, const struct profile_location *location);
/* By function: the first one whose file has the same base name. The caller frees the list; NULL: no memory. */
uint32_t *frame_sources(const struct profile *profile);
