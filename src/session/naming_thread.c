// SPDX-License-Identifier: Apache-2.0
#include "session/naming_thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/hold_signals.h"

#define CACHE_BYTES ((size_t)8 << 20) /* of names */
#define NOW_NS 1u /* long past */

struct naming_thread {
	struct naming_thread_options options;
	struct parser *parser;
	struct proxy *proxy;
	struct name_cache *cache;
	struct kernel_names *kernel;
	pthread_t thread;
	bool is_started, lines;
	int done_fd;
	uint64_t cost_user_ns, cost_system_ns; /* of the thread, already in an account */
	uint64_t bound_bytes;       /* of the cache; read and written atomically. 0: as it is */
	uint64_t haste_ns;          /* for the oldest unfinished window (clock_is_past) */
	pthread_mutex_t lock;       /* for the members below */
	pthread_cond_t has_changed;
	struct named_window queue[NAMING_THREAD_MAX]; /* oldest first */
	uint32_t nr, nr_done;
	bool is_ending;
};

static int make_profile(struct naming_thread *thread, struct named_window *named)
{
	const struct naming naming = { .parser = thread->parser,
				       .proxy = thread->proxy,
				       .lines = thread->lines,
				       .addresses = thread->options.addresses,
				       .as_linked = thread->options.as_linked,
				       .vmlinux = thread->options.vmlinux,
				       .cache = thread->cache,
				       .kernel = thread->kernel,
				       .haste_ns = &thread->haste_ns };
	uint64_t bound_bytes = __atomic_exchange_n(&thread->bound_bytes, 0, __ATOMIC_RELAXED);
	int err = kernel_names_refresh(thread->kernel);

	if (bound_bytes)
		name_cache_bound(thread->cache, bound_bytes);
	name_cache_now(thread->cache, clock_ns());
	return err ? err : measurement_profile(thread->options.measurement, named->window, &naming, &named->profile, &named->nr_skipped);
}

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * NS_PER_US;
}

/* Adds the CPU time of the thread itself since the last window. */
static void add_cost(struct naming_thread *thread, struct account *account)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	account->cpu_user_ns += timeval_ns(usage.ru_utime) - thread->cost_user_ns;
	account->cpu_system_ns += timeval_ns(usage.ru_stime) - thread->cost_system_ns;
	thread->cost_user_ns = timeval_ns(usage.ru_utime);
	thread->cost_system_ns = timeval_ns(usage.ru_stime);
}

static void name(struct naming_thread *thread, struct named_window *named)
{
	const struct window *window = named->window;
	const struct output_window of_output = { .number = window->number, .start_unix_ns = window->start_ns + window->unix_offset_ns };

	named->err = make_profile(thread, named);
	if (named->err)
		return;
	add_cost(thread, profile_account(named->profile));
	if (thread->options.outputs)
		named->err = outputs_write(thread->options.outputs, named->profile, &of_output, &named->diag);
}

static void *run(void *arg)
{
	struct naming_thread *thread = arg;

	pthread_mutex_lock(&thread->lock);
	while (!thread->is_ending) {
		struct named_window named;

		if (thread->nr_done == thread->nr) {
			pthread_cond_wait(&thread->has_changed, &thread->lock);
			continue;
		}
		named = thread->queue[thread->nr_done];
		pthread_mutex_unlock(&thread->lock);
		name(thread, &named);
		pthread_mutex_lock(&thread->lock);
		thread->queue[thread->nr_done++] = named;
		__atomic_store_n(&thread->haste_ns, 0, __ATOMIC_RELAXED);
		eventfd_write(thread->done_fd, 1);
	}
	pthread_mutex_unlock(&thread->lock);
	return NULL;
}

static int start(struct naming_thread *thread)
{
	HOLD_SIGNALS();
	int err = pthread_create(&thread->thread, NULL, run, thread);

	thread->is_started = !err;
	return -err;
}

int naming_thread_new(const struct naming_thread_options *options, struct diag *diag, struct naming_thread **ret_thread)
{
	struct naming_thread *thread = calloc(1, sizeof(*thread));
	int err;

	if (!thread)
		return -ENOMEM;
	thread->options = *options;
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->has_changed, NULL);
	thread->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = thread->done_fd < 0 ? diag_errno(diag, errno, "no more descriptors: %s", strerror(errno)) :
		parser_new(diag, &thread->parser) ?:
		proxy_new(diag, &thread->proxy);
	thread->cache = name_cache_new(CACHE_BYTES);
	thread->kernel = kernel_names_new();
	if (!err && (!thread->cache || !thread->kernel))
		err = -ENOMEM;
	if (!err) {
		parser_cancel_by(thread->parser, &thread->haste_ns);
		err = start(thread);
	}
	if (err)
		naming_thread_free(thread);
	else
		*ret_thread = thread;
	return err;
}

void naming_thread_want_lines(struct naming_thread *thread, bool lines)
{
	thread->lines = lines;
}

void naming_thread_bound(struct naming_thread *thread, uint64_t max_bytes)
{
	__atomic_store_n(&thread->bound_bytes, max_bytes, __ATOMIC_RELAXED);
}

static void end(struct naming_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	thread->is_ending = true;
	pthread_cond_signal(&thread->has_changed);
	pthread_mutex_unlock(&thread->lock);
	__atomic_store_n(&thread->haste_ns, NOW_NS, __ATOMIC_RELAXED);
	pthread_join(thread->thread, NULL);
}

void naming_thread_free(struct naming_thread *thread)
{
	if (!thread)
		return;
	if (thread->is_started)
		end(thread);
	for (uint32_t i = 0; i < thread->nr; i++) {
		window_free(thread->queue[i].window);
		profile_free(thread->queue[i].profile);
	}
	parser_free(thread->parser);
	proxy_free(thread->proxy);
	name_cache_free(thread->cache);
	kernel_names_free(thread->kernel);
	closep(&thread->done_fd);
	pthread_cond_destroy(&thread->has_changed);
	pthread_mutex_destroy(&thread->lock);
	free(thread);
}

int naming_thread_fd(const struct naming_thread *thread)
{
	return thread->done_fd;
}

uint32_t naming_thread_nr(const struct naming_thread *thread)
{
	return thread->nr; /* no other thread writes it */
}

void naming_thread_give(struct naming_thread *thread, struct window *window)
{
	pthread_mutex_lock(&thread->lock);
	thread->queue[thread->nr++] = (struct named_window){ .window = window };
	pthread_cond_signal(&thread->has_changed);
	pthread_mutex_unlock(&thread->lock);
}

void naming_thread_hurry(struct naming_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	if (thread->nr_done < thread->nr)
		__atomic_store_n(&thread->haste_ns, NOW_NS, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&thread->lock);
}

bool naming_thread_take(struct naming_thread *thread, struct named_window *ret_named)
{
	eventfd_t nr;
	bool is_done;

	pthread_mutex_lock(&thread->lock);
	is_done = thread->nr_done;
	if (is_done) {
		*ret_named = thread->queue[0];
		memmove(thread->queue, thread->queue + 1, (NAMING_THREAD_MAX - 1) * sizeof(thread->queue[0]));
		thread->nr--;
		thread->nr_done--;
	} else {
		eventfd_read(thread->done_fd, &nr);
	}
	pthread_mutex_unlock(&thread->lock);
	return is_done;
}
