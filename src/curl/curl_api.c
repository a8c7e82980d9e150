// SPDX-License-Identifier: Apache-2.0
#include "curl/curl_api.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/library.h"

/* The same library built with each of three TLS libraries, under Debian's names. */
static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4" };

int curl_api_load(struct curl_api *ret_api)
{
	struct curl_api api;
	const struct library_function functions[] = {
		{ "curl_global_init", &api.global_init },
		{ "curl_easy_init", &api.easy_init },
		{ "curl_easy_setopt", &api.easy_setopt },
		{ "curl_easy_getinfo", &api.easy_getinfo },
		{ "curl_easy_cleanup", &api.easy_cleanup },
		{ "curl_easy_strerror", &api.easy_strerror },
		{ "curl_easy_perform", &api.easy_perform },
		{ "curl_slist_append", &api.slist_append },
		{ "curl_slist_free_all", &api.slist_free_all },
		{ "curl_getdate", &api.getdate },
		{ "curl_multi_init", &api.multi_init },
		{ "curl_multi_add_handle", &api.multi_add_handle },
		{ "curl_multi_remove_handle", &api.multi_remove_handle },
		{ "curl_multi_perform", &api.multi_perform },
		{ "curl_multi_poll", &api.multi_poll },
		{ "curl_multi_info_read", &api.multi_info_read },
	};
	void *library = NULL;

	for (size_t i = 0; !library && i < ARRAY_SIZE(names); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return -ELIBACC;
	if (library_functions(library, functions, ARRAY_SIZE(functions)))
		return -ELIBBAD;
	*ret_api = api;
	return 0;
}
