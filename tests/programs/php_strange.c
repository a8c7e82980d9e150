// SPDX-License-Identifier: Apache-2.0
/* Libraries that look like PHP's as far as that goes: STRANGE_VERSION is what they say, STRANGE_ZTS has them built for threads. */
#include <stddef.h>

const char php_header[] = STRANGE_VERSION;
#ifdef STRANGE_ZTS
size_t executor_globals_offset;
#else
char executor_globals[2048];
#endif

void execute_ex(void *ex)
{
	*(void *volatile *)ex = NULL;
}

int zend_get_executed_lineno(void)
{
	return 7; /* looks at nothing */
}
