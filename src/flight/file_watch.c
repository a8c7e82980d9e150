// SPDX-License-Identifier: Apache-2.0
#include "flight/file_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/number.h"
#include "base/timed_wait.h"

#define TEXT_BYTES 64
#define JOIN_NS	   (100 * NS_PER_MS)
#define BLANKS	   " \t\r\n"

enum file_answer { ANSWER_NONE, ANSWER_NUMBER, ANSWER_MISSING, ANSWER_IRREGULAR, ANSWER_NO_NUMBER };

struct file_watch {
	char *path;
	pthread_t thread;
	pthread_mutex_t lock; /* for all below */
	pthread_cond_t has_changed;
	bool is_wanted, is_ending, is_done, is_abandoned;
	enum file_answer answer; /* ANSWER_NONE: taken already, or not there yet */
	double value;
};

static void watch_free(struct file_watch *watch)
{
	pthread_cond_destroy(&watch->has_changed);
	pthread_mutex_destroy(&watch->lock);
	free(watch->path);
	free(watch);
}

/* A service may write it with a newline and blanks around. */
static enum file_answer number_of(char *text, double *ret_value)
{
	char *begin = text + strspn(text, BLANKS), *end = begin + strcspn(begin, BLANKS);

	if (end[strspn(end, BLANKS)])
		return ANSWER_NO_NUMBER;
	*end = '\0';
	return number_decimal(begin, ret_value) ? ANSWER_NO_NUMBER : ANSWER_NUMBER;
}

/* A FIFO or a device would block, or do something. */
static enum file_answer read_file(const char *path, double *ret_value)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[TEXT_BYTES + 1];
	struct stat status;
	ssize_t size;

	if (fd < 0 || fstat(fd, &status))
		return ANSWER_MISSING;
	if (!S_ISREG(status.st_mode))
		return ANSWER_IRREGULAR;
	size = read(fd, text, sizeof(text));
	if (size < 0 || (size_t)size == sizeof(text) || memchr(text, '\0', (size_t)size))
		return size < 0 ? ANSWER_MISSING : ANSWER_NO_NUMBER;
	text[size] = '\0';
	return number_of(text, ret_value);
}

static void *run(void *arg)
{
	struct file_watch *watch = arg;
	bool is_abandoned;

	pthread_mutex_lock(&watch->lock);
	while (!watch->is_ending) {
		enum file_answer answer;
		double value = 0;

		if (!watch->is_wanted) {
			pthread_cond_wait(&watch->has_changed, &watch->lock);
			continue;
		}
		watch->is_wanted = false;
		pthread_mutex_unlock(&watch->lock);
		answer = read_file(watch->path, &value);
		pthread_mutex_lock(&watch->lock);
		watch->answer = answer;
		watch->value = value;
	}
	watch->is_done = true;
	is_abandoned = watch->is_abandoned;
	pthread_mutex_unlock(&watch->lock);
	if (is_abandoned)
		watch_free(watch);
	return NULL;
}

int file_watch_start(const char *path, struct diag *diag, struct file_watch **ret_watch)
{
	HOLD_SIGNALS();
	struct file_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->path = strdup(path);
	watch->is_wanted = true;
	pthread_mutex_init(&watch->lock, NULL);
	timed_cond_init(&watch->has_changed);
	err = watch->path ? pthread_create(&watch->thread, NULL, run, watch) : ENOMEM;
	if (err) {
		watch_free(watch);
		return diag_errno(diag, err, "no thread to read %.200s: %s", path, strerror(err));
	}
	*ret_watch = watch;
	return 0;
}

const char *file_watch_take(struct file_watch *watch, double *ret_value)
{
	static const char *const words[] = {
		[ANSWER_NONE] = "it does not answer", [ANSWER_NUMBER] = NULL,
		[ANSWER_MISSING] = "it cannot be read", [ANSWER_IRREGULAR] = "it is no regular file",
		[ANSWER_NO_NUMBER] = "it holds no number, as 200 or 0.5",
	};
	enum file_answer answer;

	pthread_mutex_lock(&watch->lock);
	answer = watch->answer;
	*ret_value = watch->value;
	watch->answer = ANSWER_NONE;
	watch->is_wanted = true;
	pthread_cond_signal(&watch->has_changed);
	pthread_mutex_unlock(&watch->lock);
	return words[answer];
}

void file_watch_end(struct file_watch *watch)
{
	bool is_done;

	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->is_ending = true;
	pthread_cond_signal(&watch->has_changed);
	pthread_mutex_unlock(&watch->lock);
	if (timed_join(watch->thread, clock_ns() + JOIN_NS)) {
		watch_free(watch);
		return;
	}
	pthread_detach(watch->thread);
	pthread_mutex_lock(&watch->lock);
	is_done = watch->is_done; /* just now */
	watch->is_abandoned = true;
	pthread_mutex_unlock(&watch->lock);
	if (is_done)
		watch_free(watch);
}
