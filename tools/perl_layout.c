// SPDX-License-Identifier: Apache-2.0
/* perl_layout: prints the row of src/runtime/perl/perl_tables.c for the perl whose headers (Debian's libperl-dev) it is compiled with:
 *   cc -O2 -w -D_GNU_SOURCE -Ibpf -I/usr/lib/x86_64-linux-gnu/perl/5.36/CORE tools/perl_layout.c -o /tmp/perl_layout && /tmp/perl_layout
 * Asserts what bpf/abi/perl.h and perl_tables.h assume to be the same everywhere. */
#include <EXTERN.h>
#include <perl.h>

#include <stddef.h>

#undef printf
#include <stdio.h>

#include "../bpf/abi/perl.h"
#include "../src/runtime/perl/perl_tables.h"

#define SAME(number, value) _Static_assert((number) == (value), #number)
#define AT(number, type, member) SAME(number, offsetof(type, member))

AT(SONDE_PERL_SI_CXSTACK, PERL_SI, si_cxstack);
AT(SONDE_PERL_SI_PREV, PERL_SI, si_prev);
AT(SONDE_PERL_SI_CXIX, PERL_SI, si_cxix);
AT(SONDE_PERL_SI_TYPE, PERL_SI, si_type);
SAME(SONDE_PERL_SI_IS_MAIN, PERLSI_MAIN);
SAME(SONDE_PERL_SI_IS_SORT, PERLSI_SORT);
SAME(SONDE_PERL_SI_IS_MULTICALL, PERLSI_MULTICALL);
SAME(SONDE_PERL_CX_BYTES, sizeof(PERL_CONTEXT));
AT(SONDE_PERL_CX_OLDCOP, PERL_CONTEXT, cx_u.cx_blk.blku_oldcop);
AT(SONDE_PERL_CX_RETOP, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.retop);
AT(SONDE_PERL_CX_RETOP, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_eval.retop);
AT(SONDE_PERL_CX_CV, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.cv);
AT(SONDE_PERL_CX_CV, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_format.cv);
SAME(SONDE_PERL_CX_TYPE_MASK, CXTYPEMASK);
SAME(SONDE_PERL_CX_NULL, CXt_NULL);
SAME(SONDE_PERL_CX_BLOCK, CXt_BLOCK);
SAME(SONDE_PERL_CX_SUB, CXt_SUB);
SAME(SONDE_PERL_CX_FORMAT, CXt_FORMAT);
SAME(SONDE_PERL_CX_EVAL, CXt_EVAL);
SAME(SONDE_PERL_CX_EVAL_TEXT, CXp_REAL);
SAME(SONDE_PERL_CX_EVAL_BLOCK, CXp_TRYBLOCK);
SAME(SONDE_PERL_CX_SUB_RE, CXp_SUB_RE);
SAME(SONDE_PERL_CX_SUB_FAKE, CXp_SUB_RE_FAKE);
AT(SONDE_PERL_COP_LINE, COP, cop_line);
#ifdef USE_ITHREADS
AT(SONDE_PERL_COP_FILE, COP, cop_file);
_Static_assert(SONDE_PERL_INTERPRETER_BYTES >= offsetof(struct interpreter, Icurstackinfo) + 8, "interpreter");
#else
AT(SONDE_PERL_COP_FILE, COP, cop_filegv);
#endif
AT(SONDE_PERL_SV_ANY, CV, sv_any);
AT(SONDE_PERL_SV_FLAGS, CV, sv_flags);
AT(SONDE_PERL_SV_U, GV, sv_u);
SAME(SONDE_PERL_SVT_GV, SVt_PVGV);
SAME(SONDE_PERL_SVT_HV, SVt_PVHV);
SAME(SONDE_PERL_SVT_CV, SVt_PVCV);
SAME(SONDE_PERL_SVT_FM, SVt_PVFM);
AT(SONDE_PERL_XPVCV_STASH, XPVCV, xcv_stash);
AT(SONDE_PERL_XPVCV_START, XPVCV, xcv_start_u);
AT(SONDE_PERL_XPVCV_GV, XPVCV, xcv_gv_u);
AT(SONDE_PERL_XPVCV_FLAGS, XPVCV, xcv_flags);
SAME(SONDE_PERL_CV_ANON, CVf_ANON);
SAME(SONDE_PERL_CV_ISXSUB, CVf_ISXSUB);
SAME(SONDE_PERL_CV_NAMED, CVf_NAMED);
SAME(SONDE_PERL_CV_LEXICAL, CVf_LEXICAL);
AT(0, JMPENV, je_prev);

AT(PERL_XPVGV_NAME, XPVGV, xiv_u.xivu_namehek);
AT(PERL_XPVGV_STASH, XPVGV, xnv_u.xgv_stash);
AT(PERL_GP_CV, GP, gp_cv);
AT(PERL_GP_EGV, GP, gp_egv);
AT(PERL_XPVHV_MAX, XPVHV, xhv_max);
AT(PERL_AUX_NAME, struct xpvhv_aux, xhv_name_u);
AT(PERL_AUX_NAME_COUNT, struct xpvhv_aux, xhv_name_count);
AT(PERL_HEK_LEN, HEK, hek_len);
AT(PERL_HEK_KEY, HEK, hek_key);
SAME(PERL_SV_GV_HAS_GP, SVpgv_GP);
SAME(PERL_SV_HV_HAS_AUX, SVf_OOK);
#if PERL_VERSION >= PERL_FIRST_AUX_IN_BODY
AT(PERL_XPVHV_BYTES, struct xpvhv_with_aux, xhv_aux);
#endif
SAME(PERL_HEK_UTF8, HVhek_UTF8);

int main(void)
{
#ifdef USE_ITHREADS
	printf("{ %d, %d, %zu, %zu, %zu, %zu, %zu, %zu },\n", PERL_VERSION, OP_NEXTSTATE, offsetof(struct interpreter, Iop),
	       offsetof(struct interpreter, Icurcop), offsetof(struct interpreter, Icurstackinfo), offsetof(struct interpreter, Itop_env),
	       offsetof(struct interpreter, Icop_seqmax), sizeof(struct interpreter));
#else
	printf("{ %d, %d }, without threads\n", PERL_VERSION, OP_NEXTSTATE);
#endif
	_Static_assert(OP_DBSTATE == OP_NEXTSTATE + 1, "OP_DBSTATE");
	return 0;
}
