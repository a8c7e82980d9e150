/* SPDX-License-Identifier: Apache-2.0 */
/* frame_source: an interpreted frame belongs to a source file, as a native one does to a mapped file. Its name alone says little (<module>,
 * __init__, main). So where a frame is a single text, the file's base name follows: "main (app.py)". */
#pragma once
#include "model/profile.h"

/* The part after the last slash, or the whole path if it ends in a slash. */
const char *path_base(const char *path);
/* The path (a string) of the file of a frame: the mapped file or, if interpreted, the source file; "" if there is none. */
uint32_t frame_path(const struct profile *profile, const struct profile_location *location);
/* The first line of an interpreted function, since a file may have several of one name. 0 if unknown, and for other frames. */
uint32_t frame_start_line(const struct profile *profile, const struct profile_location *location);
/* What follows the name of an interpreted frame: the base name of its file; "" if unknown, and for other frames. */
const char *frame_source(const struct profile *profile, const struct profile_location *location);
/* By function: the first function whose file has the same base name. The caller frees the list; NULL: no memory. */
uint32_t *frame_sources(const struct profile *profile);
