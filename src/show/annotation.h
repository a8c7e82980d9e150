/* SPDX-License-Identifier: Apache-2.0 */
/* annotation: where in a function its samples are, by address and by source line. A place is the function in one file: path and build id
 * or, if interpreted, path and first line. Programs that share a function have it at other addresses. */
#pragma once
#include "base/diag.h"
#include "show/code_rows.h"
#include "show/show.h"

#define ANNOTATED_FUNCTIONS_MAX 20 /* in a page */

enum address_class {
	ADDRESS_LEAF,  /* address of the interrupted instruction */
	ADDRESS_CALL,  /* a return address: the call is before it */
	/* The innermost user frame below the kernel's: after a system call, or interrupted. */
	ADDRESS_ENTRY,
};

struct annotated_address {
	uint64_t elf_vaddr;    /* or, if not known from an ELF file, the offset in the file */
	uint32_t class, place;
	uint32_t is_file_off;  /* 1, else 0 */
	uint32_t last_sample;  /* last sample counted, plus one */
	uint64_t function_off; /* 0: unknown */
	int64_t self, total;
};

struct annotated_line {
	uint32_t file, line, place; /* file: a string */
	uint32_t last_sample;
	int64_t self, total;
};

struct annotated_place {
	uint32_t name, path, build_id; /* strings */
	uint32_t kind, has_mapping;
	uint32_t start_line; /* frame_start_line */
	uint32_t last_sample;
	int64_t self, total;
};

struct annotation {
	const struct profile *profile;
	struct annotated_place *places; /* sorted by total, largest first */
	struct annotated_address *addresses; /* by place, ascending */
	struct annotated_line *lines;   /* by place, file, line */
	uint32_t nr_places, nr_addresses, nr_lines;
	int64_t all;
};

/* Is a frame of this kind (enum frame_kind) a function with code, and no mark? */
static inline bool annotation_has_code(uint32_t kind)
{
	return kind == FRAME_NATIVE || kind == FRAME_KERNEL || frame_is_interpreted(kind);
}

/* Annotates the functions with that name (as shown or as linked) or, if there are none, those whose name contains it. 0; -ENOENT: none
 * (diag); -ENOMEM. */
MUST_CHECK int annotation_make(const struct profile *profile, const char *function, struct diag *diag, struct annotation *ret_annotation);
/* Annotates the functions with the largest values of their own, and others of the same names. 0; -EINVAL; -ENOMEM. */
MUST_CHECK int annotation_make_hottest(const struct profile *profile, struct diag *diag, struct annotation *ret_annotation);
void annotation_done(struct annotation *annotation);

/* Adds a source file's text near the lines with samples, which are lines[0..nr). `text` may contain anything; NULL:
 * the file is not here. 0 or -ENOMEM. */
MUST_CHECK int annotation_source(const struct annotated_line *lines, uint32_t nr, const char *text, size_t size, uint32_t near_lines,
				 struct code_rows *rows);

struct shown_instruction {
	uint64_t elf_vaddr;
	uint32_t nr_bytes;
	const char *text; /* untrusted */
	int64_t self, total;
};
/* Adds the place's addresses [0..nr) to the instructions, which are ascending and without gaps. An interrupted address counts at its own
 * instruction, a return address at the call before it. Returns how many addresses have no instruction. */
uint32_t annotation_give(const struct annotated_address *addresses, uint32_t nr, struct shown_instruction *instructions,
			 uint32_t nr_instructions);
MUST_CHECK int annotation_instructions(const struct shown_instruction *instructions, uint32_t nr, struct code_rows *rows); /* 0, -ENOMEM */

/* Write a place's heading, and its source and instructions. Shares are of the function's total. */
void show_place(const struct annotation *annotation, uint32_t place, const struct show_options *options, struct buffer *buffer);
void show_code_rows(const struct code_rows *rows, int64_t total, const struct show_options *options, struct buffer *buffer);

/* What a page has of the hottest functions, in the order of their own values. */
struct annotated_code {
	uint32_t nr;
	struct {
		struct annotated_place place;
		struct code_rows rows;
	} list[ANNOTATED_FUNCTIONS_MAX];
};
void annotated_code_done(struct annotated_code *code);
