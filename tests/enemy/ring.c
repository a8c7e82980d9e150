// SPDX-License-Identifier: Apache-2.0
/* ring END_NS: reads random numbers through io_uring's workers, which are threads of this process without a user side. Each read is
 * submitted in one of its functions. */
#include <linux/io_uring.h>

#include "enemy.h"

static struct io_uring_params params;
static unsigned char *submissions, *completions;
static struct io_uring_sqe *entries;
static int ring, source;
static char room[1 << 20];

static unsigned *number_at(unsigned char *base, unsigned off)
{
	return (unsigned *)(void *)(base + off);
}

ENEMY_KEPT static void ring_read(void)
{
	unsigned *tail = number_at(submissions, params.sq_off.tail), at = *tail & *number_at(submissions, params.sq_off.ring_mask);

	ENEMY_ENTER();
	entries[at] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = source, .addr = (uint64_t)(uintptr_t)room, .len = sizeof(room)
	};
	number_at(submissions, params.sq_off.array)[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	ENEMY_CALL();
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		_exit(3);
	enemy_note('S', "");
	*number_at(completions, params.cq_off.head) = *number_at(completions, params.cq_off.tail);
	ENEMY_LEAVE();
}

ENEMY_KEPT static void ring_deeper(unsigned depth)
{
	volatile char pad[40];

	ENEMY_ENTER();
	pad[3] = 1;
	enemy_spin(20000);
	ENEMY_CALL();
	if (depth)
		ring_deeper(depth - 1);
	else
		ring_read();
	enemy_back_one();
	pad[3]++;
	ENEMY_LEAVE();
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	enemy_end_ns = strtoull(argv[1], NULL, 10);
	ring = (int)syscall(SYS_io_uring_setup, 8, &params);
	source = open("/dev/urandom", O_RDONLY);
	if (ring < 0)
		return 0; /* this kernel has no io_uring: nothing is logged */
	submissions = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	completions = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED,
			   ring, IORING_OFF_CQ_RING);
	enemy_begin();
	ENEMY_ENTER();
	while (!enemy_is_over()) {
		ENEMY_CALL();
		ring_deeper(enemy_random(6));
		enemy_back_one();
	}
	enemy_note('Z', "");
	return 0;
}
