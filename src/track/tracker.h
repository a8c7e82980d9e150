/* SPDX-License-Identifier: Apache-2.0 */
/* tracker: keeps the kernel's unwinder informed: side-band events go into the process table, its changes into the table store, and the
 * tables of files that are met for the first time are built. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "model/account.h"
#include "parse/parser.h"
#include "process/process_table.h"
#include "track/runtime_loader.h"
#include "unwind/deferred_walk.h"
#include "unwind/table_cache.h"
#include "unwind/table_store.h"

struct tracker;
/* Opens the side-band: from now on nothing is missed. `account` (notes and losses go there), `parser` and `proxy` are borrowed for the
 * tracker's life. */
MUST_CHECK int tracker_new(const struct table_store_options *store, struct account *account, struct parser *parser, struct proxy *proxy,
			   struct diag *diag, struct tracker **ret_tracker);
/* As sideband_follow. */
MUST_CHECK int tracker_follow_cpus(struct tracker *tracker, const struct cpus *online, struct diag *diag);
void tracker_free(struct tracker *tracker);
/* Looks for unwind tables on disk before it builds them, and keeps them there. Takes over the cache. */
void tracker_use_cache(struct tracker *tracker, struct table_cache *cache);
/* Has the kernel side know the interpreters of processes, too. Borrowed for the tracker's life. 0 or -ENOMEM. Before tracker_scan. */
MUST_CHECK int tracker_use_runtimes(struct tracker *tracker, struct sampler *sampler);
struct runtime_loader *tracker_runtimes(const struct tracker *tracker); /* borrowed */
/* Keeps to these processes, and to the children they have from now on when `children` says so; else all. Before tracker_scan. */
MUST_CHECK int tracker_only(struct tracker *tracker, const uint32_t *tgids, uint32_t nr_tgids, bool children);
/* Reading what runs does not go on when this descriptor (base/stop_fd) has been told. Borrowed for the tracker's life. */
void tracker_stops_by(struct tracker *tracker, int stop_fd);
/* Reads what runs already. */
MUST_CHECK int tracker_scan(struct tracker *tracker, struct diag *diag);
/* Takes in what has happened since, and looks at one of the files that were not looked at yet, which takes its time. */
MUST_CHECK int tracker_read(struct tracker *tracker, struct diag *diag);
bool tracker_has_more(const struct tracker *tracker); /* such files */
int tracker_fd(const struct tracker *tracker); /* readable when something has happened; for epoll, borrowed */
/* What the process had mapped at that time, with the tables; borrowed until the tracker's next call. None when it is not known. It is made
 * once for all that ask for the same between two tracker_read: a process may have thousands of threads and of mappings. 0 or -ENOMEM. */
MUST_CHECK int tracker_process_at(struct tracker *tracker, uint32_t tgid, uint64_t time_ns, struct deferred_process *ret_process);
/* The kernel side did not know the process at that time. Was it told before that? Then it had reason not to believe it (a program was
 * replaced just then), and is told again with the next tracker_read. */
void tracker_disbelieved(struct tracker *tracker, uint32_t tgid, uint64_t time_ns);
const struct table_store *tracker_tables(const struct tracker *tracker); /* borrowed */
const struct process_table *tracker_processes(const struct tracker *tracker);
/* As table_loader_used and table_loader_need: a stack came to that file; it ended because the file's table is not loaded. Between two
 * tracker_read. */
void tracker_used(struct tracker *tracker, uint32_t object, uint64_t time_ns);
MUST_CHECK int tracker_need(struct tracker *tracker, uint32_t object, uint64_t time_ns, bool *ret_loaded);
/* From time to time forgets mappings that ended so long ago that nobody asks for them, and files that nobody refers to. Between two
 * tracker_read. 0 or -ENOMEM. */
MUST_CHECK int tracker_prune(struct tracker *tracker, uint64_t now_ns);
/* Fills in what the account says of processes, files and tables. */
void tracker_account(const struct tracker *tracker, struct account *account);
