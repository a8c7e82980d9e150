// SPDX-License-Identifier: Apache-2.0
/* Reads and writes in every way, below the folder argv[1], and prints what sonde has to show: "READS READ_BYTES READ_FAILED WRITES
 * WRITE_BYTES WRITE_FAILED FILE" for each file; before that "io RCHAR WCHAR", what /proc/self/io says has been read and written by the
 * calls that it counts. argv[2]: begins at a byte on standard input, and prints "counted READ_BYTES WRITE_BYTES FILE" for the files so far.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FILES 64

enum { READ, WRITE };

static struct {
	char name[PATH_MAX];
	long calls[2], bytes[2], failed[2];
} files[MAX_FILES];
static int nr_files;
static char bytes[1 << 16];

/* Counts a call's result for a file; returns it. */
static long count(const char *name, int side, long result)
{
	int i = 0;

	while (i < nr_files && strcmp(files[i].name, name) != 0)
		i++;
	if (i == nr_files)
		snprintf(files[nr_files++].name, PATH_MAX, "%s", name);
	files[i].calls[side]++;
	if (result < 0)
		files[i].failed[side]++;
	else
		files[i].bytes[side] += result;
	return result;
}

static const char *below(const char *folder, const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void must(int good, int line)
{
	if (good)
		return;
	printf("failed in line %d: %s\n", line, strerror(errno));
	exit(1);
}
#define MUST(good) must(good, __LINE__)

static void plain_files(const char *folder)
{
	struct iovec parts[] = { { bytes, 100 }, { bytes + 100, 23 } };
	const char *one = below(folder, "one");
	int fd = open(one, O_CREAT | O_RDWR | O_TRUNC, 0644);

	MUST(fd >= 0);
	count(one, WRITE, write(fd, bytes, 5000));
	count(one, WRITE, pwrite(fd, bytes, 77, 9000));
	count(one, WRITE, writev(fd, parts, 2));
	count(one, WRITE, pwritev(fd, parts, 2, 300));
	count(one, WRITE, pwritev2(fd, parts, 1, 300, 0));
	count(one, READ, pread(fd, bytes, 4000, 0));
	count(one, READ, preadv(fd, parts, 2, 0));
	count(one, READ, preadv2(fd, parts, 2, 50, 0));
	count(one, READ, read(fd, bytes, 10));
	lseek(fd, 0, SEEK_SET);
	count(one, READ, readv(fd, parts, 2));
	count(one, READ, pread(fd, bytes, 100, 1 << 20));	  /* nothing there */
	count(one, READ, syscall(SYS_pread64, fd, 8L, 100L, 0L)); /* EFAULT */
	close(fd);
	fd = open(one, O_RDONLY);
	count(one, WRITE, write(fd, bytes, 1)); /* EBADF: not open for writing */
	close(fd);
	count("[not open]", READ, read(777, bytes, 1));
}

/* Their names are those at their first use. */
static void names(const char *folder)
{
	char path[PATH_MAX], deleted[PATH_MAX + 16];
	int fd = open(below(folder, "gone"), O_CREAT | O_RDWR, 0600), old;

	unlink(below(folder, "gone"));
	snprintf(deleted, sizeof(deleted), "%s (deleted)", below(folder, "gone"));
	count(deleted, WRITE, write(fd, bytes, 11));
	old = dup(fd); /* keeps the inode's number for the deleted one */
	close(fd);
	fd = open(below(folder, "before"), O_CREAT | O_RDWR, 0600);
	strcpy(path, below(folder, "before"));
	rename(path, below(folder, "after"));
	count(below(folder, "after"), WRITE, write(fd, bytes, 12));
	close(fd);
	close(old);
	fd = open("/dev/null", O_WRONLY);
	count("/dev/null", WRITE, write(fd, bytes, 13));
	close(fd);
	fd = memfd_create("mine", 0);
	count("memfd:mine", WRITE, write(fd, bytes, 14));
	close(fd);
	fd = eventfd(0, 0);
	count("anon_inode:[eventfd]", WRITE, write(fd, &(uint64_t){ 1 }, 8));
	close(fd);
	fd = open(below(folder, "after"), O_PATH);
	count(below(folder, "after"), READ, read(fd, bytes, 1)); /* EBADF */
	close(fd);
	for (int i = 0; i < 100; i++) { /* each takes the inode and the memory of the one before it */
		snprintf(path, sizeof(path), "%s/short%d", folder, i % 10);
		fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
		unlink(path);
		strcat(path, " (deleted)");
		count(path, WRITE, write(fd, bytes, (size_t)i));
		close(fd);
	}
}

static void pipe_name(char *name, int fd)
{
	struct stat st;

	fstat(fd, &st);
	sprintf(name, "pipe:[%lu]", (unsigned long)st.st_ino);
}

static void two_files(const char *folder)
{
	char one[PATH_MAX], copy[PATH_MAX], pipes[64];
	struct iovec part = { bytes, 50 };
	int ends[2], from, to;

	strcpy(one, below(folder, "one"));
	strcpy(copy, below(folder, "copy"));
	from = open(one, O_RDONLY);
	to = open(copy, O_CREAT | O_RDWR | O_TRUNC, 0600);
	MUST(!pipe(ends));
	pipe_name(pipes, ends[0]);
	count(copy, WRITE, count(one, READ, sendfile(to, from, NULL, 3000)));
	count(copy, WRITE, count(one, READ, copy_file_range(from, &(off_t){ 0 }, to, NULL, 1000, 0)));
	count(pipes, WRITE, count(one, READ, splice(from, &(off_t){ 0 }, ends[1], NULL, 200, 0)));
	count(copy, WRITE, count(pipes, READ, splice(ends[0], NULL, to, NULL, 150, 0)));
	count(pipes, WRITE, vmsplice(ends[1], &part, 1, 0));
	count(pipes, READ, read(ends[0], bytes, 100));
	count(pipes, WRITE, write(ends[1], bytes, 20));
	part.iov_len = 5;
	count(pipes, READ, vmsplice(ends[0], &part, 1, 0));
	count(one, WRITE, count(copy, READ, sendfile(from, to, NULL, 10))); /* EBADF: not open for writing */
	close(from);
	close(to);
}

static void inet_names(char names[2][128], int a, int b)
{
	struct sockaddr_in of[2];
	socklen_t size = sizeof(of[0]);

	getsockname(a, (struct sockaddr *)&of[0], &size);
	getsockname(b, (struct sockaddr *)&of[1], &size);
	for (int i = 0; i < 2; i++)
		sprintf(names[i], "TCP 127.0.0.1:%d->127.0.0.1:%d", ntohs(of[i].sin_port), ntohs(of[!i].sin_port));
}

static void sockets(const char *folder)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct iovec parts[] = { { bytes, 40 }, { bytes, 2 } };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 2 } },
				       { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } } };
	struct sockaddr_un named = { .sun_family = AF_UNIX };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), server, pair[2], received;
	char names[2][128], name[PATH_MAX + 16];
	struct stat st;
	socklen_t size = sizeof(address);

	MUST(!bind(listener, (struct sockaddr *)&address, size) && !listen(listener, 1) &&
	     !getsockname(listener, (struct sockaddr *)&address, &size));
	MUST(!connect(client, (struct sockaddr *)&address, size));
	server = accept(listener, NULL, NULL);
	inet_names(names, client, server);
	count(names[0], WRITE, send(client, bytes, 1000, 0));
	count(names[1], READ, recv(server, bytes, 1000, MSG_WAITALL));
	count(names[1], WRITE, sendmsg(server, &messages[0].msg_hdr, 0));
	count(names[0], READ, recvmsg(client, &messages[0].msg_hdr, MSG_WAITALL));
	count(names[0], READ, recv(client, bytes, 1, MSG_DONTWAIT)); /* EAGAIN */
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	MUST(sendmmsg(pair[0], messages, 2, 0) == 2);
	fstat(pair[0], &st);
	sprintf(name, "UNIX [%lu]", (unsigned long)st.st_ino);
	count(name, WRITE, 42 + 40);
	MUST((received = recvmmsg(pair[1], messages, 2, 0, NULL)) == 2);
	fstat(pair[1], &st);
	sprintf(name, "UNIX [%lu]", (unsigned long)st.st_ino);
	count(name, READ, 42 + 40);
	MUST(strlen(below(folder, "socket")) < sizeof(named.sun_path));
	strcpy(named.sun_path, below(folder, "socket"));
	unlink(named.sun_path);
	server = socket(AF_UNIX, SOCK_DGRAM, 0);
	client = socket(AF_UNIX, SOCK_DGRAM, 0);
	MUST(!bind(server, (struct sockaddr *)&named, sizeof(named)));
	MUST(!connect(client, (struct sockaddr *)&named, sizeof(named)));
	snprintf(name, sizeof(name), "UNIX ->%s", named.sun_path);
	count(name, WRITE, write(client, bytes, 17));
	snprintf(name, sizeof(name), "UNIX %s", named.sun_path);
	count(name, READ, read(server, bytes, 100));
}

#ifdef __x86_64__
static long call_32(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static void by_32_bits(const char *folder)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0), name[64];
	uint32_t *parts = (void *)(low + 2048), *args = (void *)(low + 3072);
	int fd = open(below(folder, "one"), O_RDWR), pair[2];
	struct stat st;

	parts[0] = parts[2] = (uint32_t)(uintptr_t)low;
	parts[1] = 7;
	parts[3] = 8;
	count(below(folder, "one"), WRITE, call_32(4, fd, (long)low, 321));   /* write */
	count(below(folder, "one"), WRITE, call_32(146, fd, (long)parts, 2)); /* writev */
	lseek(fd, 0, SEEK_SET);
	count(below(folder, "one"), READ, call_32(3, fd, (long)low, 123)); /* read */
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	args[0] = (uint32_t)pair[0];
	args[1] = (uint32_t)(uintptr_t)low;
	args[2] = 31;
	args[3] = 0;
	fstat(pair[0], &st);
	sprintf(name, "UNIX [%lu]", (unsigned long)st.st_ino);
	count(name, WRITE, call_32(102, 9, (long)args, 0)); /* socketcall: send */
}
#else
static void by_32_bits(const char *folder)
{
}
#endif

/* A descriptor that was open before the program, and what a child writes to it. */
static void inherited(const char *folder)
{
	int fd = open(below(folder, "inherited"), O_CREAT | O_WRONLY | O_TRUNC, 0600);
	pid_t pid = fork();

	if (!pid) {
		for (int i = 0; i < 5; i++)
			if (write(fd, bytes, 6) != 6)
				_exit(1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 5; i++)
		count(below(folder, "inherited"), WRITE, 6);
}

static void read_io(long *rchar, long *wchar, long *size)
{
	char text[512] = "";
	int fd = open("/proc/self/io", O_RDONLY);

	*size = read(fd, text, sizeof(text) - 1);
	MUST(sscanf(text, "rchar: %ld\nwchar: %ld\n", rchar, wchar) == 2);
	close(fd);
}

int main(int argc, char **argv)
{
	long before[2], after[2], size, more;

	if (argc < 2)
		return 1;
	if (argc > 2)
		MUST(read(0, bytes, 1) == 1);
	read_io(&before[READ], &before[WRITE], &size);
	plain_files(argv[1]);
	names(argv[1]);
	two_files(argv[1]);
	by_32_bits(argv[1]);
	read_io(&after[READ], &after[WRITE], &more);
	printf("io %ld %ld\n", after[READ] - before[READ] - size, after[WRITE] - before[WRITE]);
	for (int i = 0; i < nr_files && argc > 2; i++)
		printf("counted %ld %ld %s\n", files[i].bytes[READ], files[i].bytes[WRITE], files[i].name);
	sockets(argv[1]);
	inherited(argv[1]);
	for (int i = 0; i < nr_files; i++)
		printf("%ld %ld %ld %ld %ld %ld %s\n", files[i].calls[READ], files[i].bytes[READ], files[i].failed[READ],
		       files[i].calls[WRITE], files[i].bytes[WRITE], files[i].failed[WRITE], files[i].name);
	return 0;
}
