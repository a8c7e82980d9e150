// SPDX-License-Identifier: Apache-2.0
/* java: HotSpot 8 to 25. It describes its own data in tables that are filled in at run time, so a file alone says little: which VM it is,
 * and where the tables are. docs/internals/java.md. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "elf/symbol_value.h"
#include "runtime/java/java_names.h"
#include "runtime/java/java_rows.h"
#include "runtime/java/java_vm.h"
#include "runtime/runtime.h"

#define OLDEST 8
#define NEWEST 25
#define MAX_RODATA_BYTES (64 << 20)
#define FIRST_WITH_CONTINUATIONS 21
#define CONTINUATION_RETURN "_ZN17ContinuationEntry10_return_pcE" /* in the tables since 24 or so */
#define VERSION_TEXT " JRE (" /* VM_Version::internal_vm_info_string: "... for linux-amd64 JRE (17.0.15+6), built on ..." */

static int unsupported(struct runtime_image *image, const char *why)
{
	snprintf(image->reason, sizeof(image->reason), "%s", why);
	return 0;
}

/* The number at *at, and moves behind it and a separator. 0: there is none, or it does not fit. */
static uint8_t version_part(const char **at)
{
	uint32_t value = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		value = value < 1000 ? value * 10 + (uint32_t)(**at - '0') : value;
	*at += **at == '.' || **at == '_';
	return value < 256 ? (uint8_t)value : 0;
}

/* "17.0.15+6", or "1.8.0_402-b06". */
static void take_version(const char *text, uint8_t version[3])
{
	for (int i = 0; i < 3; i++)
		version[i] = version_part(&text);
	if (version[0] != 1)
		return;
	version[0] = version[1];
	version[1] = version[2];
	version[2] = 0;
}

/* The version from the VM's description of itself: 0; -ENOENT: there is none; -ENOMEM. */
static int find_version(const struct elf_file *elf, uint8_t version[3])
{
	const struct elf_section *rodata = elf_file_find_section(elf, ".rodata");
	CLEANUP(freep) char *bytes = NULL;
	const char *at, *found = NULL;
	char text[32] = "";
	size_t size;
	int err;

	if (!rodata)
		return -ENOENT;
	err = elf_file_read_section(elf, rodata, MAX_RODATA_BYTES, NULL, (void **)&bytes, &size);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	for (at = bytes; (at = memmem(at, size - (size_t)(at - bytes), VERSION_TEXT, strlen(VERSION_TEXT))) != NULL; at++) {
		size_t left = size - (size_t)(at - bytes) - strlen(VERSION_TEXT);

		found = at + strlen(VERSION_TEXT);
		memcpy(text, found, left < sizeof(text) - 1 ? left : sizeof(text) - 1);
		take_version(text, version);
		if (version[0])
			return 0;
	}
	return -ENOENT;
}

static int find_table(const struct elf_file *elf, const char *name, uint64_t *ret_vaddr)
{
	struct dynamic_symbol symbol;

	if (dynamic_symbol_find(elf, name, &symbol))
		return -ENOENT;
	*ret_vaddr = symbol.elf_vaddr;
	return 0;
}

static int java_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image = { .runtime = SONDE_RUNTIME_JAVA };
	struct java_image *java = RUNTIME_OWN(struct java_image, image.naming);
	int err;

	if (find_table(elf, "gHotSpotVMStructs", &java->structs))
		return -ENOENT;
	err = find_version(elf, image.version);
	if (err == -ENOMEM)
		return err;
	java->major = image.version[0];
	if (java->major >= FIRST_WITH_CONTINUATIONS && symbol_value(elf, CONTINUATION_RETURN, NULL, &java->continuation_return) == -ENOMEM)
		return -ENOMEM;
	image.known.process.root.kind = SONDE_TLS_NONE;
	if (elf_file_machine(elf) != EM_X86_64)
		unsupported(&image, "not known on this machine");
	else if (find_table(elf, "gHotSpotVMTypes", &java->types) ||
		 find_table(elf, "gHotSpotVMStructEntryArrayStride", &java->structs_stride) ||
		 find_table(elf, "gHotSpotVMTypeEntryArrayStride", &java->types_stride))
		unsupported(&image, "its tables (vmStructs) are not exported");
	else if (err)
		unsupported(&image, "its version is not known");
	else if (image.version[0] < OLDEST || image.version[0] > NEWEST)
		unsupported(&image, "a version that is not known");
	else
		image.is_supported = 1;
	*ret_image = image;
	return 0;
}

static bool java_is_sound(const struct runtime_image *image)
{
	const struct java_image *java = RUNTIME_OWN(const struct java_image, image->naming);
	static const union sonde_runtime_known none;

	return java->major == image->version[0] && java->major >= OLDEST && java->major <= NEWEST && !image->nr_loops &&
	       !memcmp(&image->known, &none, sizeof(none));
}

static int java_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		      const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	int err = java_vm_read(RUNTIME_OWN(const struct java_image, image->naming), load_bias, memory, diag, ret_process);

	if (!err)
		((struct java_process *)ret_process)->java.process.load_bias = load_bias;
	return err;
}

/* The code cache grows within what it has reserved. */
static bool java_owns_code(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			   void *process)
{
	const struct java_process *java = process;

	_Static_assert(sizeof(*java) <= sizeof(union sonde_runtime_known), "no room");
	for (uint32_t i = 0; i < SONDE_JAVA_MAX_HEAPS; i++) {
		if (start_pc < java->java.heaps[i].end_pc && end_pc > java->java.heaps[i].start_pc)
			return true;
	}
	return false;
}

const struct runtime runtime_java = {
	.examine = java_examine,
	.is_sound = java_is_sound,
	.place = java_place,
	.owns_code = java_owns_code,
	.own_heap = "Java's heap does not use malloc, so only native code is seen; jcmd PID GC.class_histogram shows the heap",
	.describe = java_describe,
	.prove = java_prove,
	.tracer = "hotspot",
	.layout = "its own description (vmStructs)",
};
