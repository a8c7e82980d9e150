// SPDX-License-Identifier: Apache-2.0
#include "cfi/native_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "cfi/code_frames.h"
#include "cfi/code_window.h"

#define MAX_FUNCTION_BYTES (1u << 20)
#define WINDOW_BYTES	   (2u << 20)
#define MAX_STEPS	   (80u << 20) /* 90 MB, about a second */
#define MAX_JOINED	   4 /* pieces that int3 inside of instructions separates */
#define READ_STEPS	   (16u << 10)
#define ROW_STEPS	   8
#define FILLER		   0xcc

struct sweep {
	struct code_window window;
	struct code_frames *frames;
	cfi_row_fn row;
	void *arg;
	struct cfi_stats *stats;
	struct code_gap *code;
};

bool native_image_is(const struct elf_file *elf)
{
	return elf_file_find_section(elf, ".svm_heap");
}

static void sweep_done(struct sweep *sweep)
{
	code_window_done(&sweep->window);
	code_frames_free(sweep->frames);
}

/* Where the next function with a frame can begin: aligned, behind int3. Those without one are found by what the code before does not reach.
 * `size`: nowhere. */
static uint64_t next_begin(uint64_t vaddr, const uint8_t *code, uint64_t size, uint64_t off)
{
	off = ((vaddr + off + CODE_MANAGED_ALIGN) & ~(uint64_t)(CODE_MANAGED_ALIGN - 1)) - vaddr;
	while (off < size && !(code[off - 1] == FILLER && code_frames_is_begin(code + off, size - off)))
		off += CODE_MANAGED_ALIGN;
	return off < size ? off : size;
}

/* Reads the function at an address. An int3 before its end may be part of an instruction. *ret_size: where the next one may begin. -ENOMEM
 * or enum code_verdict. */
static int read_function(struct sweep *sweep, uint64_t vaddr, const uint8_t *code, uint64_t size, uint64_t *ret_size)
{
	struct code_function function = { .vaddr = vaddr, .code = code, .is_sized = true, .is_managed = true };
	int verdict = CODE_CONTRADICTS;
	uint64_t end = 0;

	for (uint32_t i = 0; i < MAX_JOINED && verdict == CODE_CONTRADICTS && end < size; i++) {
		end = next_begin(vaddr, code, size, end);
		function.size = end;
		verdict = code_frames_read(sweep->frames, &function);
		if (!i || verdict == CODE_RETURNS)
			*ret_size = verdict == CODE_RETURNS ? code_frames_size(sweep->frames) : end;
	}
	return verdict;
}

/* Gives the rows of the function that was just read. */
static int give_rows(struct sweep *sweep, uint64_t vaddr, uint64_t size)
{
	uint64_t nr_rows = sweep->stats->nr_rows;
	int err = code_frames_rows(sweep->frames, false, sweep->row, sweep->arg, sweep->stats);

	if (!sweep->code->end_vaddr)
		sweep->code->start_vaddr = vaddr;
	sweep->code->end_vaddr = vaddr + size;
	sweep->stats->nr_fdes++;
	code_frames_add_work(sweep->frames, (sweep->stats->nr_rows - nr_rows) * ROW_STEPS + size / 8);
	return err;
}

static int sweep_gap(struct sweep *sweep, const struct code_gap *gap)
{
	int verdict = CODE_CONTRADICTS, err = 0;
	uint64_t size;

	for (uint64_t vaddr = gap->start_vaddr; !err && vaddr < gap->end_vaddr; vaddr += size) {
		uint64_t left = gap->end_vaddr - vaddr;
		const uint8_t *code;

		left = left < MAX_FUNCTION_BYTES ? left : MAX_FUNCTION_BYTES;
		if (!code_window_has(&sweep->window, vaddr, left))
			code_frames_add_work(sweep->frames, READ_STEPS);
		code = code_window_at(&sweep->window, vaddr, &left);
		if (!code || !left || code_frames_is_spent(sweep->frames))
			return 0;
		size = next_begin(vaddr, code, left, 0);
		code_frames_add_work(sweep->frames, size / 128 + 1);
		/* behind a proved function is another one; elsewhere its beginning must show it */
		if (vaddr % CODE_MANAGED_ALIGN || (verdict == CODE_CONTRADICTS && !code_frames_is_begin(code, left)))
			continue;
		verdict = read_function(sweep, vaddr, code, left, &size);
		if (verdict < 0)
			return verdict;
		if (verdict == CODE_RETURNS)
			err = give_rows(sweep, vaddr, size);
	}
	return err;
}

int native_image_walk(const struct elf_file *elf, const struct code_gap *gaps, size_t nr_gaps, cfi_row_fn row, void *arg,
		      struct cfi_stats *stats, struct code_gap *ret_code)
{
	CLEANUP(sweep_done) struct sweep sweep = { .window = { .elf = elf, .max_bytes = WINDOW_BYTES },
						   .row = row,
						   .arg = arg,
						   .stats = stats,
						   .code = ret_code };
	int err = 0;

	if (elf_file_machine(elf) != EM_X86_64 || !native_image_is(elf))
		return 0;
	sweep.frames = code_frames_new(MAX_STEPS);
	if (!sweep.frames)
		return -ENOMEM;
	for (size_t i = 0; !err && i < nr_gaps; i++)
		err = sweep_gap(&sweep, &gaps[i]);
	return err;
}
