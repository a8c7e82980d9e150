/* SPDX-License-Identifier: Apache-2.0 */
/* cfi: reads call frame information (.eh_frame, .debug_frame) into unwind rules, address by address. Only the interpreter of DW_CFA_*
 * programs: the caller decides what the rows become. The bytes are untrusted. Layouts: LSB core "Exception Frames", DWARF 5 section 6.4.
 * One pass over the section: cost is linear in its bytes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"

enum cfi_format { CFI_EH_FRAME, CFI_DEBUG_FRAME };

struct cfi_section {
	const void *bytes; /* cfi_section_read allocates, cfi_section_done frees; cfi_walk borrows */
	size_t size;
	uint64_t vaddr;	     /* where .eh_frame is linked: base of DW_EH_PE_pcrel */
	uint64_t text_vaddr; /* base of DW_EH_PE_textrel, 0 when unknown */
	uint64_t data_vaddr; /* base of DW_EH_PE_datarel (.got or .eh_frame_hdr), 0 when unknown */
	enum cfi_format format;
	uint16_t machine;   /* EM_X86_64 or EM_AARCH64: defines the columns */
	bool is_open_ended; /* `size` is only a bound: after the first FDE, bytes that are no entry end the section */
};

/* Reads .eh_frame (without section headers: through PT_GNU_EH_FRAME) or .debug_frame. 0; -ENODATA: there is none, or it has no readable
 * bytes (compressed, SHT_NOBITS); -EBADMSG; -EFBIG above 256 MiB; -ENOMEM or the read's error. */
MUST_CHECK int cfi_section_read(const struct elf_file *elf, enum cfi_format format, struct diag *diag, struct cfi_section *ret_section);
void cfi_section_done(struct cfi_section *section);

/* Called for every row of every FDE in the section's order. `rule` holds from start_vaddr up to the FDE's next row or its end. The first
 * row is at the FDE's start, and start_vaddr increases. If the program turns out to be damaged, another row at the FDE's start, of kind
 * UNSUPPORTED, revokes the FDE's rows. After the last row of an FDE there is a call with rule NULL and start_vaddr = the FDE's end. A
 * negative result ends the walk and is returned. */
typedef int (*cfi_row_fn)(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule);

struct cfi_stats {
	uint32_t nr_fdes, nr_rows;
	uint32_t nr_unsupported; /* rows whose rule cannot be expressed: SONDE_RULE_KIND_UNSUPPORTED */
	uint32_t nr_bad_fdes;	 /* damaged FDEs: one UNSUPPORTED row each, or none if not even the range can be read */
};

/* 0; -EBADMSG: the section's structure is damaged (rows before the damage were given); -ENODATA: another machine; or the error of `row`. */
MUST_CHECK int cfi_walk(const struct cfi_section *section, cfi_row_fn row, void *arg, struct cfi_stats *ret_stats, struct diag *diag);
/* Called for every FDE that covers code, from `start` to below `end`. A negative result ends the walk and is returned. */
typedef int (*cfi_range_fn)(void *arg, uint64_t start, uint64_t end);
/* The same FDEs without their rows: no program runs. */
MUST_CHECK int cfi_walk_ranges(const struct cfi_section *section, cfi_range_fn range, void *arg, struct diag *diag);
