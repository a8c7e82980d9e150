// SPDX-License-Identifier: Apache-2.0
/* Opens files in every way, below the folder argv[1], and prints what sonde has to show: "RESULT PATH", where RESULT is the descriptor or
 * the error's name. argv[2]: so many opens of one missing file besides, which are not printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char said[1 << 16];
static size_t nr_said;

static void say(long result, const char *format, const char *folder, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), format, folder, name);
	if (result < 0)
		nr_said += (size_t)snprintf(said + nr_said, sizeof(said) - nr_said, "%s %s\n", strerrorname_np(errno), path);
	else
		nr_said += (size_t)snprintf(said + nr_said, sizeof(said) - nr_said, "%ld %s\n", result, path);
}

#ifdef __x86_64__
/* A 32-bit call of this 64-bit program: its texts must lie in the lower 4 GiB. */
static long call_32(long number, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d) : "memory", "r8", "r9", "r10", "r11");
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

static void open_by_32_bits(const char *folder, int sub)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct open_how *how = (void *)(low + 1024);

	strcpy(low, "one");
	*how = (struct open_how){ .flags = O_RDONLY };
	say(call_32(5, (long)low, O_RDONLY, 0, 0), "%s/%s", folder, "one");			 /* open */
	say(call_32(295, sub, (long)low, O_RDONLY, 0), "%s/sub/%s", folder, "one");		 /* openat: not there */
	say(call_32(437, AT_FDCWD, (long)low, (long)how, sizeof(*how)), "%s/%s", folder, "one"); /* openat2 */
}
#else
static void open_by_32_bits(const char *folder, int sub)
{
}
#endif

/* In a process whose root is the folder. */
static void open_below_root(const char *folder)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		exit(1);
	pid = fork();
	if (!pid) {
		nr_said = 0;
		if (chroot(folder) || chdir("/sub"))
			_exit(1);
		say(open("two", O_RDONLY), "/sub/%s%s", "two", "");
		if (write(ends[1], said, nr_said) < 0)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	waitpid(pid, NULL, 0);
	nr_said += (size_t)read(ends[0], said + nr_said, sizeof(said) - nr_said);
	close(ends[0]);
}

static void open_deep(const char *folder)
{
	char path[PATH_MAX] = "";
	int old = open(".", O_PATH);

	say(old, "%s/%s", folder, ".");
	for (int i = 0; i < 40; i++) {
		if ((mkdir("deeper", 0755) && errno != EEXIST) || chdir("deeper"))
			exit(1);
		strcat(path, "deeper/");
	}
	strcat(path, "leaf");
	say(open("leaf", O_CREAT | O_WRONLY, 0600), "%s/%s", folder, path);
	if (fchdir(old))
		exit(1);
}

int main(int argc, char **argv)
{
	const char *folder = argv[1];
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };
	char name[PATH_MAX], long_name[PATH_MAX];
	int sub;

	if (argc < 2 || chdir(folder) || (mkdir("sub", 0755) && errno != EEXIST))
		return 1;
	say(open("one", O_CREAT | O_RDWR, 0644), "%s/%s", folder, "one");
	say(creat("sub/two", 0600), "%s/%s", folder, "sub/two");
	snprintf(name, sizeof(name), "%s/one", folder);
	say(open(name, O_RDONLY), "%s%s", name, "");
	say(open("./one", O_PATH), "%s/%s", folder, "one");
	say(open("sub/../one", O_RDONLY), "%s/%s", folder, "sub/../one");
	sub = open("sub", O_RDONLY | O_DIRECTORY);
	say(sub, "%s/%s", folder, "sub");
	say(openat(sub, "two", O_WRONLY | O_APPEND), "%s/sub/%s", folder, "two");
	say(openat(sub, "missing", O_RDONLY), "%s/sub/%s", folder, "missing");
	say(syscall(SYS_openat2, sub, "two", &how, sizeof(how)), "%s/sub/%s", folder, "two");
	how.resolve = RESOLVE_IN_ROOT;
	say(syscall(SYS_openat2, sub, "/two", &how, sizeof(how)), "%s/sub/%s", folder, "two"); /* the folder is the root */
	how.resolve = 0;
	say(open("one/below", O_RDONLY), "%s/%s", folder, "one/below");
	say(openat(777, "nowhere", O_RDONLY), "[not open]/%s%s", "nowhere", "");
	say(open((const char *)8, O_RDONLY), "%s%s", "[name not readable]", "");
	memset(long_name, 'x', sizeof(long_name));
	memcpy(long_name, "/", 1);
	for (size_t at = 200; at < 4000; at += 200)
		long_name[at] = '/';
	long_name[4000] = '\0';
	say(open(long_name, O_RDONLY), "%s%s", long_name, "");
	open_by_32_bits(folder, sub);
	open_deep(folder);
	open_below_root(folder);
	for (long i = argc > 2 ? atol(argv[2]) : 0; i; i--)
		open("/missing", O_RDONLY);
	fwrite(said, 1, nr_said, stdout);
	return 0;
}
