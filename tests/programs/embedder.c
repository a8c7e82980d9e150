// SPDX-License-Identifier: Apache-2.0
/* A program that uses the library beside its own work: embedder FOLDED. Takes two profiles of itself in sequence, then two at once in
 * two threads. Meanwhile a timer interrupts their system calls, and the program waits for any child that ends. Afterwards nothing of the
 * process may have changed: descriptors, children, threads, signals, the working directory, the umask. Nothing is written that it did
 * not request.
 *   embedder FOLDED few    the same with one descriptor available, two, three, ...: a session that fails gives the reason and leaves
 *                          nothing behind either */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

#define MAX_FDS 256

static volatile bool done;
static volatile sig_atomic_t nr_alarms;

static void on_alarm(int signo)
{
	nr_alarms += signo == SIGALRM;
}

/* As programs with their own children do. */
static void on_child(int signo)
{
	int saved = errno;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = saved;
	(void)signo;
}

static void *embedder_work(void *arg)
{
	while (!done)
		;
	return arg;
}

/* Without those of the directory itself. */
static int count_entries(const char *path)
{
	DIR *directory = opendir(path);
	int nr = 0;

	while (directory && readdir(directory))
		nr++;
	if (directory)
		closedir(directory);
	return nr;
}

struct state {
	int nr_fds, nr_tasks;
	void (*handlers[NSIG])(int signo);
	bool is_blocked[NSIG];
	mode_t mask;
	char directory[4096];
	bool has_children;
};

static void take_state(struct state *state)
{
	struct sigaction action;
	siginfo_t info;
	sigset_t blocked;

	memset(state, 0, sizeof(*state));
	state->nr_fds = count_entries("/proc/self/fd");
	state->nr_tasks = count_entries("/proc/self/task");
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int i = 1; i < NSIG; i++) {
		state->handlers[i] = sigaction(i, NULL, &action) ? SIG_ERR : action.sa_handler;
		state->is_blocked[i] = sigismember(&blocked, i) == 1;
	}
	state->mask = umask(0);
	umask(state->mask);
	if (!getcwd(state->directory, sizeof(state->directory)))
		abort();
	state->has_children = !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

static bool is_other(const char *what, bool other)
{
	if (other)
		printf("other: %s\n", what);
	return other;
}

static int compare(const struct state *before)
{
	struct state after;
	int nr = 0;

	for (int i = 0; i < 50; i++) { /* a joined thread may still be visible for a moment */
		take_state(&after);
		if (after.nr_tasks == before->nr_tasks)
			break;
		usleep(20000);
	}
	nr += is_other("descriptors", after.nr_fds != before->nr_fds);
	nr += is_other("threads", after.nr_tasks != before->nr_tasks);
	nr += is_other("signals", memcmp(after.handlers, before->handlers, sizeof(after.handlers)) ||
				      memcmp(after.is_blocked, before->is_blocked, sizeof(after.is_blocked)));
	nr += is_other("mask", after.mask != before->mask);
	nr += is_other("directory", strcmp(after.directory, before->directory));
	nr += is_other("children", after.has_children);
	return nr;
}

/* Writes PATH; prints the reason on failure. */
static void *profile_self(void *path)
{
	unsigned int self = (unsigned int)getpid();
	const struct sonde_sampling_options sampling = { .size = sizeof(sampling), .freq_hz = 99 };
	struct sonde_session_options options = {
		.size = sizeof(options), .tgids = &self, .nr_tgids = 1, .sampling = &sampling, .duration_ns = 1000000000
	};
	struct sonde_session *session = NULL;

	if (sonde_session_new(&options, &session) || sonde_session_add_output(session, path, NULL) || sonde_session_run(session) ||
	    sonde_session_write(session))
		printf("failed: %s\n", sonde_session_error(session));
	else if (sonde_session_run(session) != -EINVAL)
		puts("a session ran twice");
	sonde_session_free(session);
	return NULL;
}

/* Takes all descriptors but that many, and releases them. */
static void take_all_but(int nr, bool taken[MAX_FDS])
{
	int fd, nr_kept = 0;

	while ((fd = dup(0)) >= 0)
		taken[fd] = true;
	for (fd = MAX_FDS - 1; fd >= 0 && nr_kept < nr; fd--) {
		if (taken[fd]) {
			close(fd);
			taken[fd] = false;
			nr_kept++;
		}
	}
}

static void give_back(const bool taken[MAX_FDS])
{
	for (int fd = 0; fd < MAX_FDS; fd++) {
		if (taken[fd])
			close(fd);
	}
}

/* 1: the session succeeded. */
static int try_with_few(const char *path, int nr)
{
	unsigned int self = (unsigned int)getpid();
	const struct sonde_sampling_options sampling = { .size = sizeof(sampling), .freq_hz = 99 };
	struct sonde_session_options options = {
		.size = sizeof(options), .tgids = &self, .nr_tgids = 1, .sampling = &sampling, .duration_ns = 20000000
	};
	struct sonde_session *session = NULL;
	bool taken[MAX_FDS] = { false };
	int err;

	take_all_but(nr, taken);
	err = sonde_session_new(&options, &session);
	if (!err)
		err = sonde_session_add_output(session, path, NULL);
	if (!err)
		err = sonde_session_run(session);
	if (!err)
		err = sonde_session_write(session);
	if (err && (!*sonde_session_error(session) || sonde_session_exit_code(session) == SONDE_EXIT_REPORT))
		printf("with %d descriptors: no reason for %d\n", nr, err);
	if (err)
		fprintf(stderr, "%d: %s\n", nr, sonde_session_error(session));
	sonde_session_free(session);
	give_back(taken);
	return !err;
}

static int try_with_few_more(const char *path, const struct state *before)
{
	int nr_good = 0, nr_other = 0;

	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ MAX_FDS, MAX_FDS }))
		abort();
	for (int nr = 0; nr < MAX_FDS / 2 && nr_good < 5; nr++) {
		nr_good += try_with_few(path, nr);
		nr_other += compare(before);
	}
	if (nr_good < 3)
		puts("never enough");
	return nr_other;
}

static void set_timer(int every_us)
{
	const struct itimerval interval = { .it_interval.tv_usec = every_us, .it_value.tv_usec = every_us };

	if (setitimer(ITIMER_REAL, &interval, NULL))
		abort();
}

int main(int argc, char **argv)
{
	const struct sigaction interrupt = { .sa_handler = on_alarm }, reap = { .sa_handler = on_child }; /* no SA_RESTART */
	pthread_t worker, other;
	struct state before;
	char second[4096];
	int code;

	if (sonde_is_worker(argc, argv, &code))
		return code;
	if (argc < 2 || sigaction(SIGALRM, &interrupt, NULL) || sigaction(SIGCHLD, &reap, NULL) ||
	    pthread_create(&worker, NULL, embedder_work, NULL))
		return 2;
	take_state(&before);
	if (argc > 2)
		return try_with_few_more(argv[1], &before);
	set_timer(2000);
	profile_self(argv[1]);
	profile_self(argv[1]);
	snprintf(second, sizeof(second), "%s.second.folded", argv[1]);
	if (pthread_create(&other, NULL, profile_self, second))
		return 2;
	profile_self(argv[1]);
	pthread_join(other, NULL);
	set_timer(0);
	if (nr_alarms < 100)
		printf("only %d signals\n", (int)nr_alarms);
	code = compare(&before) != 0;
	done = true;
	pthread_join(worker, NULL);
	puts("end");
	return code;
}
