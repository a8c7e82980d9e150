/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_loader: which files hold a language's interpreter, which processes run one, and what the kernel side knows of them; and what the
 * frames of an interpreter are called.
 *
 * A layout is not believed because a file's version says so: the code that each frame names is checked when it is read, and a runtime whose
 * first frames are nothing that it would have made is given up, with its reason. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collect/sampler.h"
#include "model/account.h"
#include "parse/parser.h"
#include "process/process_table.h"
#include "runtime/runtime.h"
#include "unwind/table_cache.h"

struct runtime_loader;
/* Borrows all for its life; `sampler` NULL: there is no kernel side (tests). NULL: no memory. */
struct runtime_loader *runtime_loader_new(struct sampler *sampler, struct parser *parser, struct proxy *proxy,
					  struct process_table *processes, struct account *account);
void runtime_loader_free(struct runtime_loader *loader); /* takes NULL */
/* Has interpreters noted that processes run. Takes no part in its life. */
void runtime_loader_use_cache(struct runtime_loader *loader, struct table_cache *cache);
/* Sees what is in a file, once. 0 or -ENOMEM. */
MUST_CHECK int runtime_loader_meet(struct runtime_loader *loader, uint32_t object);
/* Some process will run what that file holds: has the programs for it loaded with the next runtime_loader_load. */
void runtime_loader_expect(struct runtime_loader *loader, uint32_t object);
/* What the process maps has changed: has the kernel side know its interpreters, of the files that were met. *ret_runtimes: bits, as struct
 * sonde_process has them. No mappings: it has ended. 0 or -ENOMEM. */
MUST_CHECK int runtime_loader_tell(struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
				   const struct process_mapping *mappings, uint32_t nr_mappings, uint32_t *ret_runtimes);
/* Does code that an interpreter of the process has made begin there? Then *ret_loop, in that file as linked, is the code on whose frame it
 * runs. */
bool runtime_loader_compiled(const struct runtime_loader *loader, uint32_t tgid, uint64_t start_pc, uint32_t *ret_object,
			     struct sonde_code_range *ret_loop);
/* Makes those processes count as changed whose interpreter had not begun yet when it was looked for. */
void runtime_loader_retry(struct runtime_loader *loader);
/* Loads the program for one of the interpreters that were met for the first time: that takes long, so processes are told of without it
 * before, and count as changed now. False: there are none. */
bool runtime_loader_load(struct runtime_loader *loader);
/* The file is known no more. */
void runtime_loader_forget(struct runtime_loader *loader, uint32_t object);
/* What a frame is called; `copy`: of what it is named by, or NULL. What cannot be read is counted, and called so in brackets; when it can
 * be read after all (`is_again`) it is counted no more. What is asked for again is no proof against a layout: memory that was freed holds
 * anything. */
enum runtime_answer runtime_loader_describe(struct runtime_loader *loader, uint32_t tgid, uint32_t generation,
					    const struct sonde_runtime_frame *frame, const struct sonde_code_record *copy, bool is_again,
					    struct runtime_function *ret_function);
/* The interpreter stumbled over memory that is not there: looks at it, so that the kernel brings it back and the next sample finds it. */
void runtime_loader_touch(const struct runtime_loader *loader, uint32_t tgid, uint64_t pc);
/* What is known of the interpreters in a file, as runtime_marks is asked; an image is borrowed until the next call. */
uint32_t runtime_loader_nr_images(const struct runtime_loader *loader, uint32_t object);
const struct runtime_image *runtime_loader_image(const struct runtime_loader *loader, uint32_t object, uint32_t i);
