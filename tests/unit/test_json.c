// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "codec/json.h"
#include "base/utf8.h"

static void nesting_and_commas(void **state)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	struct json json = { .buffer = &buffer };

	json_open(&json, '{');
	json_key(&json, "empty");
	json_open(&json, '[');
	json_close(&json, ']');
	json_key(&json, "list");
	json_open(&json, '[');
	json_u64(&json, 0);
	json_null(&json);
	json_bool(&json, true);
	json_line(&json);
	json_text(&json, "x");
	json_open(&json, '{');
	json_key_u64(&json, "n", 12);
	json_key_hex(&json, "h", 0xdeadbeefULL);
	json_close(&json, '}');
	json_close(&json, ']');
	json_key_text(&json, "last", "");
	json_close(&json, '}');
	assert_string_equal(buffer.data, "{\"empty\":[],\"list\":[0,null,true,\n\"x\",{\"n\":12,\"h\":\"0xdeadbeef\"}],\"last\":\"\"}");
}

static void check_text(const char *text, bool in_html, const char *want)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	struct json json = { .buffer = &buffer, .in_html = in_html };

	json_text(&json, text);
	assert_string_equal(buffer.data, want);
}

static void texts_are_escaped(void **state)
{
	check_text("", false, "\"\"");
	check_text("a\"b\\c/d", false, "\"a\\\"b\\\\c/d\"");
	check_text("\n\t\r\x01\x1f\x7f", false, "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"");
	check_text("</script><!-- & -->", false, "\"</script><!-- & -->\"");
	check_text("</script><!-- & -->", true, "\"\\u003c/script\\u003e\\u003c!-- \\u0026 --\\u003e\"");
	check_text("\xe2\x80\xa8\xe2\x80\xa9\xc2\x85", false, "\"\\u2028\\u2029\\u0085\"");
	check_text("\xe2\x80\xae\xe2\x81\xa6", false, "\"\\u202e\\u2066\"");
	check_text("gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\xa5", false, "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\xa5\"");
}

/* Each maximal part of a code point becomes one U+FFFD (Unicode 15, table 3-8). */
static void not_utf8_is_replaced(void **state)
{
#define R "\xef\xbf\xbd"
	check_text("\xff", false, "\"" R "\"");
	check_text("a\x80z", false, "\"a" R "z\"");
	check_text("\xc0\xaf", false, "\"" R R "\"");			     /* overlong '/' */
	check_text("\xe0\x80\xaf", false, "\"" R R R "\"");		     /* overlong '/' */
	check_text("\xed\xa0\x80", false, "\"" R R R "\"");		     /* a surrogate */
	check_text("\xf4\x90\x80\x80", false, "\"" R R R R "\"");	     /* above U+10FFFF */
	check_text("\xf1\x80\x80\xe1\x80\xc2\x62", false, "\"" R R R "b\""); /* cut short: one each */
	check_text("\xe2\x82", false, "\"" R "\"");			     /* cut by the end of the text */
#undef R
}

static void every_code_point_survives(void **state)
{
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char bytes[UTF8_MAX_BYTES];
		const char *pos = bytes;
		size_t size;

		if (code == 0xd800)
			code = 0xe000; /* surrogates are not valid text */
		size = utf8_encode(code, bytes);
		if (utf8_next(&pos, bytes + size) != code || pos != bytes + size)
			fail_msg("U+%04X", code);
	}
}

static void check_number(uint64_t value, const char *want)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(4096);
	struct json json = { .buffer = &buffer };

	json_u64(&json, value);
	assert_string_equal(buffer.data, want);
}

static void large_numbers_are_strings(void **state)
{
	check_number(0, "0");
	check_number(1234567890, "1234567890");
	check_number(9007199254740991, "9007199254740991");
	check_number(9007199254740992, "\"9007199254740992\"");
	check_number(UINT64_MAX, "\"18446744073709551615\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_and_commas),	     cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(not_utf8_is_replaced),	     cmocka_unit_test(every_code_point_survives),
		cmocka_unit_test(large_numbers_are_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
