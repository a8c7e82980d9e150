// SPDX-License-Identifier: Apache-2.0
#include "probe/allocators.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "probe/placement.h"
#include "symbols/symbol_list.h"

struct name {
	const char *name;
	enum sonde_alloc_call call;
};

/* C's and POSIX's, also with the prefixes of allocators that programs contain under names of their own. */
static const struct name c_names[] = {
	{ "malloc", SONDE_ALLOC_MALLOC },
	{ "calloc", SONDE_ALLOC_CALLOC },
	{ "realloc", SONDE_ALLOC_REALLOC },
	{ "reallocarray", SONDE_ALLOC_REALLOCARRAY },
	{ "aligned_alloc", SONDE_ALLOC_ALIGNED_ALLOC },
	{ "posix_memalign", SONDE_ALLOC_POSIX_MEMALIGN },
	{ "memalign", SONDE_ALLOC_MEMALIGN },
	{ "valloc", SONDE_ALLOC_VALLOC },
	{ "pvalloc", SONDE_ALLOC_PVALLOC },
	{ "free", SONDE_ALLOC_FREE },
	{ "cfree", SONDE_ALLOC_FREE },
	{ "free_sized", SONDE_ALLOC_FREE }, /* C23 */
	{ "free_aligned_sized", SONDE_ALLOC_FREE },
	{ "mallocx", SONDE_ALLOC_MALLOC }, /* jemalloc */
	{ "rallocx", SONDE_ALLOC_REALLOC },
	{ "dallocx", SONDE_ALLOC_FREE },
	{ "sdallocx", SONDE_ALLOC_FREE },
};
static const char *const prefixes[] = { "", "je_", "mi_", "tc_", "rp", "__libc_" };

static const struct name mapping_names[] = {
	{ "mmap", SONDE_ALLOC_MMAP },
	{ "mmap64", SONDE_ALLOC_MMAP },
	{ "munmap", SONDE_ALLOC_MUNMAP },
	{ "mremap", SONDE_ALLOC_MREMAP },
};

/* C++'s, as mangled: operator new and new[], operator delete and delete[], whatever arguments follow the first. */
static const struct name cxx_names[] = {
	{ "_Znwm", SONDE_ALLOC_NEW },
	{ "_Znam", SONDE_ALLOC_NEW },
	{ "_ZdlPv", SONDE_ALLOC_DELETE },
	{ "_ZdaPv", SONDE_ALLOC_DELETE },
};
static const char *const cxx_suffixes[] = {
	"", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t", "St11align_val_tRKSt9nothrow_t"
};

static bool find_c(const char *text, enum sonde_alloc_call *ret_call)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		for (size_t k = 0; strncmp(text, prefixes[i], length) == 0 && k < ARRAY_SIZE(c_names); k++) {
			if (!strcmp(text + length, c_names[k].name)) {
				*ret_call = c_names[k].call;
				return true;
			}
		}
	}
	return false;
}

static bool find_mapping(const char *text, enum sonde_alloc_call *ret_call)
{
	for (size_t i = 0; i < ARRAY_SIZE(mapping_names); i++) {
		if (!strcmp(text, mapping_names[i].name)) {
			*ret_call = mapping_names[i].call;
			return true;
		}
	}
	return false;
}

static bool find_cxx(const char *text, enum sonde_alloc_call *ret_call)
{
	for (size_t i = 0; i < ARRAY_SIZE(cxx_names); i++) {
		size_t length = strlen(cxx_names[i].name);

		for (size_t k = 0; strncmp(text, cxx_names[i].name, length) == 0 && k < ARRAY_SIZE(cxx_suffixes); k++) {
			if (!strcmp(text + length, cxx_suffixes[k])) {
				*ret_call = cxx_names[i].call;
				return true;
			}
		}
	}
	return false;
}

struct finding {
	const struct symbol_list *symbols;
	struct placement placements[ALLOCATORS_MAX];
	enum sonde_alloc_call calls[ALLOCATORS_MAX];
	uint32_t nr, nr_refused;
	bool has_malloc, has_glibc; /* glibc's operators of C++ are libstdc++'s, which call malloc */
};

static void add(struct finding *finding, uint64_t elf_vaddr, enum sonde_alloc_call call)
{
	for (uint32_t i = 0; i < finding->nr; i++) {
		if (finding->placements[i].entry == elf_vaddr) /* another name of the same function */
			return;
	}
	if (finding->nr == ALLOCATORS_MAX) {
		finding->nr_refused++;
		return;
	}
	finding->placements[finding->nr] = (struct placement){ .entry = elf_vaddr, .probe = elf_vaddr };
	finding->calls[finding->nr++] = call;
}

/* Adds the functions whose names `find` knows. */
static void look_for(struct finding *finding, bool (*find)(const char *text, enum sonde_alloc_call *ret_call))
{
	for (size_t i = 0; i < finding->symbols->nr; i++) {
		const struct raw_symbol *symbol = &finding->symbols->symbols[i];
		enum sonde_alloc_call call;

		if (!symbol->is_label && find(finding->symbols->strings.data + symbol->name, &call))
			add(finding, symbol->start, call);
	}
}

/* A file that defines no malloc of any name may define other names of these for other purposes. */
static void look_at_all(struct finding *finding)
{
	for (size_t i = 0; i < finding->symbols->nr; i++) {
		const char *name = finding->symbols->strings.data + finding->symbols->symbols[i].name;
		enum sonde_alloc_call call;

		finding->has_malloc |= find_c(name, &call) && call == SONDE_ALLOC_MALLOC;
		finding->has_glibc |= !strcmp(name, "__libc_malloc");
	}
	if (!finding->has_malloc)
		return;
	look_for(finding, find_c);
	look_for(finding, find_mapping);
	if (!finding->has_glibc)
		look_for(finding, find_cxx);
}

/* Where the code of an address is in the file. 0 or -ENOENT. */
static int file_off_of(const struct elf_file *elf, uint64_t elf_vaddr, uint64_t *ret_off)
{
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if (!(segment->flags & PF_X) || elf_vaddr < segment->vaddr || elf_vaddr - segment->vaddr >= segment->file_size)
			continue;
		*ret_off = segment->file_off + (elf_vaddr - segment->vaddr);
		return 0;
	}
	return -ENOENT;
}

static void take(const struct elf_file *elf, const struct finding *finding, struct allocators *to)
{
	to->nr_refused = finding->nr_refused;
	for (uint32_t i = 0; i < finding->nr; i++) {
		struct allocator_function *function = &to->functions[to->nr];
		uint64_t entry_off, probe_off;

		if (file_off_of(elf, finding->placements[i].entry, &entry_off) ||
		    file_off_of(elf, finding->placements[i].probe, &probe_off))
			continue;
		*function = (struct allocator_function){ .entry_off = entry_off,
							 .probe_off = probe_off,
							 .call = finding->calls[i],
							 .is_slow = finding->placements[i].is_slow };
		to->nr++;
	}
}

int allocators_make(const struct elf_file *elf, struct buffer *to)
{
	CLEANUP(symbol_list_done) struct symbol_list symbols = SYMBOL_LIST_INIT(NULL);
	struct finding finding = { .symbols = &symbols };
	struct allocators allocators = { 0 };
	int err = symbol_list_add(&symbols, elf, SHT_DYNSYM, NULL);

	if (!err || err == -ENODATA)
		err = symbol_list_add(&symbols, elf, SHT_SYMTAB, NULL);
	if (err && err != -ENODATA)
		return err;
	look_at_all(&finding);
	err = placement_improve(elf, finding.placements, finding.nr);
	if (err)
		return err;
	take(elf, &finding, &allocators);
	buffer_append(to, &allocators, sizeof(allocators));
	return to->err;
}

int allocators_read(const void *bytes, size_t size, uint64_t file_bytes, struct allocators *ret_allocators)
{
	struct allocators allocators;

	if (size != sizeof(allocators))
		return -EBADMSG;
	memcpy(&allocators, bytes, sizeof(allocators));
	if (allocators.nr > ALLOCATORS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < allocators.nr; i++) {
		const struct allocator_function *function = &allocators.functions[i];

		if (function->call >= SONDE_ALLOC_COUNT || function->entry_off >= file_bytes || function->probe_off >= file_bytes)
			return -EBADMSG;
	}
	*ret_allocators = allocators;
	return 0;
}
