/* SPDX-License-Identifier: Apache-2.0 */
/* perl_tables: the layout that differs between versions of Perl, and the common layout that resolving frames needs. Byte offsets in the
 * named struct (gv.h, hv.h of 5.32 to 5.42); tools/perl_layout.c prints the rows and asserts the rest. */
#pragma once
#include <stdint.h>

#define PERL_XPVGV_NAME 32        /* a HEK */
#define PERL_XPVGV_STASH 40       /* the package, an HV */
#define PERL_GP_CV 16
#define PERL_GP_EGV 56            /* the glob that gave the name; NULL: the GV itself */
#define PERL_XPVHV_MAX 24
#define PERL_XPVHV_BYTES 32
#define PERL_AUX_NAME 0           /* a HEK; if the count is not 0, a pointer to an array of them */
#define PERL_AUX_NAME_COUNT 28
#define PERL_HEK_LEN 4
#define PERL_HEK_KEY 8            /* a NUL and a byte of flags follow it */
#define PERL_HEK_UTF8 1
#define PERL_SV_GV_HAS_GP 0x8000
#define PERL_SV_HV_HAS_AUX 0x2000000
#define PERL_FIRST_AUX_IN_BODY 36 /* struct xpvhv_aux follows the HV's body; before 5.36 it follows the last bucket of its array */

struct perl_row {
	uint16_t minor;
	uint16_t op_nextstate; /* 0: not known */
	uint16_t op, curcop, curstackinfo, top_env; /* in struct interpreter */
	uint16_t cop_seqmax, bytes; /* likewise; its size; 0: not known */
};

/* NULL: unknown version. */
const struct perl_row *perl_row_of(uint32_t minor);
