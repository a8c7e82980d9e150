// SPDX-License-Identifier: Apache-2.0
/* fault_waker SECONDS: main > touches reads missing pages of memory that the thread "handler" fills (userfaultfd). Each page fault wakes
 * that thread. Exit code 3 where userfaultfd is missing. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "known.h"

#define PAGE 4096
#define NR_PAGES 64

static int fault_fd;
static volatile unsigned sink;

static void *handler(void *arg)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct pollfd wait = {.fd = fault_fd, .events = POLLIN};
	struct uffd_msg message;

	prctl(PR_SET_NAME, "handler");
	for (;;) {
		poll(&wait, 1, -1);
		if (read(fault_fd, &message, sizeof(message)) == sizeof(message)) {
			struct uffdio_copy copy = { .dst = message.arg.pagefault.address & -(unsigned long)PAGE,
						    .src = (unsigned long)page,
						    .len = PAGE };

			ioctl(fault_fd, UFFDIO_COPY, &copy);
		}
	}
	return arg;
}

KNOWN static unsigned touches(volatile char *memory)
{
	unsigned sum = 0;

	ENTER();
	for (int i = 0; i < NR_PAGES; i++)
		sum += (unsigned)memory[i * PAGE];
	return sum;
}

int main(int argc, char **argv)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register region = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	char *memory = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	(void)argc;
	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	region.range.start = (unsigned long)memory;
	region.range.len = NR_PAGES * PAGE;
	if (fault_fd < 0 || memory == MAP_FAILED || ioctl(fault_fd, UFFDIO_API, &api) || ioctl(fault_fd, UFFDIO_REGISTER, &region))
		return 3;
	known_start(argv[1]);
	if (pthread_create(&thread, NULL, handler, NULL))
		return 2;
	while (!known_done) {
		sink = touches(memory);
		known_nr = 0;
		madvise(memory, NR_PAGES * PAGE, MADV_DONTNEED);
	}
	return 0;
}
