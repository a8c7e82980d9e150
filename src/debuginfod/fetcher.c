// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/fetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/spawn.h"
#include "base/u64_map.h"
#include "debuginfod/debug_cache.h"
#include "debuginfod/fetch_message.h"

enum wanted_state {
	WANTED_NEW,   /* not requested yet */
	WANTED_ASKED,
	WANTED_DONE,
};

struct wanted {
	char build_id[FETCH_ID_CHARS + 1];
	enum wanted_state state;
	int fd; /* for writing while ASKED, for reading when DONE; -1: no file */
};

struct fetcher {
	struct debug_cache *cache;
	char *program, *urls;
	uint64_t max_file_bytes;
	struct helper helper;
	bool is_over;        /* the process has ended, or could not be started: no more requests */
	struct wanted *wanted;
	uint32_t nr, capacity, nr_asked;
	struct u64_map numbers; /* hash of the build id -> number */
	uint64_t bytes;      /* number of bytes fetched */
	uint32_t nr_failed, nr_refused;
	char failure[FETCH_TEXT_BYTES];
};

/* How to reach the servers. The process gets nothing else of our environment. */
static const char *const passed_on[] = { "DEBUGINFOD_TIMEOUT", "http_proxy", "https_proxy", "HTTPS_PROXY",   "all_proxy",
					 "ALL_PROXY",	       "no_proxy",   "NO_PROXY",    "SSL_CERT_FILE", "SSL_CERT_DIR" };

static void fetcher_freep(struct fetcher **fetcher)
{
	fetcher_free(*fetcher);
}

int fetcher_new(const struct fetcher_options *options, struct diag *diag, struct fetcher **ret_fetcher)
{
	CLEANUP(fetcher_freep) struct fetcher *fetcher = calloc(1, sizeof(*fetcher));
	int err;

	if (!fetcher)
		return -ENOMEM;
	fetcher->helper = (struct helper)HELPER_NONE;
	fetcher->max_file_bytes = options->max_file_bytes ? options->max_file_bytes : FETCHER_MAX_FILE_BYTES;
	fetcher->program = strdup(options->program);
	fetcher->urls = strdup(options->urls);
	if (!fetcher->program || !fetcher->urls)
		return -ENOMEM;
	err = debug_cache_open(options->cache_path, fetcher->urls, DEBUG_CACHE_MAX_BYTES, diag, &fetcher->cache);
	if (!err)
		*ret_fetcher = MOVE(fetcher);
	return err;
}

/* --- answers -------------------------------------------------------------------------------------------------------------------------- */

static void fail(struct fetcher *fetcher, struct wanted *wanted, const char *text)
{
	if (wanted->state == WANTED_ASKED)
		fetcher->nr_asked--;
	closep(&wanted->fd);
	wanted->fd = -1;
	wanted->state = WANTED_DONE;
	if (!fetcher->nr_failed++)
		snprintf(fetcher->failure, sizeof(fetcher->failure), "%s", text);
}

/* Fails all open requests: the process will not answer any more. */
static void give_up(struct fetcher *fetcher, const char *text)
{
	spawn_end(&fetcher->helper);
	fetcher->is_over = true;
	for (uint32_t i = 0; i < fetcher->nr; i++) {
		if (fetcher->wanted[i].state != WANTED_DONE)
			fail(fetcher, &fetcher->wanted[i], text);
	}
}

/* Opens the same file for reading only, so that its users cannot write to it. */
static int reopen(int fd)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_CLOEXEC);
}

static void take_file(struct fetcher *fetcher, struct wanted *wanted, uint64_t size)
{
	struct stat st;
	int fd;

	if (fstat(wanted->fd, &st) || st.st_size <= 0 || (uint64_t)st.st_size != size || size > fetcher->max_file_bytes) {
		fail(fetcher, wanted, "what was fetched has another size than is said");
		return;
	}
	fd = reopen(wanted->fd);
	if (fd < 0) {
		fail(fetcher, wanted, strerror(errno));
		return;
	}
	debug_cache_keep(fetcher->cache, wanted->build_id, wanted->fd);
	close(wanted->fd);
	wanted->fd = fd;
	wanted->state = WANTED_DONE;
	fetcher->nr_asked--;
	fetcher->bytes += size;
}

static void take_answer(struct fetcher *fetcher, struct fetch_answer *answer)
{
	struct wanted *wanted = &fetcher->wanted[answer->number < fetcher->nr ? answer->number : 0];

	answer->text[sizeof(answer->text) - 1] = '\0';
	if (answer->number == FETCH_READY) {
		if (answer->status == -ELIBACC)
			give_up(fetcher, "libcurl is not installed (libcurl.so.4; Debian's package libcurl4)");
		else if (answer->status)
			give_up(fetcher, answer->status == -ELIBBAD ? "libcurl is older than 7.66"
								    : "the process that fetches them cannot be shut in");
		return;
	}
	if (answer->number >= fetcher->nr || wanted->state != WANTED_ASKED)
		return; /* not requested */
	if (!answer->status) {
		take_file(fetcher, wanted, answer->size);
	} else if (answer->status == -ENOENT) {
		debug_cache_refuse(fetcher->cache, wanted->build_id);
		closep(&wanted->fd);
		wanted->fd = -1;
		wanted->state = WANTED_DONE;
		fetcher->nr_asked--;
	} else {
		fail(fetcher, wanted, answer->text);
	}
}

static void take_answers(struct fetcher *fetcher)
{
	while (fetcher->helper.socket >= 0) {
		struct fetch_answer answer;
		ssize_t got = recv(fetcher->helper.socket, &answer, sizeof(answer), MSG_DONTWAIT);

		if (got == (ssize_t)sizeof(answer))
			take_answer(fetcher, &answer);
		else if (got < 0 && errno == EAGAIN)
			return;
		else if (got >= 0 || (errno != EINTR &&
				      errno != ECONNRESET)) /* reset: it ended with unread requests; its answers follow */
			give_up(fetcher, "the process that fetches them has ended");
	}
}

void fetcher_free(struct fetcher *fetcher)
{
	if (!fetcher)
		return;
	take_answers(fetcher); /* what arrived during the report is in the cache for the next run */
	spawn_end(&fetcher->helper);
	for (uint32_t i = 0; i < fetcher->nr; i++)
		closep(&fetcher->wanted[i].fd);
	debug_cache_free(fetcher->cache);
	u64_map_done(&fetcher->numbers);
	free(fetcher->wanted);
	free(fetcher->program);
	free(fetcher->urls);
	free(fetcher);
}

/* --- requests ------------------------------------------------------------------------------------------------------------------------- */

static int start(struct fetcher *fetcher, struct diag *diag)
{
	char max_bytes[24], *argv[] = { FETCH_NAME, max_bytes, NULL }, *envp[ARRAY_SIZE(passed_on) + 2] = { NULL };
	size_t nr = 0;
	int err;

	snprintf(max_bytes, sizeof(max_bytes), "%" PRIu64, fetcher->max_file_bytes);
	if (asprintf(&envp[nr], "DEBUGINFOD_URLS=%s", fetcher->urls) > 0)
		nr++;
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (value && asprintf(&envp[nr], "%s=%s", passed_on[i], value) > 0)
			nr++;
	}
	envp[nr] = NULL;
	err =
	    spawn_helper(&(struct spawn_options){ .program = fetcher->program, .argv = argv, .envp = envp, .socket_type = SOCK_SEQPACKET },
			 diag, &fetcher->helper);
	for (size_t i = 0; i < nr; i++)
		free(envp[i]);
	return err;
}

/* Sends a request with the descriptor of the file to be filled. 0 or a negative errno. */
static int send_request(const struct fetcher *fetcher, uint32_t number)
{
	const struct wanted *wanted = &fetcher->wanted[number];
	struct fetch_request request = { .number = number };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = &request, .iov_len = sizeof(request) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	memcpy(request.build_id, wanted->build_id, sizeof(request.build_id));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &wanted->fd, sizeof(int));
	do
		sent = sendmsg(fetcher->helper.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void ask(struct fetcher *fetcher, uint32_t number)
{
	struct wanted *wanted = &fetcher->wanted[number];
	int err;

	if (fetcher->bytes >= FETCHER_MAX_BYTES) {
		fail(fetcher, wanted, "enough was fetched for one profile");
		return;
	}
	wanted->fd = debug_cache_create(fetcher->cache);
	if (wanted->fd < 0) {
		fail(fetcher, wanted, "no file can be made in the cache");
		return;
	}
	err = send_request(fetcher, number);
	if (err) {
		fail(fetcher, wanted, strerror(-err));
		return;
	}
	wanted->state = WANTED_ASKED;
	fetcher->nr_asked++;
}

static void ask_for_new(struct fetcher *fetcher)
{
	struct diag diag = { 0 };

	for (uint32_t i = 0; i < fetcher->nr && fetcher->nr_asked < FETCH_MAX_AT_ONCE && !fetcher->is_over; i++) {
		if (fetcher->wanted[i].state != WANTED_NEW)
			continue;
		if (!fetcher->helper.pid && start(fetcher, &diag)) {
			give_up(fetcher, diag.text);
			return;
		}
		ask(fetcher, i);
	}
}

void fetcher_step(struct fetcher *fetcher, int timeout_ms)
{
	struct pollfd wait = { .events = POLLIN };

	ask_for_new(fetcher);
	wait.fd = fetcher->helper.socket;
	if (fetcher->nr_asked && poll(&wait, 1, timeout_ms) > 0) {
		take_answers(fetcher);
		ask_for_new(fetcher);
	}
}

/* --- wanted files --------------------------------------------------------------------------------------------------------------------- */

static struct wanted *find(const struct fetcher *fetcher, const char *build_id)
{
	const uint32_t *number = u64_map_find(&fetcher->numbers, hash_bytes(build_id, strlen(build_id), 0));

	return number && !strcmp(fetcher->wanted[*number].build_id, build_id) ? &fetcher->wanted[*number] : NULL;
}

bool fetcher_knows(const struct fetcher *fetcher, const char *build_id)
{
	return !debug_cache_is_build_id(build_id) || find(fetcher, build_id);
}

static int grow(struct fetcher *fetcher)
{
	uint32_t capacity = fetcher->capacity ? fetcher->capacity * 2 : 64;
	struct wanted *wanted = reallocarray(fetcher->wanted, capacity, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	fetcher->wanted = wanted;
	fetcher->capacity = capacity;
	return 0;
}

int fetcher_want(struct fetcher *fetcher, const char *build_id)
{
	struct wanted *wanted;
	int fd;

	if (fetcher_knows(fetcher, build_id))
		return 0;
	if (fetcher->nr == FETCHER_MAX_FILES) {
		fetcher->nr_refused++;
		return 0;
	}
	if (fetcher->nr == fetcher->capacity && grow(fetcher))
		return -ENOMEM;
	if (u64_map_add(&fetcher->numbers, hash_bytes(build_id, strlen(build_id), 0), fetcher->nr))
		return -ENOMEM;
	fd = debug_cache_find(fetcher->cache, build_id);
	wanted = &fetcher->wanted[fetcher->nr++];
	*wanted = (struct wanted){ .fd = fd < 0 ? -1 : fd, .state = fd == -ENOENT ? WANTED_NEW : WANTED_DONE };
	memcpy(wanted->build_id, build_id, strlen(build_id));
	if (wanted->state == WANTED_NEW && fetcher->is_over)
		fail(fetcher, wanted, "");
	return 0;
}

int fetcher_fd(const struct fetcher *fetcher, const char *build_id)
{
	const struct wanted *wanted = find(fetcher, build_id);

	return wanted && wanted->state == WANTED_DONE ? wanted->fd : -1;
}

void fetcher_refuse(struct fetcher *fetcher, const char *build_id)
{
	struct wanted *wanted = find(fetcher, build_id);

	if (!wanted || wanted->state != WANTED_DONE)
		return;
	closep(&wanted->fd);
	wanted->fd = -1;
	debug_cache_refuse(fetcher->cache, build_id);
}

struct fetcher_counts fetcher_counts(const struct fetcher *fetcher)
{
	struct fetcher_counts counts = { .nr_failed = fetcher->nr_failed, .nr_refused = fetcher->nr_refused, .failure = fetcher->failure };

	for (uint32_t i = 0; i < fetcher->nr; i++)
		counts.nr_open += fetcher->wanted[i].state != WANTED_DONE;
	return counts;
}
