// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "symbolize/demangle.h"

static void names_become_readable(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "_ZN3foo3barEv", "foo::bar()" },
		{ "_ZN3foo3barEv@plt", "foo::bar()@plt" },
		{ "_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]" },
		{ "_ZN3foo3barEv.part.0", "foo::bar() [clone .part.0]" },
		{ "_ZN3foo3barEi.constprop.0.isra.0", "foo::bar(int) [clone .constprop.0] [clone .isra.0]" },
		{ "_ZN3foo3barEv.llvm.12345", "foo::bar() [clone .llvm.12345]" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZNK1AplERKS_", "A::operator+(A const&) const" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.99", "core::fmt::Formatter::pad" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.cold", "core::fmt::Formatter::pad [clone .cold]" },
		{ "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
		  "core::ptr::drop_in_place<alloc::string::String>" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "_RNvC6_123foo3bar.llvm.7", "123foo::bar" },
		{ "_RNvC6_123foo3bar.cold.1", "123foo::bar [clone .cold.1]" },
		{ "_RNvC6_123foo3bar [ext4]", "123foo::bar [ext4]" },
		{ "_ZN3foo3barEv.cold [nvidia]", "foo::bar() [clone .cold] [nvidia]" },
		{ "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>" },
		{ "main", NULL },
		{ "foo.cold", NULL },
		{ "", NULL },
		{ "_", NULL },
		{ "_Z", NULL },
		{ "_R", NULL },
		{ "_ZN3foo", NULL },
		{ "_Zebra", NULL },
		{ "_ZN3foo3barEv\xff", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(freep) char *text = demangle(cases[i].name);

		if (!cases[i].want)
			assert_null(text);
		else if (!text)
			fail_msg("%s stays mangled", cases[i].name);
		else
			assert_string_equal(text, cases[i].want);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void deep_and_long_names_stay_as_linked(void **state)
{
	static const char *const pieces[] = { "_ZN", "_Z1fP", "_Z1f", "_RNvNv", "_RIB_", "_ZN3fooI" };
	char name[DEMANGLE_MAX_NAME * 2];

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		for (size_t size = 1000; size < sizeof(name) - 16; size += 997) {
			size_t at = 0, piece = strlen(pieces[i]), again = piece < 4 ? piece - 1 : 1;

			for (memcpy(name, pieces[i], piece), at = piece; at < size; at += again)
				memcpy(name + at, pieces[i] + piece - again, again);
			name[at] = '\0';
			free(demangle(name)); /* any result is fine: it returns, within its stack */
		}
	}
	memset(name, 'i', sizeof(name));
	memcpy(name, "_Z1f", 4);
	name[DEMANGLE_MAX_NAME + 1] = '\0';
	assert_null(demangle(name));
	name[DEMANGLE_MAX_NAME] = '\0';
	free(demangle(name));
}

/* f(pair<int, int>, pair<that, that>, ...): the text doubles with each parameter, up to 2^60 bytes from 700. */
static void exploding_names_stay_as_linked(void **state)
{
	CLEANUP(buffer_done) struct buffer name = BUFFER_INIT(DEMANGLE_MAX_NAME);
	CLEANUP(freep) char *text = NULL;
	const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	double start = seconds();

	buffer_text(&name, "_Z1fSt4pairIiiE");
	for (unsigned int i = 0; i < 60; i++) {
		if (i < 36)
			buffer_printf(&name, "S_IS%c_S%c_E", digits[i], digits[i]);
		else
			buffer_printf(&name, "S_IS1%c_S1%c_E", digits[i - 36], digits[i - 36]);
	}
	assert_int_equal(name.err, 0);
	assert_null(demangle(name.data));
	name.data[sizeof("_Z1fSt4pairIiiE") - 1 + 3 * 10] = '\0';
	text = demangle(name.data); /* with three of them the name is acceptable */
	assert_non_null(text);
	assert_memory_equal(text, "f(std::pair<int, int>, std::pair<std::pair<int, int>, ", 54);
	assert_true(seconds() - start < 1.0);
}

/* a::b::<(u8, u8), ((u8, u8), (u8, u8)), ...>: the same with Rust's back references. */
static void exploding_rust_names_stay_as_linked(void **state)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	CLEANUP(buffer_done) struct buffer name = BUFFER_INIT(DEMANGLE_MAX_NAME);
	double start = seconds();
	size_t before = 8; /* where the previous tuple starts, counted after _R */

	buffer_text(&name, "_RINvC1a1bThhE");
	for (unsigned int i = 0; i < 60; i++) {
		size_t at = name.size - 2, first = (before - 1) / 62, last = (before - 1) % 62;

		if (first)
			buffer_printf(&name, "TB%c%c_B%c%c_E", digits[first - 1], digits[last], digits[first - 1], digits[last]);
		else
			buffer_printf(&name, "TB%c_B%c_E", digits[last], digits[last]);
		before = at;
		if (i == 1) {
			CLEANUP(buffer_done) struct buffer honest = BUFFER_INIT(DEMANGLE_MAX_NAME);
			CLEANUP(freep) char *text = NULL;

			buffer_append(&honest, name.data, name.size);
			buffer_text(&honest, "E");
			text = demangle(honest.data);
			assert_non_null(text);
			assert_string_equal(text, "a::b::<(u8, u8), ((u8, u8), (u8, u8)), (((u8, u8), (u8, u8)), ((u8, u8), (u8, u8)))>");
		}
	}
	buffer_text(&name, "E");
	assert_int_equal(name.err, 0);
	assert_null(demangle(name.data));
	assert_true(seconds() - start < 1.0);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Each would take minutes or forever before anything is printed. */
static void slow_names_stay_as_linked(void **state)
{
	CLEANUP(buffer_done) struct buffer conversions = BUFFER_INIT(DEMANGLE_MAX_NAME), chains = BUFFER_INIT(DEMANGLE_MAX_NAME);
	double start = cpu_seconds();

	assert_null(demangle("_RC0IIIC0DG1C0C0IC0IC0G17h_C00IC0")); /* for<'a, 'b, ...> where nothing is printed */
	buffer_text(&conversions, "_ZN1AcvT_I");
	for (int i = 0; i < 60; i++)
		buffer_text(&conversions, "N1AcvT_I");
	buffer_text(&conversions, "i");
	for (int i = 0; i < 61; i++)
		buffer_text(&conversions, "EE");
	buffer_text(&conversions, "v");
	assert_int_equal(conversions.err, 0);
	assert_null(demangle(conversions.data));
	buffer_text(&chains, "_RINvC1a1bT"); /* 500 back references to a chain of names without a letter */
	for (int i = 0; i < 800; i++)
		buffer_text(&chains, "Nv");
	buffer_text(&chains, "C0");
	for (int i = 0; i < 800; i++)
		buffer_text(&chains, "0");
	for (int i = 0; i < 500; i++)
		buffer_text(&chains, "B8_");
	buffer_text(&chains, "EE");
	assert_int_equal(chains.err, 0);
	assert_null(demangle(chains.data));
	assert_true(cpu_seconds() - start < 1.0);
}

/* Ordinary names that contain a few of these constructs are still demangled. */
static void names_with_a_few_of_these_become_readable(void **state)
{
	static const char *const cases[][2] = {
		{ "_RINvC1a1bDG0_INtC1c1dRL0_hEEL_E", "a::b::<dyn for<'a, 'b> c::d<&'b u8>>" },
		{ "_RINvC1a1bFG_RL0_hEuE", "a::b::<for<'a> fn(&'a u8)>" },
		{ "_RNvXs_C1aINtB4_1bhENtB4_1c1d", "<a::b<u8> as a::c>::d" },
		{ "_RINvC1a1bKhff_Kb1_Kc41_Kana_E", "a::b::<255, true, 'A', -10>" },
		{ "_RINvC1a1bDNtC1c1dp1eAhj4_EL_E", "a::b::<dyn c::d<e = [u8; 4]>>" },
		{ "_RINvC1a1bhEC1c", "a::b::<u8>" }, /* instantiated for the crate c */
		{ "_ZN1AcvT_IiEEv", "A::operator int<int>()" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(freep) char *text = demangle(cases[i][0]);

		assert_non_null(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_readable),
		cmocka_unit_test(deep_and_long_names_stay_as_linked),
		cmocka_unit_test(exploding_names_stay_as_linked),
		cmocka_unit_test(exploding_rust_names_stay_as_linked),
		cmocka_unit_test(slow_names_stay_as_linked),
		cmocka_unit_test(names_with_a_few_of_these_become_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
