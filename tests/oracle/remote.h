/* SPDX-License-Identifier: Apache-2.0 */
/* remote: the kernel side's walk, compiled for the host, on the stack of a traced child. Uses tables of the files that the child has
 * mapped; reads memory with process_vm_readv. One child at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct remote_stack {
	const uint64_t *frames; /* valid until the next walk; return addresses carry SONDE_FRAME_RETURN */
	uint32_t nr;
	uint8_t stop;           /* enum sonde_stop */
};

void remote_begin(pid_t pid);
/* Reads the child's mappings (again). False: they cannot be read. */
bool remote_refresh(void);
struct remote_stack remote_walk(const struct user_regs_struct *regs);
/* Returns 0, or another value when not all of it can be read. */
int remote_read(void *to, size_t size, uint64_t from);
/* Formats an address: "libc.so.6+0x1234". */
void remote_place(uint64_t pc, char *to, size_t size);
