/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_keeper: which files hold a language's interpreter, which processes run one, and what the kernel side knows of them; and what the frames of an interpreter are called.
 *
 * A layout is not believed because a file's version says so: the code that each frame names is checked when it is read, and a runtime whose first frames are nothing that it would have
 * made is given up, with its reason. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collect/sampler.h"
#include "model/account.h"
#include "process/process_table.h"
#include "runtime/runtime.h"
#include "session/parser.h"

struct runtime_keeper;
/* Borrows all for its life; `sampler` NULL: there is no kernel side (tests). NULL: no memory. */
struct runtime_keeper *runtime_keeper_new(struct sampler *sampler, struct parser *parser, struct process_table *processes, struct account *account);
void runtime_keeper_free(struct runtime_keeper *keeper); /* takes NULL */
/* What the process maps has changed: has the kernel side know its interpreters. *ret_runtimes: bits, as struct sonde_process has them. No mappings: it has ended. 0 or -ENOMEM. */
MUST_CHECK int runtime_keeper_tell(struct runtime_keeper *keeper, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings,
				   uint32_t *ret_runtimes);
/* Makes those processes count as changed whose interpreter had not begun yet when it was looked for. */
void runtime_keeper_retry(struct runtime_keeper *keeper);
/* Loads the program for one of the interpreters that were met for the first time: that takes long, so processes are told of without it before, and count as changed now. False: there are none. */
bool runtime_keeper_load(struct runtime_keeper *keeper);
/* The file is known no more. */
void runtime_keeper_forget(struct runtime_keeper *keeper, uint32_t object);
/* What a frame is called. What cannot be read is counted, and called so in brackets. True: that is a mark, no function. */
bool runtime_keeper_describe(struct runtime_keeper *keeper, uint32_t tgid, const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
/* The interpreter stumbled over memory that is not there: looks at it, so that the kernel brings it back and the next sample finds it. */
void runtime_keeper_touch(uint32_t tgid, uint64_t pc);
#define RUNTIME_NOT_KNOWN "[%s: frames not known]" /* what it ran was not looked at: the process was not known yet, or the thread was not on a CPU */
/* Is that the loop of an interpreter whose frames are not among those of the stack? Either it is not supported, or the stack has none at all. Then the mark that stands for them:
 * "[unsupported python 3.99: ...]", "[python: frames not known]". */
bool runtime_keeper_mark(const struct runtime_keeper *keeper, uint32_t object, uint64_t elf_vaddr, bool has_frames, char *to, size_t size);
