// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a jitdump: an answer covers the requested address, its start gives an answer too, and a line has a file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct jitdump *dump, uint64_t pc)
{
	struct jitdump_place place, start;

	if (jitdump_find(dump, pc, &place))
		return;
	if (!place.name[0] || place.start > pc || pc - place.start > UINT32_MAX || !place.file[0] != !place.line)
		abort();
	if (strlen(place.name) + strlen(place.file) > JITDUMP_MAX_TEXT || (jitdump_find(dump, place.start, &start) && pc == place.start))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(jitdump_freep) struct jitdump *dump = NULL;
	CLEANUP(closep) int fd = memfd_create("jitdump", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || jitdump_read_fd(fd, &dump))
		return 0;
	if (jitdump_size(dump) == 0)
		abort(); /* must be -ENODATA */
	ask(dump, 0);
	ask(dump, UINT64_MAX);
	for (size_t i = 0; i + 8 <= size && i < 65536; i += 4) { /* numbers in the records */
		uint64_t pc;

		memcpy(&pc, data + i, 8);
		ask(dump, pc);
		ask(dump, pc + 1);
	}
	return 0;
}
