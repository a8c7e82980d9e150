// SPDX-License-Identifier: Apache-2.0
#include "flight/oom_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/plain_text.h"
#include "base/small_file.h"

#define COUNTS_BYTES 32768
#define RECORD_BYTES 8192
#define PID_BYTES    16
#define MAX_LINES    65536 /* of the log: others may write into it faster than we read */
#define LATE_NS	     (20 * NS_PER_MS) /* the kernel counts before it writes */

static int read_count(uint64_t *ret_nr)
{
	static const char name[] = "\noom_kill ";
	char text[COUNTS_BYTES], *at;
	int err = small_file_read(AT_FDCWD, "/proc/vmstat", text, sizeof(text));

	if (err)
		return err;
	at = strstr(text, name);
	if (!at)
		return -ENODATA;
	at += strlen(name);
	at[strcspn(at, "\n")] = '\0';
	return number_u64(at, UINT64_MAX, ret_nr);
}

int oom_watch_init(struct oom_watch *watch, struct diag *diag)
{
	int err;

	*watch = (struct oom_watch){ .log_fd = -1 };
	err = read_count(&watch->nr_killed);
	if (err)
		return diag_errno(diag, EOPNOTSUPP, "trigger 'oom': /proc/vmstat has no oom_kill: %s", strerror(-err));
	watch->log_fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (watch->log_fd >= 0)
		lseek(watch->log_fd, 0, SEEK_END);
	return 0;
}

void oom_watch_done(struct oom_watch *watch)
{
	closep(&watch->log_fd);
	watch->log_fd = -1;
}

/* "3,1234,5678,-;Out of memory: Killed process 185 (web) total-vm:..." Programs write there too, but not in the kernel's name: its own have
 * a number below 8. */
static bool take_victim(char *record, char *words, size_t room)
{
	static const char killed[] = "Killed process ";
	char *text = strchr(record, ';'), pid[PID_BYTES], *at, *end;
	size_t nr_digits;

	at = text && record[1] == ',' && record[0] >= '0' && record[0] < '8' ? strstr(text, killed) : NULL;
	if (!at)
		return false;
	at += strlen(killed);
	nr_digits = strspn(at, "0123456789");
	snprintf(pid, sizeof(pid), "%.*s", (int)nr_digits, at);
	at += nr_digits;
	end = strpbrk(at, "\n)");
	if (strncmp(at, " (", 2) != 0 || !end)
		return false;
	*end = '\0';
	plain_make(at);
	snprintf(words, room, "process %s (%.32s)", pid, at + 2);
	return true;
}

/* The last victim of those in the log. */
static bool read_log(struct oom_watch *watch, char *words, size_t room)
{
	char record[RECORD_BYTES + 1];
	bool found = false;

	for (uint32_t i = 0; i < MAX_LINES; i++) {
		ssize_t size = read(watch->log_fd, record, RECORD_BYTES);

		if (size < 0 && errno == EPIPE) /* what was next is overwritten */
			continue;
		if (size <= 0)
			break;
		record[size] = '\0';
		found |= take_victim(record, words, room);
	}
	return found;
}

bool oom_watch_look(struct oom_watch *watch, char *words, size_t room)
{
	const struct timespec late = { .tv_nsec = LATE_NS };
	uint64_t before = watch->nr_killed;

	if (read_count(&watch->nr_killed)) {
		watch->nr_unread++;
		return false;
	}
	if (watch->nr_killed <= before)
		return false;
	*words = '\0';
	if (watch->log_fd >= 0 && !read_log(watch, words, room)) {
		nanosleep(&late, NULL);
		read_log(watch, words, room);
	}
	return true;
}
