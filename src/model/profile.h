/* SPDX-License-Identifier: Apache-2.0 */
/* profile: the recorded data, dictionary-coded: strings, functions, mappings, locations, stacks, samples, histograms. It is the only data
 * structure between the stages: every verb makes one, every format reads one. Entries are numbered from 0 in order of arrival; equal
 * entries are stored once (locations: all fields equal). Everything lives until profile_free. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/runtime_list.h"
#include "base/cleanup.h"
#include "model/account.h"
#include "model/histogram.h"

#define PROFILE_NONE UINT32_MAX /* no such entry, or no memory */
#define PROFILE_EMPTY_STRING 0  /* the string "" of every profile */
#define PROFILE_NO_LABELS 0     /* the empty set of every profile */
#define PROFILE_MAX_VALUES 6    /* per sample; Go's heap profiles have four */
#define PROFILE_TOO_MANY_VALUES "a profile has up to 6 kinds of values"
_Static_assert(PROFILE_MAX_VALUES == 6, "PROFILE_TOO_MANY_VALUES says another number");

/* The function names of FRAME_MISSED. */
#define PROFILE_MISSED_USER "[Missed User Stack]"
#define PROFILE_MISSED_KERNEL "[Missed Kernel Stack]"

#define PROFILE_KERNEL_KADDR (1ULL << 63) /* kernel addresses begin here, except the page [vsyscall] */

/* Names of marks. */
/* Before frames of an interpreter whose position among the native frames is not known. */
#define PROFILE_NO_NATIVES "[native frames not known]"
/* Between the two ends of a stack that is too deep to be kept whole. */
#define PROFILE_CUT "[frames left out]"
/* Stands at the leaf end of a waiting thread's stack. Beyond it are the frames of the waker, from its leaf on, then a mark with its
 * name. */
#define PROFILE_WAKER "--"
#define PROFILE_INTERRUPT "[interrupt]" /* replaces the waker's name if an interrupt ended the wait */
/* The states of all the threads' time (wall), at the root end. */
#define PROFILE_ON_CPU "[on-cpu]"
#define PROFILE_RUNNABLE "[runnable]"
#define PROFILE_BLOCKED "[blocked: %s]" /* the kind of wait */

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_MISSED, /* the user or kernel side is not known: the only frame of its stack */
	FRAME_MARK,   /* stands for missing frames: at the root end why the stack ends there ([truncated]), elsewhere what was left out */
/* Frames of an interpreter: between native frames, replacing those of its loop. They have a function and a line, but no mapping; pc,
 * elf_vaddr and is_inlined are 0. */
#define X(id, ...) FRAME_##id,
	SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	FRAME_KIND_COUNT,
};

struct profile_mapping { /* where a file was mapped; kernel frames and marks have no mapping */
	uint64_t start_pc, end_pc, file_off;
	uint32_t path, build_id; /* strings; build_id "" when there is none */
};

struct profile_function {
	uint32_t name, system_name; /* strings: as shown (demangled), and as linked */
	uint32_t file;              /* string: source file; "": not known */
	uint32_t line;              /* its first line; 0: not known */
};

struct profile_location {
	uint64_t pc;           /* the interrupted instruction, or the return address; 0 for marks and interpreter frames */
	uint64_t elf_vaddr;    /* pc as linked; 0: no mapping */
	uint64_t function_off; /* pc - start of the symbol; 0: no symbol */
	uint32_t mapping;      /* or PROFILE_NONE */
	uint32_t function;     /* always set: a name in brackets if there is no symbol */
	uint32_t kind;         /* enum frame_kind */
	uint32_t line;         /* source line at pc or, for a caller, of the call; 0: not known */
	/* 1: inlined into the function of the stack's next location, which has the same pc (in a waker's frames: of the previous one); else
	 * 0 */
	uint32_t is_inlined;
	/* 1: the address is all that is known, the function is its file in brackets: whoever reads the profile looks up the name */
	uint32_t is_nameless;
};

/* How the values of samples that are counted together are combined. */
enum value_fold {
	VALUE_SUM,
	VALUE_MIN, /* 0: no value */
	VALUE_MAX,
	VALUE_FOLD_COUNT,
};

struct profile_value_type {
	uint32_t type, unit; /* strings: "samples", "count"; "cpu", "nanoseconds" */
	uint32_t fold;       /* enum value_fold */
};

struct profile_label { /* zero it before filling it: it is compared as bytes */
	uint32_t key, text; /* strings; text "" for a number */
	int64_t number;
	uint32_t unit;      /* string: of the number, "" when it has none */
	uint32_t is_number; /* 1, else 0 */
};

struct profile_sample { /* equal samples, apart from their values, are one entry */
	uint32_t user_stack, kernel_stack; /* PROFILE_NONE: the side does not exist or was not requested */
	uint32_t tgid, tid;                /* 0: not known */
	uint32_t cpu;                      /* PROFILE_NONE: not known */
	uint32_t comm;                     /* string */
	uint32_t labels;                   /* or PROFILE_NO_LABELS */
	uint32_t pad;                      /* zero */
	uint64_t time_ns;                  /* since 1970; 0: not recorded, the sample covers all times of the profile */
	int64_t values[PROFILE_MAX_VALUES];/* by profile_value_type; unused ones are 0 */
};

struct profile_histogram { /* equal histograms, apart from their counts, are one entry */
	uint32_t name, unit;               /* strings: what was counted, "run queue latency"; "us", "" */
	uint32_t key;                      /* string: the group, "pid 185"; "": no group */
	uint32_t user_stack, kernel_stack; /* both PROFILE_NONE: of no stack. Else of the samples with these and: */
	uint32_t comm, tgid, tid;          /* as in a sample; 0 without a stack */
	struct histogram histogram;
};

static inline bool histogram_has_stack(const struct profile_histogram *histogram)
{
	return histogram->user_stack != PROFILE_NONE || histogram->kernel_stack != PROFILE_NONE;
}

const char *value_fold_name(enum value_fold fold); /* "sum", "min", "max" */
/* Combines two values. 0 is neutral as long as values are not negative. A sum that would overflow stays at the limit. */
int64_t value_fold(uint32_t fold, int64_t a, int64_t b);
/* FRAME_KIND_COUNT: there is none of this name. */
enum frame_kind frame_kind_by_name(const char *name);
const char *frame_kind_name(enum frame_kind kind); /* "native", "kernel", "missed", "mark", or as in SONDE_RUNTIME_LIST */
/* True: a frame of an interpreter. */
static inline bool frame_is_interpreted(uint32_t kind)
{
	return kind > FRAME_MARK && kind < FRAME_KIND_COUNT;
}

struct profile;
struct profile *profile_new(void); /* NULL: no memory */
void profile_free(struct profile *profile);
/* Ends adding entries: frees the memory that finds equal entries. Adding an entry afterwards returns "no memory". */
void profile_close(struct profile *profile);
static inline void profile_freep(struct profile **profile)
{
	profile_free(*profile);
}

#define PROFILE_TEXT_BYTES 65536 /* of a string; a longer one, such as a name that a program made up, is cut and ends with "..." */

/* Each returns the entry's number, the old one if there is an equal entry; PROFILE_NONE: no memory. */
uint32_t profile_string(struct profile *profile, const char *text);
uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping);
uint32_t profile_function(struct profile *profile, const struct profile_function *function);
uint32_t profile_location(struct profile *profile, const struct profile_location *location);
uint32_t profile_stack(struct profile *profile, const uint32_t *locations, uint32_t nr_locations); /* leaf first */
uint32_t profile_labels(struct profile *profile, const struct profile_label *labels, uint32_t nr_labels); /* in the order given */
/* Adds its counts to those of an equal histogram. */
uint32_t profile_histogram(struct profile *profile, const struct profile_histogram *histogram);
/* Folds the sample's values into those of an equal sample, or adds a sample. The value types must be set before. 0 or -ENOMEM. */
MUST_CHECK int profile_add(struct profile *profile, const struct profile_sample *sample);
/* Sets the types of the values, 1 to PROFILE_MAX_VALUES, sums first. A new profile has one type, samples in count. `shown` is the number of
 * the value that formats with room for one value write. */
void profile_set_value_types(struct profile *profile, const struct profile_value_type *types, uint32_t nr_types, uint32_t shown);

/* Readers. Borrowed until the next call that adds an entry of the same kind; the number must be a valid one. */
const char *profile_string_text(const struct profile *profile, uint32_t string);
const struct profile_mapping *profile_mapping_at(const struct profile *profile, uint32_t mapping);
const struct profile_function *profile_function_at(const struct profile *profile, uint32_t function);
const struct profile_location *profile_location_at(const struct profile *profile, uint32_t location);
const uint32_t *profile_stack_at(const struct profile *profile, uint32_t stack, uint32_t *ret_nr_locations);
/* Number of frames of the waker at the stack's leaf end, with the mark behind them. */
uint32_t profile_nr_of_waker(const struct profile *profile, uint32_t stack);
const struct profile_sample *profile_sample_at(const struct profile *profile, uint32_t sample);
int64_t *profile_sample_values(struct profile *profile, uint32_t sample); /* PROFILE_MAX_VALUES of them; may be changed */
const struct profile_histogram *profile_histogram_at(const struct profile *profile, uint32_t histogram);
const struct profile_label *profile_labels_at(const struct profile *profile, uint32_t labels, uint32_t *ret_nr_labels);
const struct profile_value_type *profile_value_types(const struct profile *profile, uint32_t *ret_nr_types);
/* The types that are sums, which come first. Many formats have room for these alone. */
const struct profile_value_type *profile_sum_types(const struct profile *profile, uint32_t *ret_nr_types);
uint32_t profile_shown_value(const struct profile *profile);
uint32_t profile_shown_fold(const struct profile *profile); /* enum value_fold */
/* Finds a value by the name of its type. "count" is also the first sum in that unit, "time" the first sum in a unit of time. PROFILE_NONE:
 * there is none. */
uint32_t profile_find_value(const struct profile *profile, const char *name);
uint32_t profile_nr_strings(const struct profile *profile);
uint32_t profile_nr_mappings(const struct profile *profile);
uint32_t profile_nr_functions(const struct profile *profile);
uint32_t profile_nr_locations(const struct profile *profile);
uint32_t profile_nr_stacks(const struct profile *profile);
uint32_t profile_nr_samples(const struct profile *profile);
uint32_t profile_nr_histograms(const struct profile *profile);

/* The account of the run; writable through a profile that is not const. */
struct account *profile_account(struct profile *profile);
const struct account *profile_account_of(const struct profile *profile);
