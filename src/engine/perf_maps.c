// SPDX-License-Identifier: Apache-2.0
#include "engine/perf_maps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "process/dotnet_socket.h"
#include "process/jit_files.h"

#define BEGIN_NS (3 * NS_PER_S) /* a process with 100,000 methods lists them in less than one */
#define END_NS	 NS_PER_S
#define HELPS	 "DOTNET_PerfMapEnabled=1 in its environment writes one from its start on"

struct writer {
	uint32_t tgid;
	int fd;	      /* for the answer; -1: none is expected */
	bool is_ours; /* it writes because we asked it to, or may do so */
};

struct perf_maps {
	struct proxy *proxy;
	struct writer *writers;
	uint32_t nr;
};

static void perf_maps_free(struct perf_maps *maps)
{
	if (!maps)
		return;
	for (uint32_t i = 0; i < maps->nr; i++)
		closep(&maps->writers[i].fd);
	free(maps->writers);
	free(maps);
}

static void perf_maps_freep(struct perf_maps **maps)
{
	perf_maps_free(*maps);
}

/* --- the start ------------------------------------------------------------------------------------------------------------------------ */

static void note_no_socket(const struct writer *writer, int err, struct account *account)
{
	if (err == -ENOENT || err == -ECONNREFUSED)
		account_note(account, "process %" PRIu32 " is asked for no perf map: it has no diagnostics socket, as it is no .NET or "
				      "DOTNET_EnableDiagnostics is 0; " HELPS, writer->tgid);
	else if (err == -EPERM || err == -ENOTSOCK)
		account_note(account, "process %" PRIu32 " is asked for no perf map: its diagnostics socket is another process's",
			     writer->tgid);
	else
		account_note(account, "process %" PRIu32 " is asked for no perf map: its diagnostics socket cannot be reached: %s",
			     writer->tgid, strerror(-err));
}

static void ask(struct perf_maps *maps, struct writer *writer, struct account *account)
{
	if (dotnet_writes_perf_map(writer->tgid))
		return;
	writer->fd = dotnet_socket_send(maps->proxy, writer->tgid, DOTNET_ENABLE_PERF_MAP);
	writer->is_ours = writer->fd >= 0;
	if (writer->fd < 0 && writer->fd != -ESRCH)
		note_no_socket(writer, writer->fd, account);
}

/* The runtime says that it writes a map also where it could not make the file. */
static void check_map(const struct perf_maps *maps, const struct writer *writer, struct account *account)
{
	CLEANUP(jit_files_done) struct jit_files files;

	jit_files_open(&(struct jit_process){ .proxy = maps->proxy, .tgid = writer->tgid, .number = jit_files_number(writer->tgid) },
		       &files);
	if (files.nr)
		return;
	account_note(account, "process %" PRIu32 " writes a perf map, but %s: its /tmp must take files, and "
			      "DOTNET_PerfMapJitDumpPath lead nowhere else",
		     writer->tgid, files.nr_refused ? "there is somebody else's" : "it is not there");
}

static void take_answer(struct perf_maps *maps, struct writer *writer, int stop_fd, uint64_t until_ns, struct account *account)
{
	uint32_t reason;
	int err = dotnet_socket_wait(writer->fd, stop_fd, until_ns, &reason);

	closep(&writer->fd);
	writer->fd = -1;
	if (err == -EOPNOTSUPP) {
		writer->is_ours = false;
		account_note(account, "process %" PRIu32 " refuses to write a perf map (%#" PRIx32 "): .NET 8 and newer do; " HELPS,
			     writer->tgid, reason);
	} else if (err == -ETIMEDOUT) {
		account_note(account, "process %" PRIu32 " did not answer in time that it writes a perf map: names may be missing",
			     writer->tgid);
	} else if (err == -EPROTO) {
		account_note(account, "process %" PRIu32 " answered something else than that it writes a perf map", writer->tgid);
	} else if (!err) {
		check_map(maps, writer, account);
	}
}

static int maps_new(struct proxy *proxy, const struct targets *targets, struct perf_maps **ret_maps)
{
	CLEANUP(perf_maps_freep) struct perf_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	maps->proxy = proxy;
	maps->writers = calloc(targets->nr, sizeof(*maps->writers));
	if (!maps->writers)
		return -ENOMEM;
	for (; maps->nr < targets->nr; maps->nr++)
		maps->writers[maps->nr] = (struct writer){ .tgid = targets->list[maps->nr].tgid, .fd = -1 };
	*ret_maps = MOVE(maps);
	return 0;
}

int perf_maps_begin(struct proxy *proxy, const struct targets *targets, int stop_fd, struct account *account, struct perf_maps **ret_maps)
{
	struct perf_maps *maps;
	uint64_t until_ns;
	int err = maps_new(proxy, targets, &maps);

	if (err)
		return err;
	for (uint32_t i = 0; i < maps->nr; i++)
		ask(maps, &maps->writers[i], account);
	until_ns = clock_ns() + BEGIN_NS;
	for (uint32_t i = 0; i < maps->nr; i++) {
		if (maps->writers[i].fd >= 0)
			take_answer(maps, &maps->writers[i], stop_fd, until_ns, account);
	}
	*ret_maps = maps;
	return 0;
}

/* --- the end -------------------------------------------------------------------------------------------------------------------------- */

static void note_goes_on(const struct writer *writer, struct account *account)
{
	account_note(account, "process %" PRIu32 " may go on writing its perf map: it did not answer that it ends it", writer->tgid);
}

void perf_maps_end(struct perf_maps *maps, struct account *account)
{
	uint64_t until_ns;

	if (!maps)
		return;
	for (uint32_t i = 0; i < maps->nr; i++) {
		struct writer *writer = &maps->writers[i];

		writer->fd = writer->is_ours ? dotnet_socket_send(maps->proxy, writer->tgid, DOTNET_DISABLE_PERF_MAP) : -1;
		if (writer->is_ours && writer->fd < 0 && writer->fd != -ESRCH && writer->fd != -ENOENT)
			note_goes_on(writer, account);
	}
	until_ns = clock_ns() + END_NS;
	for (uint32_t i = 0; i < maps->nr; i++) {
		uint32_t reason;

		if (maps->writers[i].fd >= 0 && dotnet_socket_wait(maps->writers[i].fd, -1, until_ns, &reason))
			note_goes_on(&maps->writers[i], account);
	}
	perf_maps_free(maps);
}
