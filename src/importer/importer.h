/* SPDX-License-Identifier: Apache-2.0 */
/* importer: what the readers of all formats share: strings, the stack under construction, its split into kernel and user frames, the
 * meaning of labels, and counts of what a profile cannot hold. */
#pragma once
#include "base/buffer.h"
#include "base/reader.h"
#include "base/u64_map.h"
#include "base/diag.h"
#include "model/profile.h"

#define IMPORT_MAX_FRAMES 16384 /* of a stack; the kernel side walks as many */
/* Limit of a text. Each byte of an untrusted file may refer to the same text, and each reference costs a scan of it. */
#define IMPORT_TEXT_BYTES 65536
#define IMPORT_MAX_LABELS 64    /* per sample */
#define IMPORT_MAX_VALUES 64    /* per sample; PROFILE_MAX_VALUES of them are kept */
#define IMPORT_NR_KNOWN_KEYS 16

/* X(id, text): what is counted; the text follows the number */
#define IMPORT_LOSS_LIST(X) \
	X(TEXTS, "texts are longer than 65536 bytes: their ends are left out") \
	X(FRAMES, "stacks are deeper than 16384 frames: their middle is left out") \
	X(LABELS, "labels are left out: a sample keeps 64") \
	X(VALUES, "kinds of values are left out: " PROFILE_TOO_MANY_VALUES) \
	X(COLUMNS, "source columns are left out") \
	X(COMMENTS, "comments are left out") \
	X(PATTERNS, "patterns of frames to be hidden are left out: all frames are shown") \
	X(LINES, "lines are no stack with a number and are left out") \
	X(BOOT, "samples have times since the machine's start, not since 1970: they are kept as they are") \
	X(PARTS, "numbers are not whole: what is behind the point is left out") \
	X(HISTOGRAMS, "histograms are left out")

#define X(id, text) IMPORT_LOSS_##id,
enum import_loss { IMPORT_LOSS_LIST(X) IMPORT_LOSS_COUNT };
#undef X

struct importer {
	struct profile *profile;
	struct diag *diag;
	const char *bytes;           /* the whole file, for positions in messages */
	size_t size;
	struct buffer text;          /* a text on its way into the profile */
	uint32_t *frames;            /* the stack under construction: locations, leaf first */
	uint32_t nr_frames, nr_left_out, max_frames;
	struct profile_label labels[IMPORT_MAX_LABELS]; /* of the sample under construction */
	uint32_t nr_labels;
	struct u64_map names;        /* of text formats: from a frame's hash to its location */
	/* From a path (string), and whether it is the kernel's, to the function that represents nameless code there. */
	struct u64_map nameless;
	uint64_t budget;             /* number of frames that may still be pushed */
	uint64_t losses[IMPORT_LOSS_COUNT];
	struct {
		uint32_t key, field;
	} fields[IMPORT_NR_KNOWN_KEYS]; /* meaning of a label key (a string), cached at key modulo the size; unused: "", no meaning */
};

/* Number of bytes of a text that are kept; counts a text that is cut. */
size_t import_text_size(struct importer *importer, const char *text, size_t size);
/* Adds a text of the file to the profile's strings; NULs become '?'. PROFILE_NONE: no memory. */
uint32_t import_string(struct importer *importer, const void *text, size_t size);
/* Kind of a frame without address and mapping, by the name of its source file: an interpreter's, else FRAME_NATIVE. */
enum frame_kind import_kind_of_file(const char *file, size_t size);
/* The location of a frame of which only name and kind are known. PROFILE_NONE: no memory. */
uint32_t import_named(struct importer *importer, const char *name, size_t size, enum frame_kind kind);
/* The function of an address without a symbol: its file (a string) in brackets. PROFILE_NONE: no memory. */
uint32_t import_nameless(struct importer *importer, uint32_t path, bool is_kernel);
/* True for "[kernel.kallsyms]" and the like, and for modules. */
bool import_is_kernel_path(const char *path);
/* FRAME_NATIVE, or the kind that one of sonde's own names in brackets implies: a mark, a missed side. */
enum frame_kind import_kind_of(const char *name, size_t size);
/* Sets the kind of a native location without an address by its function's name. */
void import_kind_by_name(const struct importer *importer, struct profile_location *location);

/* Takes the id whose digits end at *at: moves *at to its first digit. False: there is none, or it is too large. */
bool import_id_before(const char *text, size_t *at, uint32_t *ret_id);

/* Begins a sample: an empty stack, no labels. */
void import_begin(struct importer *importer);
/* Pushes the next frame, towards the root. 0, -EFBIG or -ENOMEM. */
MUST_CHECK int import_push(struct importer *importer, uint32_t location);
/* Reverses the stack, for formats that write the root first. 0 or -ENOMEM. */
MUST_CHECK int import_reverse(struct importer *importer);
/* Ends a stack without adding a sample: a mark replaces the frames that were left out of the middle. 0 or -ENOMEM. */
MUST_CHECK int import_close(struct importer *importer);
/* Adds a label to the sample. A label that is one of our own fields (pid, thread id, name, CPU, time) fills that field instead. */
void import_label(struct importer *importer, struct profile_sample *sample, const struct profile_label *label);
/* Ends the sample: the kernel frames at the leaf end become its kernel stack. `sample` has the other fields. 0 or -ENOMEM. */
MUST_CHECK int import_end(struct importer *importer, struct profile_sample *sample);
/* The two halves of import_end, for a reader that may know the stack already: the first splits the pushed stack into its two sides, the
 * second adds labels and the sample. */
MUST_CHECK int import_end_stack(struct importer *importer, struct profile_sample *sample);
MUST_CHECK int import_end_sample(struct importer *importer, struct profile_sample *sample);
/* A sample without any known field. */
struct profile_sample import_blank(void);

static inline void import_count(struct importer *importer, enum import_loss loss, uint64_t nr)
{
	importer->losses[loss] += nr;
}

/* -EBADMSG with the position: "bad pprof at byte 17 of 99: why". */
int import_bad(struct importer *importer, const char *format, const void *at, const char *why);
