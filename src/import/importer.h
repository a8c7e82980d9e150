/* SPDX-License-Identifier: Apache-2.0 */
/* importer: what the readers of all formats share: texts, the stack under construction, which of its frames are the kernel's, what labels
 * mean, and the count of what a profile cannot hold. */
#pragma once
#include "base/buffer.h"
#include "base/reader.h"
#include "base/u64_map.h"
#include "import/import.h"

#define IMPORT_MAX_FRAMES 16384 /* of a stack; the kernel side walks as many */
#define IMPORT_TEXT_BYTES 65536 /* of a text: it may be named by each byte of the file, and something looks at it each time */
#define IMPORT_MAX_LABELS 64    /* of a sample */
#define IMPORT_MAX_VALUES 64    /* of a sample, of which PROFILE_MAX_VALUES are kept */
#define IMPORT_NR_KNOWN_KEYS 16

/* X(id, text): what is counted; the text follows the number */
#define IMPORT_LOSS_LIST(X) \
	X(TEXTS, "texts are longer than 65536 bytes: their ends are left out") \
	X(FRAMES, "stacks are deeper than 16384 frames: their middle is left out") \
	X(LABELS, "labels are left out: a sample keeps 64") \
	X(VALUES, "kinds of values are left out: a profile keeps 4") \
	X(COLUMNS, "source columns are left out") \
	X(COMMENTS, "comments are left out") \
	X(PATTERNS, "patterns of frames to be hidden are left out: all frames are shown") \
	X(LINES, "lines are no stack with a number and are left out") \
	X(BOOT, "samples have times since the machine's start, not since 1970: they are kept as they are") \
	X(PARTS, "numbers are not whole: what is behind the point is left out")

#define X(id, text) IMPORT_LOSS_##id,
enum import_loss { IMPORT_LOSS_LIST(X) IMPORT_LOSS_COUNT };
#undef X

struct importer {
	struct profile *profile;
	struct diag *diag;
	const char *bytes;           /* all of the file, for the places in messages */
	size_t size;
	struct buffer text;          /* a text on its way into the profile */
	uint32_t *frames;            /* the stack under construction: locations, leaf first */
	uint32_t nr_frames, nr_left_out, max_frames;
	struct profile_label labels[IMPORT_MAX_LABELS]; /* of the sample under construction */
	uint32_t nr_labels;
	struct u64_map names;        /* of text formats: from a frame's hash to its location */
	struct u64_map
	    nameless; /* from a path (string), and whether it is the kernel's, to the function that stands for what has no name there */
	uint64_t budget;             /* how many frames may still be pushed */
	uint64_t losses[IMPORT_LOSS_COUNT];
	struct {
		uint32_t key, field;
	} fields[IMPORT_NR_KNOWN_KEYS]; /* what keys of labels (strings) mean, at their number's remainder; what was not asked for yet is
					   "", which means nothing */
};

/* The readers, one per format: all of importer->bytes into importer->profile. 0, -EBADMSG, -EFBIG or -ENOMEM. */
MUST_CHECK int read_pprof(struct importer *importer);
MUST_CHECK int read_folded(struct importer *importer);
MUST_CHECK int read_json(struct importer *importer);
MUST_CHECK int read_perf_script(struct importer *importer);
MUST_CHECK int read_otlp(struct importer *importer);
MUST_CHECK int read_otlp_json(struct importer *importer);
/* Is it OTLP's JSON, where a value that begins with `bracket` stands under this key in the outermost object? */
bool otlp_json_is(const char *key, char bracket);

/* How much of a text is kept; counts what is not. */
size_t import_text_size(struct importer *importer, const char *text, size_t size);
/* A text of the file as a string of the profile; NULs become '?'. PROFILE_NONE: no memory. */
uint32_t import_string(struct importer *importer, const void *text, size_t size);
/* What a frame without address and mapping is by the name of its source file: one that an interpreter runs, else FRAME_NATIVE. */
enum frame_kind import_kind_of_file(const char *file, size_t size);
/* A frame of which only the name is known, or also the pc (else 0). PROFILE_NONE: no memory. */
uint32_t import_named(struct importer *importer, const char *name, size_t size, enum frame_kind kind);
/* The function of an address of which no name is known: its file (a string) in brackets. PROFILE_NONE: no memory. */
uint32_t import_nameless(struct importer *importer, uint32_t path, bool is_kernel);
/* "[kernel.kallsyms]", a module. */
bool import_is_kernel_path(const char *path);
/* native, or what sonde's own names in brackets say: a mark, a missed side. */
enum frame_kind import_kind_of(const char *name, size_t size);
/* Of native code without an address, of which the file names a function: the kind that the name says. */
void import_kind_by_name(const struct importer *importer, struct profile_location *location);

/* Begins a sample: an empty stack, no labels. */
void import_begin(struct importer *importer);
/* The next frame, towards the root. 0, -EFBIG or -ENOMEM. */
MUST_CHECK int import_push(struct importer *importer, uint32_t location);
/* Turns the stack around: for formats that write the root first. 0 or -ENOMEM. */
MUST_CHECK int import_reverse(struct importer *importer);
/* Ends a stack that is no sample yet: what was left out of its middle gets a mark. 0 or -ENOMEM. */
MUST_CHECK int import_close(struct importer *importer);
/* A label of the sample: those that are fields of ours (pid, thread id, name, CPU, time) fill these. */
void import_label(struct importer *importer, struct profile_sample *sample, const struct profile_label *label);
/* Ends the sample: the kernel's frames at its leaf end become its kernel stack. `sample` has the other fields. 0 or -ENOMEM. */
MUST_CHECK int import_end(struct importer *importer, struct profile_sample *sample);
/* Its two halves, for a reader that knows the stack already: the sides of the stack that was pushed; labels, and the sample itself. */
MUST_CHECK int import_end_stack(struct importer *importer, struct profile_sample *sample);
MUST_CHECK int import_end_sample(struct importer *importer, struct profile_sample *sample);
/* A sample of which nothing is known. */
struct profile_sample import_blank(void);

static inline void import_count(struct importer *importer, enum import_loss loss, uint64_t nr)
{
	importer->losses[loss] += nr;
}

/* -EBADMSG with the place: "bad pprof at byte 17: why". */
int import_bad(struct importer *importer, const char *format, const void *at, const char *why);
