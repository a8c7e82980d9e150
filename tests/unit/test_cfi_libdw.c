// SPDX-License-Identifier: Apache-2.0
/* The unwind tables of real files against libdw (tests/oracle/cfi_proof.h): small files at every address, large ones in windows spread over
 * them and at random addresses. bench/prove_cfi checks every address. Arguments: files that the build made. Other files that this machine
 * lacks are reported and skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <unistd.h>

#include "../oracle/cfi_proof.h"

#define MAX_PIECES 60000u

static char **made_files;
static int nr_made_files;

static void tell(void *arg, const char *text)
{
	print_error("  %s\n", text);
}

static void compare_file(const char *path)
{
	const struct cfi_proof_options options = { .max_pieces = MAX_PIECES, .nr_random = 10000, .max_told = 10, .tell = tell };
	struct cfi_proof proof;
	struct diag diag = { 0 };

	if (cfi_prove(path, &options, &diag, &proof))
		fail_msg("%s: %s", path, diag.text);
	print_message("%-60s %6u pcs, %7u rows, %4u rules: %u step, %u none, %u end, %u signal, %u unsupported, %u differ\n", path,
		      proof.nr_pcs, proof.nr_rows, proof.nr_rules, proof.nr_step, proof.nr_none, proof.nr_end, proof.nr_signal,
		      proof.nr_unsupported, proof.nr_differ);
	assert_int_equal(proof.nr_differ, 0);
	assert_int_equal(proof.nr_bad_fdes, 0);
	assert_true(proof.nr_pcs > 10000 && proof.nr_step);
	assert_true(proof.nr_unsupported <= proof.nr_pcs / 100);
	assert_true(proof.nr_refused <= proof.nr_pcs / 1000);
}

static void tables_agree_with_libdw(void **state)
{
	static const char *const patterns[] = {
		"/proc/self/exe",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/*-linux-gnu/libc.so.6",
		"/usr/lib/*-linux-gnu/libm.so.6",
		"/usr/lib/*-linux-gnu/libgcc_s.so.1",
		"/usr/lib/*-linux-gnu/libstdc++.so.6",
		"/usr/lib/*-linux-gnu/libcrypto.so.3",
		"/lib/ld-musl-*.so.1",
		"/usr/bin/python3.*[0-9]",
		"/usr/bin/node",
		"/usr/lib/jvm/*/lib/server/libjvm.so",
		"/usr/lib/*-linux-gnu/libLLVM-*.so.1",
		"/usr/lib/*-linux-gnu/libstd-*.so",
		"/usr/aarch64-linux-gnu/lib/libc.so.6",
	};

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		glob_t found;

		if (glob(patterns[i], 0, NULL, &found))
			print_message("SKIPPED, not on this machine: %s\n", patterns[i]);
		else
			compare_file(found.gl_pathv[0]);
		globfree(&found);
	}
}

/* Programs without .eh_frame_hdr, with .debug_frame only, and for arm64 with and without signed return addresses. */
static void made_files_agree_with_libdw(void **state)
{
	if (!nr_made_files)
		skip();
	for (int i = 0; i < nr_made_files; i++)
		compare_file(made_files[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_agree_with_libdw),
		cmocka_unit_test(made_files_agree_with_libdw),
	};

	made_files = argv + 1;
	nr_made_files = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
