/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_loader: finds the files that hold a language's interpreter and the processes that run one, informs the kernel side of them, and
 * resolves interpreter frames.
 *
 * A file's version alone does not prove a layout: the code that each frame refers to is checked when it is read. A runtime whose first
 * frames are all invalid is given up, with the reason. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collect/sampler.h"
#include "model/account.h"
#include "parse/parser.h"
#include "process/process_table.h"
#include "runtime/recognised.h"
#include "runtime/runtime.h"
#include "unwind/table_cache.h"

struct runtime_loader;
/* Borrows all arguments for its life; `sampler` NULL: there is no kernel side (tests). NULL: no memory. */
struct runtime_loader *runtime_loader_new(struct sampler *sampler, struct parser *parser, struct proxy *proxy,
					  struct process_table *processes, struct account *account);
void runtime_loader_free(struct runtime_loader *loader); /* takes NULL */
/* Records in the cache which interpreters processes run. Does not own the cache. */
void runtime_loader_use_cache(struct runtime_loader *loader, struct table_cache *cache);
/* Takes no notice of these: bits 1 << enum sonde_runtime. Call it before the first file is examined. */
void runtime_loader_switch_off(struct runtime_loader *loader, uint32_t off);
/* Examines a file, once. 0 or -ENOMEM; -EINPROGRESS: call again later. */
MUST_CHECK int runtime_loader_meet(struct runtime_loader *loader, uint32_t object);
/* A process will run this file: its programs are loaded by the next runtime_loader_load. */
void runtime_loader_expect(struct runtime_loader *loader, uint32_t object);
/* The process's mappings have changed: informs the kernel side of its interpreters, as far as their files were examined. *ret_runtimes:
 * bits, as in struct sonde_process. No mappings: the process has ended. 0 or -ENOMEM. */
MUST_CHECK int runtime_loader_tell(struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
				   const struct process_mapping *mappings, uint32_t nr_mappings, uint32_t *ret_runtimes);
/* Does code that one of the process's interpreters made begin at start_pc? Then *ret_loop, in that file as linked, is the code whose frame
 * it runs on. */
bool runtime_loader_compiled(const struct runtime_loader *loader, uint32_t tgid, uint64_t start_pc, uint32_t *ret_object,
			     struct sonde_code_range *ret_loop);
/* The enum sonde_runtime that owns this mapping's code, or the part *ret_part of it, and whose program walks its frames;
 * SONDE_RUNTIME_NONE. *ret_is_file: the code is the runtime's own file's. */
uint32_t runtime_loader_owner(const struct runtime_loader *loader, uint32_t tgid, const struct process_mapping *mapping,
			      struct sonde_code_range *ret_part, bool *ret_is_file);
/* What the kernel side knows of that runtime in the process, for a walk in user space; NULL: nothing, or it is of another generation.
 * Borrowed until the process changes. */
const union sonde_runtime_known *runtime_loader_known(const struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
						      uint32_t kind);
/* The runtime of the process that is only recognised, also after the process's end; NULL: none is known. */
const struct recognised *runtime_loader_recognised(const struct runtime_loader *loader, uint32_t tgid);
/* Marks processes as changed whose interpreter was not initialized when it was looked for. */
void runtime_loader_retry(struct runtime_loader *loader);
/* Loads the program for one interpreter that was found for the first time. That takes long, so its processes are first reported without it,
 * and are marked as changed now. False: nothing to load. */
bool runtime_loader_load(struct runtime_loader *loader);
/* The file number is no longer in use. */
void runtime_loader_forget(struct runtime_loader *loader, uint32_t object);
/* Resolves a frame; `copy` (may be NULL): memory to read the name from. A name that cannot be read is counted, and is "[unknown]". If a
 * later attempt (`is_again`) succeeds, the count is reduced. A failed later attempt is no evidence against the layout: freed memory holds
 * anything. */
enum runtime_answer runtime_loader_describe(struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
					    const struct sonde_runtime_frame *frame, const struct sonde_code_record *copy, bool is_again,
					    struct runtime_function *ret_function);
/* The interpreter hit memory that is not present: reads it, so that the kernel brings it in for the next sample. */
void runtime_loader_touch(const struct runtime_loader *loader, uint32_t tgid, uint64_t pc);
/* The interpreters of a file, for runtime_marks; an image is borrowed until the next call. */
uint32_t runtime_loader_nr_images(const struct runtime_loader *loader, uint32_t object);
const struct runtime_image *runtime_loader_image(const struct runtime_loader *loader, uint32_t object, uint32_t i);
