// SPDX-License-Identifier: Apache-2.0
#include "runtime/libc_facts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/dynamic_symbol.h"
#include "elf/symbol_value.h"

#define THREAD_DB(name) "_thread_db_" name

/* glibc. The kernel side also relies on struct pthread_key_data {seq, data}, on dtv_t {pointer, to be freed}, and on the number of entries
 * before the first dtv_t. */
#define GLIBC_KEY_BYTES 16
#define GLIBC_KEY_VALUE 8
#define GLIBC_DTV_BYTES 16

/* musl 1.2.3, src/internal/pthread_impl.h: struct pthread {self, dtv, prev, next, sysinfo, canary, u32 tid, errno_val, detach_state,
 * cancel, 3 bytes, map_base, map_size, stack, stack_size, guard_size, result, cancelbuf, tsd, ...} at the thread pointer of x86-64. On
 * arm64 the struct is before the thread pointer, and dtv is its last member. */
#define MUSL_DTV 8
#define MUSL_KEYS 128
#define MUSL_DTV_BYTES 8

#define MAX_THREAD_BYTES 65536 /* glibc 2.39: 2,368 */

struct field { /* nptl_db/structs.def */
	uint32_t nr_bits, nr, off;
};

static int read_table(const struct elf_file *elf, const char *name, void *to, size_t size)
{
	struct dynamic_symbol symbol;

	if (dynamic_symbol_find(elf, name, &symbol) &&
	    symbol_value(elf, name, NULL, &symbol.elf_vaddr)) /* not exported before glibc 2.34 */
		return -ENOENT;
	return elf_file_read_vaddr(elf, symbol.elf_vaddr, to, size) ? -ENOENT : 0;
}

static int read_field(const struct elf_file *elf, const char *name, struct field *ret_field)
{
	return read_table(elf, name, ret_field, sizeof(*ret_field));
}

/* -ENOENT also if the layout is not the one that the kernel side relies on: no facts are better than wrong ones. */
static int read_glibc(const struct elf_file *elf, struct libc_facts *facts)
{
	struct field dtvp, dtv, pointer, specific, values, value;
	uint32_t key_bytes, thread_bytes = 0;

	if (read_field(elf, THREAD_DB("pthread_dtvp"), &dtvp) || read_field(elf, THREAD_DB("dtv_dtv"), &dtv) ||
	    read_field(elf, THREAD_DB("dtv_t_pointer_val"), &pointer))
		return -ENOENT;
	if (read_field(elf, THREAD_DB("pthread_specific"), &specific) ||
	    read_field(elf, THREAD_DB("pthread_key_data_level2_data"), &values) ||
	    read_field(elf, THREAD_DB("pthread_key_data_data"), &value) ||
	    read_table(elf, THREAD_DB("sizeof_pthread_key_data"), &key_bytes, sizeof(key_bytes)))
		return -ENOENT;
	/* on arm64 struct pthread is below the thread pointer */
	if (elf_file_machine(elf) == EM_AARCH64 && read_table(elf, THREAD_DB("sizeof_pthread"), &thread_bytes, sizeof(thread_bytes)))
		return -ENOENT;
	if (dtv.nr_bits != GLIBC_DTV_BYTES * 8 || dtv.off || pointer.off || key_bytes != GLIBC_KEY_BYTES || value.off != GLIBC_KEY_VALUE ||
	    values.off || !values.nr || values.nr > UINT16_MAX)
		return -ENOENT;
	facts->dtv_off = dtvp.off - thread_bytes;
	facts->dtv_stride = GLIBC_DTV_BYTES;
	facts->keys_off = specific.off - thread_bytes;
	facts->key_block = (uint16_t)values.nr;
	return 0;
}

static int defines(const struct elf_file *elf, const char *name)
{
	struct dynamic_symbol symbol;

	return !dynamic_symbol_find(elf, name, &symbol);
}

/* Recognises musl: the C library that is the dynamic linker, too. */
static int read_musl(const struct elf_file *elf, struct libc_facts *facts)
{
	if (elf_file_machine(elf) != EM_X86_64 || !defines(elf, "__libc_start_main") || !defines(elf, "__tls_get_addr") ||
	    !defines(elf, "dlopen") || defines(elf, "gnu_get_libc_version"))
		return -ENOENT;
	facts->dtv_off = MUSL_DTV;
	facts->dtv_stride = MUSL_DTV_BYTES;
	facts->keys_off = MUSL_KEYS;
	return 0;
}

/* True: the offset is in, or just before, a struct pthread. */
static bool is_near(uint32_t off)
{
	return (int32_t)off > -MAX_THREAD_BYTES && (int32_t)off < MAX_THREAD_BYTES;
}

bool libc_facts_are_sound(const struct libc_facts *facts)
{
	static const struct libc_facts unknown;

	if (!facts->is_known)
		return !memcmp(facts, &unknown, sizeof(unknown));
	if (facts->is_known != 1 || facts->pad)
		return false;
	if (facts->dtv_stride == GLIBC_DTV_BYTES)
		return facts->key_block && is_near(facts->dtv_off) && is_near(facts->keys_off);
	return facts->dtv_stride == MUSL_DTV_BYTES && !facts->key_block && facts->dtv_off == MUSL_DTV && facts->keys_off == MUSL_KEYS;
}

int libc_facts_read(const struct elf_file *elf, struct libc_facts *ret_facts)
{
	struct libc_facts facts = { .is_known = 1 };

	if (!defines(elf, "pthread_getspecific")) /* checked first, as it takes only a few reads */
		return -ENOENT;
	if ((read_glibc(elf, &facts) && read_musl(elf, &facts)) || !libc_facts_are_sound(&facts))
		return -ENOENT;
	*ret_facts = facts;
	return 0;
}
