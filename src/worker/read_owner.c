// SPDX-License-Identifier: Apache-2.0
#include "worker/read_owner.h"

#include <sys/stat.h>

#include "base/caller.h"

uint32_t read_owner_join(uint32_t owner, int fd)
{
	struct stat st;

	return fstat(fd, &st) ? READ_OWNER_MANY : read_owner_join_uid(owner, st.st_uid);
}

uint32_t read_owner_join_uid(uint32_t owner, uint32_t uid)
{
	if (caller_is_us(uid) || uid == owner)
		return owner;
	return owner == READ_OWNER_OURS ? uid : READ_OWNER_MANY;
}

uint32_t read_owner_of(const int *fds, uint32_t nr_fds)
{
	uint32_t owner = READ_OWNER_OURS;

	for (uint32_t i = 0; i < nr_fds; i++)
		owner = read_owner_join(owner, fds[i]);
	return owner;
}

bool read_owner_may_read(uint32_t has_read, uint32_t asked)
{
	return has_read == READ_OWNER_OURS || (has_read == asked && asked != READ_OWNER_MANY);
}
