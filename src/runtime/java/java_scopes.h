/* SPDX-License-Identifier: Apache-2.0 */
/* java_scopes: which methods are inlined at a place of compiled code. HotSpot says it at safepoints alone: elsewhere it is what the code
 * proves (docs/internals/java.md, "Inlined methods"). */
#pragma once
#include "runtime/java/java_descs.h"

/* `where`: a return address, or one byte behind the start of an instruction, from the start of the code. What is found is of the
 * nmethod's own method at least, unless `nr` is 0: there is no debug information. */
MUST_CHECK int java_scopes_find(const struct java_debug_info *info, uint32_t where, struct java_scopes *ret_scopes);
