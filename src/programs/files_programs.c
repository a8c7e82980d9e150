// SPDX-License-Identifier: Apache-2.0
#include "programs/files_programs.h"

#include <errno.h>
#include <string.h>

#include "programs/call_numbers.h"
#include "files.skel.h"

#define RING_BYTES (4u << 20) /* some 20,000 opens: a build's in half a second */

static bool is_record(const void *bytes, size_t size)
{
	const struct sonde_open_record *record = bytes;
	const struct sonde_file_text *file = (const void *)(record + 1);

	return size >= sizeof(*record) + sizeof(*file) && size == sizeof(*record) + sizeof(*file) + file->bytes &&
	       record->name_bytes <= file->bytes;
}

static void find_calls(struct sonde_opens_config *config)
{
	static const char *const names[] = { [SONDE_OPEN_OPEN] = "open",
					     [SONDE_OPEN_CREAT] = "creat",
					     [SONDE_OPEN_OPENAT] = "openat",
					     [SONDE_OPEN_OPENAT2] = "openat2",
					     [SONDE_OPEN_BY_HANDLE] = "open_by_handle_at" };

	for (uint8_t call = SONDE_OPEN_OPEN; call < ARRAY_SIZE(names); call++) {
		for (int is_32_bit = 0; is_32_bit < 2; is_32_bit++) {
			uint32_t number = call_number(names[call], is_32_bit);

			if (number < SONDE_MAX_CALLS)
				config->calls[is_32_bit][number] = call;
		}
	}
}

static void destroy(void *skeleton)
{
	files_bpf__destroy(skeleton);
}

int files_programs_new(const struct call_options *options, const struct sonde_opens_config *opens, struct diag *diag,
		       struct call_programs **ret_programs)
{
	struct files_bpf *skeleton = files_bpf__open();
	struct sonde_opens_config config = *opens;

	if (!skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	find_calls(&config);
	memcpy((void *)&skeleton->rodata->opens_cfg, &config, sizeof(config));
	return call_programs_new(&(struct call_object){ .opened = skeleton,
							.destroy = destroy,
							.skeleton = skeleton->skeleton,
							.config = &skeleton->rodata->cfg,
							.own_tgid = &skeleton->bss->own_tgid,
							.ring_bytes = RING_BYTES,
							.key_bytes = sizeof(struct sonde_open_key),
							.sum_bytes = opens->sums ? sizeof(struct sonde_open_sum) : 0,
							.since = "5.10",
							.is_record = is_record },
				 options, diag, ret_programs);
}
