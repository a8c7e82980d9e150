// SPDX-License-Identifier: Apache-2.0
/* io_workers SECONDS: main > asks > submits, which waits for io_uring's thread. That thread hands reads of /dev/urandom to io_uring's
 * workers: threads of this process that never ran its code. Built without liburing. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "known.h"

#define ENTRIES 8

struct ring {
	int fd;
	unsigned *head, *tail, *mask, *slots; /* of what is asked for */
	unsigned *done_head, *done_tail;
	struct io_uring_sqe *asked;
};

static volatile unsigned sink;
static char block[1 << 20];

static void *map_part(int fd, size_t bytes, off_t off)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, off);

	if (at == MAP_FAILED)
		exit(2);
	return at;
}

static void open_ring(struct ring *ring)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL };
	char *asked, *done;

	ring->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (ring->fd < 0) {
		perror("io_uring_setup");
		exit(3);
	}
	asked = map_part(ring->fd, params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	done = map_part(ring->fd, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring->asked = map_part(ring->fd, params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring->head = (unsigned *)(asked + params.sq_off.head);
	ring->tail = (unsigned *)(asked + params.sq_off.tail);
	ring->mask = (unsigned *)(asked + params.sq_off.ring_mask);
	ring->slots = (unsigned *)(asked + params.sq_off.array);
	ring->done_head = (unsigned *)(done + params.cq_off.head);
	ring->done_tail = (unsigned *)(done + params.cq_off.tail);
}

static void ask(struct ring *ring, int from)
{
	unsigned tail = *ring->tail, i = tail & *ring->mask;

	ring->asked[i] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = from, .addr = (unsigned long)block, .len = sizeof(block)
	};
	ring->slots[i] = i;
	__atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
}

KNOWN static unsigned submits(struct ring *ring, int from)
{
	unsigned sum = 0;

	ENTER();
	known_print();
	known_ready();
	while (!known_done) {
		ask(ring, from);
		sum += (unsigned)syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL, 0);
		__atomic_store_n(ring->done_head, __atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	}
	return sum;
}

KNOWN static unsigned asks(struct ring *ring, int from)
{
	ENTER();
	return submits(ring, from) + 1;
}

int main(int argc, char **argv)
{
	struct ring ring;

	(void)argc;
	ENTER();
	known_start(argv[1]);
	open_ring(&ring);
	sink = asks(&ring, open("/dev/urandom", O_RDONLY | O_CLOEXEC));
	return 0;
}
