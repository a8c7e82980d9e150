/* SPDX-License-Identifier: Apache-2.0 */
/* process_context: what a process publishes about itself by OpenTelemetry's OTEP 4719 "Process Context" (oteps/profiles in
 * opentelemetry-specification): its resource's attributes, and the names of its threads' attributes (OTEP 4947, `threadlocal`). All of it
 * is a claim of the process, and may be hostile: bounded in bytes, numbers and tries. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "proxy/proxy.h"

#define PROCESS_CONTEXT_BYTES	   65536 /* of what is published; a larger one is not read, as in the OpenTelemetry profiler */
#define PROCESS_CONTEXT_ATTRIBUTES 128	 /* further ones are left out; as many as SDKs allow by default */
#define PROCESS_CONTEXT_KEYS	   256	 /* their numbers have one byte */
#define PROCESS_CONTEXT_KEY	   64	 /* bytes, with the NUL */
#define PROCESS_CONTEXT_TEXT	   128

struct process_attribute { /* both plain (base/plain_text.h), never empty; longer ones end with "..." */
	char key[PROCESS_CONTEXT_KEY], text[PROCESS_CONTEXT_TEXT];
};

/* The first bytes of a name, as it was published. */
struct context_key {
	uint32_t bytes; /* the full number; 0: no name */
	char key[32];
};

struct process_context {
	uint64_t published_ns; /* changes with each publication */
	uint64_t pc;           /* where it is, for the next reading */
	uint32_t nr_attributes, nr_keys;
	struct process_attribute attributes[PROCESS_CONTEXT_ATTRIBUTES];
	struct context_key keys[PROCESS_CONTEXT_KEYS];
};

/* Reads the protocol buffer. Attributes that are no texts are left out. 0; -EBADMSG: it is damaged. */
MUST_CHECK int process_context_parse(const void *bytes, size_t size, struct process_context *ret_context);
/* Looks for it among the process's mappings. 0; -ENOENT: no mapping has its name, or there is no such process; -EBADMSG: it is damaged, of
 * another version or not written yet; -EAGAIN: it changes all the time; else as proxy_maps and proxy_read_memory. */
MUST_CHECK int process_context_find(struct proxy *proxy, uint32_t tgid, struct process_context *ret_context);
/* Reads it again where it was, if it was published anew. 0; -EALREADY: it is the same; else as above: look for it. */
MUST_CHECK int process_context_renew(struct proxy *proxy, uint32_t tgid, struct process_context *context);
