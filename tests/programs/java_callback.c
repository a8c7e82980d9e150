// SPDX-License-Identifier: Apache-2.0
/* The native methods of JavaSpin.java. No header of a JDK is needed: the numbers are those of the functions in the JNI specification's
 * table (chapter 4). */
#include <stdlib.h>

typedef void *const **env_t;

#define GET_OBJECT_CLASS 31
#define GET_METHOD_ID 33
#define CALL_VOID_METHOD 61

static void run(env_t env, void *work)
{
	void *(*get_class)(env_t, void *) = (*env)[GET_OBJECT_CLASS];
	void *(*get_method)(env_t, void *, const char *, const char *) = (*env)[GET_METHOD_ID];
	void (*call)(env_t, void *, void *, ...) = (*env)[CALL_VOID_METHOD];

	call(env, work, get_method(env, get_class(env, work), "run", "()V"));
}

__attribute__((visibility("default"))) void Java_JavaSpin_callBack(env_t env, void *class, void *work)
{
	run(env, work);
}

static __thread env_t sort_env;
static __thread void *sort_work;

static int compare(const void *a, const void *b)
{
	run(sort_env, sort_work);
	return *(const int *)a - *(const int *)b;
}

__attribute__((visibility("default"))) void Java_JavaSpin_sort(env_t env, void *class, void *work)
{
	int numbers[] = { 2, 1 };

	sort_env = env;
	sort_work = work;
	qsort(numbers, 2, sizeof(*numbers), compare);
}
