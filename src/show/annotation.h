/* SPDX-License-Identifier: Apache-2.0 */
/* annotation: where inside of a function its samples are: by address and by source line. A place is the function in one file (path and
 * build id; of what an interpreter runs path and first line): programs that have it in common have it at other addresses. */
#pragma once
#include "base/diag.h"
#include "show/show.h"

enum address_class {
	ADDRESS_LEAF,  /* of the instruction that was interrupted */
	ADDRESS_CALL,  /* a return address: the call is before it */
	ADDRESS_ENTRY, /* the innermost user frame below the kernel's: behind a system call, or interrupted */
};

struct annotated_address {
	uint64_t elf_vaddr;    /* or, for those that no ELF file told, the byte in the file */
	uint32_t class, place;
	uint32_t is_file_off;  /* 1, else 0 */
	uint32_t last_sample;  /* that was counted, plus one */
	uint64_t function_off; /* 0: not known */
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
	struct annotated_place *places; /* the most total first */
	struct annotated_address *addresses; /* by place, ascending */
	struct annotated_line *lines;   /* by place, file, line */
	uint32_t nr_places, nr_addresses, nr_lines;
	int64_t all;
};

/* Of the functions of that name (as shown or as linked), or, when there are none, of those whose name contains it. 0; -ENOENT: none (diag);
 * -ENOMEM. */
MUST_CHECK int annotation_make(const struct profile *profile, const char *function, struct diag *diag, struct annotation *ret_annotation);
void annotation_done(struct annotation *annotation);

/* What is written for each: the heading, source lines, instructions. Shares are of the function's total. */
void show_place(const struct annotation *annotation, uint32_t place, const struct show_options *options, struct buffer *buffer);
/* One file's text with the shares of lines[0..nr): around those that have samples. `text` may hold anything. */
void show_source(const struct annotation *annotation, const struct annotated_line *lines, uint32_t nr, const char *text, size_t size,
		 const struct show_options *options, struct buffer *buffer);

struct shown_instruction {
	uint64_t elf_vaddr;
	uint32_t nr_bytes;
	const char *text; /* a stranger's */
	int64_t self, total;
};
/* Gives the place's addresses [0..nr) to the instructions, which are ascending and without gaps: an interrupted one its own, a return
 * address to the call before it. How many addresses found none. */
uint32_t annotation_give(const struct annotated_address *addresses, uint32_t nr, struct shown_instruction *instructions,
			 uint32_t nr_instructions);
void show_instructions(const struct shown_instruction *instructions, uint32_t nr, int64_t total, const struct show_options *options,
		       struct buffer *buffer);
