// SPDX-License-Identifier: Apache-2.0
/* stubs SECONDS [lazy]: main > outer > stub_loop calls 32 functions of a library through its procedure linkage table. They do almost
 * nothing, so a good part of the time is in the table itself. With `lazy` each call is bound again: before each round the slots of the
 * global offset table get their initial values back, and the dynamic linker's resolver runs again. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

#include "known.h"

#define MAX_SLOTS 64
#define EACH(X) X(00) X(01) X(02) X(03) X(04) X(05) X(06) X(07) X(08) X(09) X(10) X(11) X(12) X(13) X(14) X(15) \
	X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define DECLARE(n) long stub_##n(long value);
EACH(DECLARE)

static uintptr_t *slots[MAX_SLOTS], unbound[MAX_SLOTS];
static unsigned nr_slots;
static volatile long sink;

/* The slots of this program that the dynamic linker binds late, with their current values. */
static void find_slots(void)
{
	const ElfW(Rela) *relocations = NULL;
	size_t bytes = 0;

	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_JMPREL)
			relocations = (const ElfW(Rela) *)entry->d_un.d_ptr;
		if (entry->d_tag == DT_PLTRELSZ)
			bytes = entry->d_un.d_val;
	}
	for (size_t i = 0; relocations && i < bytes / sizeof(*relocations) && nr_slots < MAX_SLOTS; i++) {
		uintptr_t *slot = (uintptr_t *)(_r_debug.r_map->l_addr + relocations[i].r_offset);

		slots[nr_slots] = slot;
		unbound[nr_slots++] = *slot;
	}
}

KNOWN static long stub_loop(int lazy)
{
	long value = 0;

	ENTER();
	known_print();
	known_ready();
	while (!known_done) {
		for (unsigned i = 0; lazy && i < nr_slots; i++)
			*slots[i] = unbound[i];
#define CALL(n) value = stub_##n(value);
		EACH(CALL)
	}
	return value;
}

KNOWN static long outer(int lazy)
{
	volatile char room[50];

	ENTER();
	room[3] = 1;
	return stub_loop(lazy) + room[3];
}

int main(int argc, char **argv)
{
	int lazy = argc > 2 && !strcmp(argv[2], "lazy");

	ENTER();
	if (lazy)
		find_slots();
	known_start(argv[1]);
	sink = outer(lazy);
	return 0;
}
