/* SPDX-License-Identifier: Apache-2.0 */
/* curl_api: the parts of libcurl that we use, loaded on demand (base/library.h): it needs thirty libraries. Numbers and layouts are of its
 * ABI 4 (unchanged since 2006; curl/curl.h, curl/multi.h). One thread. */
#pragma once
#include <stddef.h>
#include <time.h>

#include "base/cleanup.h"

enum { /* CURLoption: below 10000 a long; from there a pointer, from 20000 a function, from 30000 an int64_t */
	CURL_LOW_SPEED_LIMIT = 19,
	CURL_LOW_SPEED_TIME = 20,
	CURL_NOPROGRESS = 43,
	CURL_FAILONERROR = 45,
	CURL_POST = 47,
	CURL_FOLLOWLOCATION = 52,
	CURL_MAXREDIRS = 68,
	CURL_FORBID_REUSE = 75,
	CURL_HTTP_VERSION = 84,
	CURL_NOSIGNAL = 99,
	CURL_IGNORE_CONTENT_LENGTH = 136,
	CURL_TIMEOUT_MS = 155,
	CURL_CONNECTTIMEOUT_MS = 156,
	CURL_PROTOCOLS = 181,       /* a mask; its successor is a text, and missing in 7.84 and older */
	CURL_REDIR_PROTOCOLS = 182,
	CURL_WRITEDATA = 10001,
	CURL_URL = 10002,
	CURL_ERRORBUFFER = 10010,
	CURL_POSTFIELDS = 10015,
	CURL_USERAGENT = 10018,
	CURL_HTTPHEADER = 10023,    /* struct curl_list * */
	CURL_SSLCERT = 10025,
	CURL_HEADERDATA = 10029,
	CURL_XFERINFODATA = 10057,
	CURL_CAINFO = 10065,
	CURL_SSLKEY = 10087,
	CURL_PRIVATE = 10103,
	CURL_WRITEFUNCTION = 20011,
	CURL_HEADERFUNCTION = 20079,
	CURL_XFERINFOFUNCTION = 20219,
	CURL_MAXFILESIZE_LARGE = 30117,
	CURL_POSTFIELDSIZE_LARGE = 30120,
};
/* CURLINFO: char **, long *, int64_t * */
enum { CURL_INFO_PRIVATE = 0x100000 + 21, CURL_INFO_RESPONSE_CODE = 0x200000 + 2, CURL_INFO_SIZE_UPLOAD = 0x600000 + 7 };
enum { CURL_VERSION_1_1 = 2, CURL_VERSION_2_TLS = 4, CURL_VERSION_2_PRIOR_KNOWLEDGE = 5 };
enum { CURL_OUT_OF_MEMORY = 27, CURL_ABORTED_BY_CALLBACK = 42 }; /* CURLcode */
enum { CURL_PROTOCOL_HTTP = 1, CURL_PROTOCOL_HTTPS = 2 };
enum { CURL_MESSAGE_DONE = 1, CURL_GLOBAL_ALL = 3, CURL_ERROR_BYTES = 256 };

struct curl_message {
	int kind; /* CURL_MESSAGE_DONE */
	void *easy;
	union {
		void *any;
		int result; /* CURLcode; 0: success */
	} data;
};

struct curl_list;

struct curl_wait {
	int fd;
	short events, revents;
};

struct curl_api {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_getinfo)(void *easy, int info, ...);
	void (*easy_cleanup)(void *easy);
	const char *(*easy_strerror)(int result);
	int (*easy_perform)(void *easy);
	struct curl_list *(*slist_append)(struct curl_list *list, const char *text); /* NULL: no memory, and the list is as before */
	void (*slist_free_all)(struct curl_list *list);
	time_t (*getdate)(const char *text, const time_t *unused); /* -1: no date */
	void *(*multi_init)(void);
	int (*multi_add_handle)(void *multi, void *easy);
	int (*multi_remove_handle)(void *multi, void *easy);
	int (*multi_perform)(void *multi, int *nr_running);
	int (*multi_poll)(void *multi, struct curl_wait *extra, unsigned int nr_extra, int timeout_ms, int *nr_ready); /* since 7.66 */
	struct curl_message *(*multi_info_read)(void *multi, int *nr_left);
};

/* Loads libcurl for the life of the process. 0; -ELIBACC: not installed; -ELIBBAD: too old. */
MUST_CHECK int curl_api_load(struct curl_api *ret_api);
