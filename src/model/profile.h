/* SPDX-License-Identifier: Apache-2.0 */
/* profile: what was observed, dictionary-coded: strings, functions, mappings, locations, stacks, samples, histograms. The one currency
 * between the stages: every verb makes one, every format consumes one. Entries are numbered from 0 in the order they came, equal entries
 * are one (a location: all of its fields equal). Everything lives until profile_free. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/runtime_list.h"
#include "base/cleanup.h"
#include "model/account.h"
#include "model/histogram.h"

#define PROFILE_NONE UINT32_MAX /* no such entry, or no memory for it */
#define PROFILE_EMPTY_STRING 0  /* the string "" of every profile */
#define PROFILE_NO_LABELS 0     /* the empty set of every profile */
#define PROFILE_MAX_VALUES 4    /* of a sample; Go's heap profiles have as many */

/* The function names of FRAME_MISSED. */
#define PROFILE_MISSED_USER "[Missed User Stack]"
#define PROFILE_MISSED_KERNEL "[Missed Kernel Stack]"

#define PROFILE_KERNEL_KADDR (1ULL << 63) /* from here on addresses are the kernel's, but for the page [vsyscall] */

#define PROFILE_NO_NATIVES \
	"[native frames not known]" /* the name of the mark before frames of an interpreter whose place among native frames is not known \
				     */
#define PROFILE_CUT "[frames left out]" /* the name of the mark between the two ends of a stack that is too deep to be kept whole */

#define PROFILE_WAKER \
	"--" /* the name of the mark between the stacks of a wait and, beyond its leaf end, those of who ended it: from their leaf on, \
		then a mark with the thread's name */

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_MISSED, /* the whole side is not known: the only frame of its stack */
	FRAME_MARK,   /* says what is not there: at the root end why the stack goes no further ([truncated]), elsewhere what was left out */
/* What an interpreter runs: between native frames, in place of those of its loop. No mapping, pc and elf_vaddr 0, is_inlined 0; function
 * and line. */
#define X(id, ...) FRAME_##id,
	SONDE_RUNTIME_LIST(X, SONDE_NO_RUNTIME)
#undef X
	FRAME_KIND_COUNT,
};

struct profile_mapping { /* where a file was mapped; kernel and marks have none */
	uint64_t start_pc, end_pc, file_off;
	uint32_t path, build_id; /* strings; build_id "" when there is none */
};

struct profile_function {
	uint32_t name, system_name; /* strings: as shown (demangled), as linked */
	uint32_t file;              /* string: source file, "" when not known */
	uint32_t line;              /* of its first line, 0 when not known */
};

struct profile_location {
	uint64_t pc;           /* the interrupted instruction, or the return address; 0 for marks and what an interpreter runs */
	uint64_t elf_vaddr;    /* pc as linked; 0 without a mapping */
	uint64_t function_off; /* pc - start of the symbol; 0 without one */
	uint32_t mapping;      /* or PROFILE_NONE */
	uint32_t function;     /* always there: a name in brackets where no symbol was found */
	uint32_t kind;         /* enum frame_kind */
	uint32_t line;         /* of the source, where the function is at pc or, for a caller, calls from; 0: not known */
	uint32_t is_inlined;   /* 1: into the function of the next location of the stack, which has the same pc (of a waker's frames: of the
				  one before); else 0 */
};

/* What becomes of the values of samples that are counted together. */
enum value_fold {
	VALUE_SUM,
	VALUE_MIN, /* 0: there was none */
	VALUE_MAX,
	VALUE_FOLD_COUNT,
};

struct profile_value_type {
	uint32_t type, unit; /* strings: "samples", "count"; "cpu", "nanoseconds" */
	uint32_t fold;       /* enum value_fold */
};

struct profile_label { /* zeroed before it is filled: it is compared as bytes */
	uint32_t key, text; /* strings; text "" for a number */
	int64_t number;
	uint32_t unit;      /* string: of the number, "" when it has none */
	uint32_t is_number; /* 1, else 0 */
};

struct profile_sample { /* equal ones (but for values) are one */
	uint32_t user_stack, kernel_stack; /* PROFILE_NONE: that side does not exist, or was not asked for */
	uint32_t tgid, tid;                /* 0: not known */
	uint32_t cpu;                      /* PROFILE_NONE: not known */
	uint32_t comm;                     /* string */
	uint32_t labels;                   /* what else is known of it; PROFILE_NO_LABELS */
	uint32_t pad;                      /* zero */
	uint64_t time_ns;                  /* since 1970; 0: not recorded, the sample stands for all times of the profile */
	int64_t values[PROFILE_MAX_VALUES];/* by profile_value_type; those beyond the profile's number of them are 0 */
};

struct profile_histogram { /* equal ones (but for what they counted) are one */
	uint32_t name, unit;               /* strings: what was counted, "run queue latency"; "us", "" */
	uint32_t key;                      /* string: the group, "pid 185"; "" for the whole */
	uint32_t user_stack, kernel_stack; /* PROFILE_NONE both: of no stack. Else it belongs to the samples with these and: */
	uint32_t comm, tgid, tid;          /* as in a sample; 0 without a stack */
	struct histogram histogram;
};

static inline bool histogram_has_stack(const struct profile_histogram *histogram)
{
	return histogram->user_stack != PROFILE_NONE || histogram->kernel_stack != PROFILE_NONE;
}

const char *value_fold_name(enum value_fold fold); /* "sum", "min", "max" */
/* 0 changes no fold of values that are not negative. Sums that would overflow stay at the limit. */
int64_t value_fold(uint32_t fold, int64_t a, int64_t b);
const char *frame_kind_name(enum frame_kind kind); /* "native", "kernel", "missed", "mark", or as in SONDE_RUNTIME_LIST */
/* Does an interpreter run it? */
static inline bool frame_is_interpreted(uint32_t kind)
{
	return kind > FRAME_MARK && kind < FRAME_KIND_COUNT;
}

struct profile;
struct profile *profile_new(void); /* NULL: no memory */
void profile_free(struct profile *profile);
/* Nothing is added any more: the memory that finds equal entries is given back. Adding is "no memory" then. */
void profile_close(struct profile *profile);
static inline void profile_freep(struct profile **profile)
{
	profile_free(*profile);
}

/* Each gives the entry's number, an old one when there is an equal one; PROFILE_NONE: no memory. */
uint32_t profile_string(struct profile *profile, const char *text);
uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping);
uint32_t profile_function(struct profile *profile, const struct profile_function *function);
uint32_t profile_location(struct profile *profile, const struct profile_location *location);
uint32_t profile_stack(struct profile *profile, const uint32_t *locations, uint32_t nr_locations); /* leaf first */
uint32_t profile_labels(struct profile *profile, const struct profile_label *labels, uint32_t nr_labels); /* in the order given */
uint32_t profile_histogram(struct profile *profile,
			   const struct profile_histogram *histogram); /* what it counted is added to the equal one */
/* Folds the sample's values into those of the equal sample or makes one: the value types must be set before. 0 or -ENOMEM. */
MUST_CHECK int profile_add(struct profile *profile, const struct profile_sample *sample);
/* What the values are, 1 to PROFILE_MAX_VALUES, those that are no sums behind those that are; a new profile has one, samples in count.
 * `shown` is the number of the one that formats with room for one value write. */
void profile_set_value_types(struct profile *profile, const struct profile_value_type *types, uint32_t nr_types, uint32_t shown);

/* Readers. Borrowed until the next call that adds an entry of the same kind; the number must be a valid one. */
const char *profile_string_text(const struct profile *profile, uint32_t string);
const struct profile_mapping *profile_mapping_at(const struct profile *profile, uint32_t mapping);
const struct profile_function *profile_function_at(const struct profile *profile, uint32_t function);
const struct profile_location *profile_location_at(const struct profile *profile, uint32_t location);
const uint32_t *profile_stack_at(const struct profile *profile, uint32_t stack, uint32_t *ret_nr_locations);
uint32_t
profile_nr_of_waker(const struct profile *profile,
		    uint32_t stack); /* how many frames at its leaf end are those of who ended the wait, with the mark behind them */
const struct profile_sample *profile_sample_at(const struct profile *profile, uint32_t sample);
int64_t *profile_sample_values(struct profile *profile, uint32_t sample); /* PROFILE_MAX_VALUES of them, to be changed */
const struct profile_histogram *profile_histogram_at(const struct profile *profile, uint32_t histogram);
const struct profile_label *profile_labels_at(const struct profile *profile, uint32_t labels, uint32_t *ret_nr_labels);
const struct profile_value_type *profile_value_types(const struct profile *profile, uint32_t *ret_nr_types);
/* The first of them, which add up: all that many formats have room for. */
const struct profile_value_type *profile_sum_types(const struct profile *profile, uint32_t *ret_nr_types);
uint32_t profile_shown_value(const struct profile *profile);
uint32_t profile_shown_fold(const struct profile *profile); /* enum value_fold */
/* By its type. "count" is also the first in that unit, "time" the first sum in a unit of time. PROFILE_NONE: there is none. */
uint32_t profile_find_value(const struct profile *profile, const char *name);
uint32_t profile_nr_strings(const struct profile *profile);
uint32_t profile_nr_mappings(const struct profile *profile);
uint32_t profile_nr_functions(const struct profile *profile);
uint32_t profile_nr_locations(const struct profile *profile);
uint32_t profile_nr_stacks(const struct profile *profile);
uint32_t profile_nr_samples(const struct profile *profile);
uint32_t profile_nr_histograms(const struct profile *profile);

/* The account of the run; writable through the profile that owns it. */
struct account *profile_account(struct profile *profile);
const struct account *profile_account_of(const struct profile *profile);
