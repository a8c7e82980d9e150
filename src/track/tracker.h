/* SPDX-License-Identifier: Apache-2.0 */
/* tracker: keeps the kernel's unwinder up to date. Side-band events go into the process table, its changes into the table store; files seen
 * for the first time get their tables built. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "model/account.h"
#include "parse/parser.h"
#include "process/identities.h"
#include "process/process_table.h"
#include "track/runtime_loader.h"
#include "unwind/deferred_walk.h"
#include "unwind/table_cache.h"
#include "unwind/table_store.h"

struct tracker;
/* Opens the side-band: from now on no event is missed. Borrows `account` (for notes and losses), `parser` and `proxy` for the tracker's
 * life. */
MUST_CHECK int tracker_new(const struct table_store_options *store, struct account *account, struct parser *parser, struct proxy *proxy,
			   struct diag *diag, struct tracker **ret_tracker);
/* As sideband_follow. */
MUST_CHECK int tracker_follow_cpus(struct tracker *tracker, const struct cpus *online, struct diag *diag);
void tracker_free(struct tracker *tracker);
/* Looks for unwind tables on disk before it builds them, and stores them there. Takes over the cache. */
void tracker_use_cache(struct tracker *tracker, struct table_cache *cache);
/* From now on the tracker also detects interpreters and describes them to the kernel side, but for those whose bit 1 << enum sonde_runtime
 * is in `off`. Borrows `sampler` for its life. Call after tracker_use_cache, if that is used, and before tracker_scan. 0 or -ENOMEM. */
MUST_CHECK int tracker_use_runtimes(struct tracker *tracker, struct sampler *sampler, uint32_t off);
/* From now on they are informed of forks, execs and exits. Borrows them for the tracker's life. */
void tracker_use_identities(struct tracker *tracker, struct identities *identities);
struct runtime_loader *tracker_runtimes(const struct tracker *tracker); /* borrowed */
/* Restricts the tracker to these processes and, if `children`, to the children that they start from now on. Call before tracker_scan. */
MUST_CHECK int tracker_only(struct tracker *tracker, const uint32_t *tgids, uint32_t nr_tgids, bool children);
/* As process_table_expect_object: a file that a process is about to map. */
uint32_t tracker_expect(struct tracker *tracker, const char *path);
/* Stops reading the running processes once this descriptor (base/stop_fd) is set. Borrowed for the tracker's life. */
void tracker_stops_by(struct tracker *tracker, int stop_fd);
/* Reads the processes that already run. */
MUST_CHECK int tracker_scan(struct tracker *tracker, struct diag *diag);
/* Processes the events since the last call, and examines one new file, which takes time. */
MUST_CHECK int tracker_read(struct tracker *tracker, struct diag *diag);
bool tracker_has_more(const struct tracker *tracker); /* files not examined yet */
int tracker_fd(const struct tracker *tracker); /* readable when there are events; for epoll, borrowed */
/* The process's mappings at that time, with their tables; borrowed until the tracker's next call. None if they are not known. The result is
 * kept for equal requests between two calls of tracker_read: a process may have thousands of threads and of mappings. 0 or -ENOMEM. */
MUST_CHECK int tracker_process_at(struct tracker *tracker, uint32_t tgid, uint64_t time_ns, struct deferred_process *ret_process);
/* The kernel side did not know the process at that time. If the kernel had an entry for it, it had reason to reject it (the process had
 * just executed another program): the next tracker_read renews the entry. */
void tracker_disbelieved(struct tracker *tracker, uint32_t tgid, uint64_t time_ns);
/* As table_loader_bound. Call between two tracker_read. */
MUST_CHECK int tracker_bound(struct tracker *tracker, uint64_t max_bytes);
const struct table_store *tracker_tables(const struct tracker *tracker); /* borrowed */
const struct process_table *tracker_processes(const struct tracker *tracker);
/* As table_loader_used and table_loader_need: a stack passed through that file; a stack ended because the file's table is not loaded. Call
 * between two tracker_read. */
void tracker_used(struct tracker *tracker, uint32_t object, uint64_t time_ns);
MUST_CHECK int tracker_need(struct tracker *tracker, uint32_t object, uint64_t time_ns, bool *ret_loaded);
/* From time to time: drops mappings that ended so long ago that they are no longer needed, and files without references. Call between two
 * tracker_read. 0 or -ENOMEM. */
MUST_CHECK int tracker_prune(struct tracker *tracker, uint64_t now_ns);
/* Fills in the account's figures on processes, files and tables. */
void tracker_account(const struct tracker *tracker, struct account *account);
