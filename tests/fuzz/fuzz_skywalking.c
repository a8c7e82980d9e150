// SPDX-License-Identifier: Apache-2.0
/* Any bytes as what SkyWalking's server answers, and as a window's lines. The first byte says which. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "skywalking/sky_policy.c"
#include "skywalking/sky_stacks.c"
#include "skywalking/sky_wire.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_commands(struct reader message)
{
	struct sky_command command;
	char room[32];

	while (sky_next_command(&message, &command)) {
		sky_is_command(&command, "EBPFProfilingTaskQuery");
		if (sky_argument(&command, "TaskId", room, sizeof(room)))
			assert(strlen(room) < sizeof(room));
	}
}

static void read_ids(struct reader message)
{
	struct sky_process process = { .pid = 1, .entity = { "l", "s", "i", "n", "x" } };
	struct sky_process *const processes[] = { &process };

	sky_read_ids(message, processes, 1);
	assert(strlen(process.id) < sizeof(process.id));
}

static int count(void *arg, const struct sky_record *record)
{
	size_t *bytes = arg;
	const char *name = record->kernel.names;

	for (uint32_t i = 0; i < record->kernel.nr + record->user.nr; i++)
		name += strlen(name) + 1;
	assert(record->count > 0 && (record->kernel.nr || record->user.nr));
	return (*bytes += (size_t)(name - record->kernel.names)) > 1000000 ? -EFBIG : 0;
}

static void read_stacks(const void *lines, size_t size)
{
	struct sky_stacks stacks;
	size_t bytes = 0;

	if (!sky_stacks_read(&stacks, lines, size, NULL) && sky_stacks_records(&stacks, count, &bytes))
		assert(bytes > 1000000);
	sky_stacks_done(&stacks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sky_policy_list list = { 0 };

	if (!size)
		return 0;
	switch (*data % 4) {
	case 0:
		read_commands(reader_of(data + 1, size - 1));
		break;
	case 1:
		read_ids(reader_of(data + 1, size - 1));
		break;
	case 2:
		read_stacks(data + 1, size - 1);
		break;
	default:
		if (sky_policy_read(&list, (const char *)data + 1, size - 1, NULL))
			assert(list.nr <= SKY_MAX_POLICIES);
		sky_policy_list_done(&list);
	}
	return 0;
}
