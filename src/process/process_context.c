// SPDX-License-Identifier: Apache-2.0
#include "process/process_context.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define SIGNATURE   "OTEL_CTX"
#define VERSION	    2 /* 1 was for development */
#define MAX_TRIES   3
#define MAX_PLACES  8 /* mappings of that name */
#define LINE_BYTES  512 /* of /proc/PID/maps; a longer line is none of ours */

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns, payload_pc;
};

static int read_header(struct proxy *proxy, uint32_t tgid, uint64_t pc, struct header *ret_header)
{
	int err = proxy_read_memory(proxy, tgid, pc, ret_header, sizeof(*ret_header));

	if (err)
		return err;
	if (memcmp(ret_header->signature, SIGNATURE, sizeof(ret_header->signature)) != 0 || ret_header->version != VERSION)
		return -EBADMSG;
	if (!ret_header->published_ns)
		return -EAGAIN;
	return ret_header->payload_bytes && ret_header->payload_bytes <= PROCESS_CONTEXT_BYTES ? 0 : -EBADMSG;
}

static int read_once(struct proxy *proxy, uint32_t tgid, uint64_t pc, struct process_context *ret_context)
{
	CLEANUP(freep) void *payload = malloc(PROCESS_CONTEXT_BYTES);
	struct header header, again;
	int err = payload ? read_header(proxy, tgid, pc, &header) : -ENOMEM;

	if (err)
		return err;
	err = proxy_read_memory(proxy, tgid, header.payload_pc, payload, header.payload_bytes);
	if (read_header(proxy, tgid, pc, &again) || memcmp(&header, &again, sizeof(header)) != 0)
		return -EAGAIN;
	if (!err)
		err = process_context_parse(payload, header.payload_bytes, ret_context);
	ret_context->published_ns = header.published_ns;
	ret_context->pc = pc;
	return err;
}

static int read_at(struct proxy *proxy, uint32_t tgid, uint64_t pc, struct process_context *ret_context)
{
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < MAX_TRIES; i++)
		err = read_once(proxy, tgid, pc, ret_context);
	return err;
}

/* Its name: of a memfd, with or without a name of its own, or of memory without a file. */
static bool is_name(const char *name)
{
	static const char memfd[] = "/memfd:" SIGNATURE;

	return !strcmp(name, "[anon_shmem:" SIGNATURE "]") || !strcmp(name, "[anon:" SIGNATURE "]") || !strcmp(name, memfd) ||
	       (!strncmp(name, memfd, sizeof(memfd) - 1) && !strcmp(name + sizeof(memfd) - 1, " (deleted)"));
}

/* Is it a line of such a mapping? */
static bool is_place(char *line, uint64_t *ret_pc)
{
	const char *pos = line, *name;

	line[strcspn(line, "\n")] = '\0';
	name = strpbrk(line, "[/"); /* nothing before the name has one of these */
	return name && is_name(name) && !number_hex(&pos, name, ret_pc) && *pos == '-';
}

int process_context_find(struct proxy *proxy, uint32_t tgid, struct process_context *ret_context)
{
	CLEANUP(fclosep) FILE *maps = NULL;
	uint32_t nr_places = 0;
	char line[LINE_BYTES];
	uint64_t pc;
	int err = proxy_maps(proxy, tgid, tgid, &maps), found = -ENOENT;

	while (!err && found && nr_places < MAX_PLACES && fgets(line, sizeof(line), maps)) {
		if (!is_place(line, &pc))
			continue;
		nr_places++;
		found = read_at(proxy, tgid, pc, ret_context);
	}
	return err ? err : found;
}

int process_context_renew(struct proxy *proxy, uint32_t tgid, struct process_context *context)
{
	struct header header;
	int err = read_header(proxy, tgid, context->pc, &header);

	if (!err && header.published_ns == context->published_ns)
		return -EALREADY;
	return err && err != -EAGAIN ? err : read_at(proxy, tgid, context->pc, context);
}
