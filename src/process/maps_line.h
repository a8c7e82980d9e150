/* SPDX-License-Identifier: Apache-2.0 */
/* maps_line: a line of /proc/PID/maps, "start-end perms offset device inode path" (proc_pid_maps(5)). */
#pragma once
#include <stdbool.h>

#include "process/mapping.h"

/* Fills addresses, offset, device, inode and path. The path points into `line`, whose line break and \012 escapes are undone. False: not
 * executable, or not such a line. */
bool maps_line_parse(char *line, struct mapping_event *ret_event);
