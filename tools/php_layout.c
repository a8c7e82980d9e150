// SPDX-License-Identifier: Apache-2.0
/* php_layout: prints the row of src/runtime/php/php_tables.c for the PHP whose headers it is compiled with:
 *   I=$(php-config8.2 --include-dir); cc -I$I -I$I/main -I$I/Zend -I$I/TSRM tools/php_layout.c -o /tmp/php_layout && /tmp/php_layout
 * (php-config8.2 is in Debian's php8.2-dev). Asserts what bpf/abi/php.h assumes to be the same everywhere. */
#include <stddef.h>
#include <stdio.h>

#include "php.h"

#include "zend_generators.h"
#include "zend_globals.h"

#include "../bpf/abi/php.h"

#define SAME(number, type, member) _Static_assert((number) == offsetof(type, member), #member)
SAME(SONDE_PHP_EX_OPLINE, zend_execute_data, opline);
SAME(SONDE_PHP_EX_RETURN, zend_execute_data, return_value);
SAME(SONDE_PHP_EX_FUNC, zend_execute_data, func);
SAME(SONDE_PHP_EX_THIS, zend_execute_data, This);
SAME(SONDE_PHP_EX_PREV, zend_execute_data, prev_execute_data);
SAME(SONDE_PHP_FN_NAME, zend_function, common.function_name);
SAME(SONDE_PHP_FN_SCOPE, zend_function, common.scope);
SAME(SONDE_PHP_OP_LINE, zend_op, lineno);
SAME(SONDE_PHP_STRING_LENGTH, zend_string, len);
SAME(SONDE_PHP_STRING_TEXT, zend_string, val);
SAME(SONDE_PHP_CLASS_NAME, zend_class_entry, name);
_Static_assert(offsetof(zend_function, type) == 0 && sizeof(((zend_function *)0)->type) == 1, "type");
_Static_assert(sizeof(zend_op) == SONDE_PHP_OP_BYTES, "zend_op");
_Static_assert(ZEND_CALL_TOP == SONDE_PHP_CALL_TOP && ZEND_CALL_CODE == SONDE_PHP_CALL_CODE &&
		   ZEND_CALL_GENERATOR == SONDE_PHP_CALL_GENERATOR,
	       "call info");
_Static_assert(ZEND_INTERNAL_FUNCTION == SONDE_PHP_INTERNAL && ZEND_USER_FUNCTION == SONDE_PHP_USER && ZEND_EVAL_CODE == SONDE_PHP_EVAL,
	       "types of functions");
_Static_assert(ZEND_GENERATOR_CURRENTLY_RUNNING == SONDE_PHP_GENERATOR_RUNS && sizeof(((zend_generator *)0)->flags) == 1,
	       "flags of generators");
_Static_assert(ZEND_ACC_CLOSURE == (PHP_MAJOR_VERSION < 8 ? 1 << 20 : 1 << 22) && ZEND_ACC_FAKE_CLOSURE == ZEND_ACC_CLOSURE << 1 &&
		       ZEND_ACC_CALL_VIA_TRAMPOLINE == SONDE_PHP_FN_TRAMPOLINE,
	       "flags of functions");
SAME(SONDE_PHP_FN_FLAGS, zend_function, common.fn_flags);
_Static_assert(IS_OBJECT == SONDE_PHP_IS_OBJECT, "IS_OBJECT");

int main(void)
{
#ifdef ZTS
	printf("ZTS: ");
#endif
	printf("{ %d, %d, %zu, %zu, %zu, %zu, %zu, %zu, %zu, %zu, %zu },\n", PHP_MAJOR_VERSION, PHP_MINOR_VERSION,
	       offsetof(zend_executor_globals, current_execute_data), offsetof(zend_op_array, last), offsetof(zend_op_array, opcodes),
	       offsetof(zend_op_array, filename), offsetof(zend_op_array, line_start), offsetof(zend_generator, execute_data),
	       offsetof(zend_generator, node.parent), offsetof(zend_generator, execute_fake), offsetof(zend_generator, flags));
	return 0;
}
