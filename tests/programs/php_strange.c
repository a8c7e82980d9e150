// SPDX-License-Identifier: Apache-2.0
/* Libraries that look like PHP's to a profiler. STRANGE_VERSION is the version they report; STRANGE_ZTS builds them for threads. */
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
