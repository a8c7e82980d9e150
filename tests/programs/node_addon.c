// SPDX-License-Identifier: Apache-2.0
/* An addon for node_spin.js: C between JavaScript functions. Node-API's functions are declared here: no header of Node is needed. */
#include <stddef.h>
#include <stdlib.h>

typedef void *napi_env, *napi_value, *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

extern int napi_get_cb_info(napi_env env, napi_callback_info info, size_t *nr, napi_value *values, napi_value *self, void **data);
extern int napi_call_function(napi_env env, napi_value self, napi_value function, size_t nr, const napi_value *values, napi_value *ret);
extern int napi_create_function(napi_env env, const char *name, size_t length, napi_callback callback, void *data, napi_value *ret);
extern int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
extern int napi_create_int32(napi_env env, int value, napi_value *ret);
extern int napi_get_value_int32(napi_env env, napi_value value, int *ret);
extern int napi_get_undefined(napi_env env, napi_value *ret);

/* What addon_sort's comparison calls; a worker is a thread of its own. */
static __thread napi_env sort_env;
static __thread napi_value sort_function;

__attribute__((noinline)) static int addon_call(napi_env env, napi_value function, int a, int b)
{
	napi_value self, values[2], result;
	int number = 0;

	napi_get_undefined(env, &self);
	napi_create_int32(env, a, &values[0]);
	napi_create_int32(env, b, &values[1]);
	if (!napi_call_function(env, self, function, 2, values, &result))
		napi_get_value_int32(env, result, &number);
	return number;
}

static napi_value take_function(napi_env env, napi_callback_info info)
{
	napi_value function = NULL;
	size_t nr = 1;

	napi_get_cb_info(env, info, &nr, &function, NULL, NULL);
	return function;
}

static napi_value addon_call_back(napi_env env, napi_callback_info info)
{
	napi_value result;

	napi_create_int32(env, addon_call(env, take_function(env, info), 1, 2), &result);
	return result;
}

static int addon_compare(const void *a, const void *b)
{
	volatile int order = addon_call(sort_env, sort_function, *(const int *)a, *(const int *)b); /* no jump instead of a call */

	return order;
}

static napi_value addon_sort(napi_env env, napi_callback_info info)
{
	int numbers[] = { 3, 1, 2 };
	napi_value result;

	sort_env = env;
	sort_function = take_function(env, info);
	qsort(numbers, 3, sizeof(*numbers), addon_compare);
	napi_create_int32(env, numbers[0], &result);
	return result;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value function;

	napi_create_function(env, "callBack", (size_t)-1, addon_call_back, NULL, &function);
	napi_set_named_property(env, exports, "callBack", function);
	napi_create_function(env, "sort", (size_t)-1, addon_sort, NULL, &function);
	napi_set_named_property(env, exports, "sort", function);
	return exports;
}
