// SPDX-License-Identifier: Apache-2.0
/* java_code_dump PID LIBJVM LOAD_BIAS [-v]: reads all blobs in the code cache of a running HotSpot as sonde does for those that stacks lead
 * through, and prints a line for each whose rows leave bytes open: "unknown BYTES of BYTES, ROWS rows, NAME ADDRESS"; with -v also where.
 * Then the sums. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "runtime/java/java_blob.h"
#include "runtime/java/java_code.h"
#include "runtime/runtime.h"

static int read_process(void *arg, uint64_t from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)from, size };

	return process_vm_readv(*(const pid_t *)arg, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

struct sums {
	uint64_t nr, nr_open, bytes, bytes_open, rows, nr_parts;
};

static uint32_t bytes_open(const struct java_code *code, uint32_t size)
{
	uint32_t nr, sum = 0;
	const struct java_code_row *rows = java_code_rows(code, &nr);

	for (uint32_t i = 0; i < nr; i++)
		sum += rows[i].row.cfa == SONDE_JAVA_CFA_UNKNOWN ? (i + 1 < nr ? rows[i + 1].off : size) - rows[i].off : 0;
	return sum;
}

static void show_rows(const struct java_code *code, uint64_t pc)
{
	static const char *const kinds[] = { "none", "unknown", "sp", "bp", "reg", "slot" };
	uint32_t nr;
	const struct java_code_row *rows = java_code_rows(code, &nr);

	for (uint32_t i = 0; i < nr; i++)
		printf("  %6x %" PRIx64 " %s %u words %d bp %d\n", rows[i].off, pc + rows[i].off, kinds[rows[i].row.cfa], rows[i].row.at,
		       rows[i].row.words, rows[i].row.bp);
}

static void look(const struct java_process *process, const struct runtime_memory *memory, uint64_t start, int verbose, struct sums sums[2])
{
	CLEANUP(java_code_freep) struct java_code *code = NULL;
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct java_blob_header header;
	struct sonde_java_rows part;
	struct sonde_code_range range;
	char name[96] = "";
	uint32_t size, frame_bytes, is_open, nr_parts = 0, nr_rows;
	bool is_nmethod;
	struct sums *sum;

	if (java_blob_read(process, memory, start, process->java.header_bytes, &header) &&
	    java_blob_read(process, memory, start, 128, &header))
		return;
	range = java_blob_code(&header);
	size = (uint32_t)(range.end_pc - range.start_pc);
	memory->read(memory->arg, java_blob_field(&header, process->java.blob_name, 8), name, sizeof(name) - 1);
	frame_bytes = (uint32_t)java_blob_field(&header, process->java.blob_frame_size, 4) * 8;
	is_nmethod = !strcmp(name, "nmethod") || !strcmp(name, "native nmethod");
	bytes = malloc(size);
	if (!size || !bytes || !strcmp(name, "Interpreter") || memory->read(memory->arg, range.start_pc, bytes, size))
		return;
	if (java_code_read(&(struct java_code_blob){ .code = bytes,
						     .size = size,
						     .pc = range.start_pc,
						     .frame_bytes = is_nmethod ? frame_bytes : 0 },
			   &code))
		return;
	sum = &sums[is_nmethod];
	is_open = bytes_open(code, size);
	java_code_rows(code, &nr_rows);
	while (java_code_part(code, nr_parts, &part))
		nr_parts++;
	sum->nr++;
	sum->nr_open += is_open != 0;
	sum->bytes += size;
	sum->bytes_open += is_open;
	sum->rows += nr_rows;
	sum->nr_parts += nr_parts;
	if (is_open)
		printf("unknown %u of %u, %u rows, %u parts, %s %" PRIx64 "\n", is_open, size, nr_rows, nr_parts, name, start);
	if (verbose)
		show_rows(code, range.start_pc);
}

int main(int argc, char **argv)
{
	pid_t pid = argc >= 4 ? atoi(argv[1]) : 0;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct runtime_memory memory = { .read = read_process, .arg = &pid };
	struct runtime_image image;
	struct java_process process;
	struct diag diag = { 0 };
	struct sums sums[2] = { 0 };
	int fd = pid ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || elf_file_open_fd(fd, &diag, &elf) || runtime_java.examine(elf, &image) ||
	    runtime_java.place(&image, strtoull(argv[3], NULL, 16), NULL, &memory, &diag, &process)) {
		fprintf(stderr, "java_code_dump: %s\n", diag.text);
		return 1;
	}
	for (int i = 0; i < SONDE_JAVA_MAX_HEAPS; i++) {
		const struct sonde_java_heap *heap = &process.java.heaps[i];
		uint64_t segment = 1ULL << process.java.segment_shift;

		for (uint64_t pc = heap->start_pc; pc < heap->end_pc; pc += segment) {
			uint8_t map = 1;

			if (memory.read(memory.arg, heap->segmap + (pc - heap->start_pc) / segment, &map, 1))
				break;
			if (!map)
				look(&process, &memory, pc + process.java.block_bytes,
				     argc > 4 && strtoull(argv[4], NULL, 16) == pc + process.java.block_bytes, sums);
		}
	}
	for (int i = 0; i < 2; i++)
		printf("%s: %" PRIu64 " blobs, %" PRIu64 " bytes, %" PRIu64 " rows, %" PRIu64 " parts; open: %" PRIu64 " blobs, %" PRIu64
		       " bytes\n",
		       i ? "nmethods" : "others", sums[i].nr, sums[i].bytes, sums[i].rows, sums[i].nr_parts, sums[i].nr_open,
		       sums[i].bytes_open);
	return 0;
}
