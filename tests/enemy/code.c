// SPDX-License-Identifier: Apache-2.0
/* code END_NS KINDS HABITS LIBRARY0 LIBRARY1: calls its own functions at random, and from them code made at run time. That code is
 * functions of these KINDS (emit_function) in memory without any table. They call each other, a loop of their own, or back into the
 * program. HABITS: `r`, new code replaces the previous code at the same address; `e`, each at another address; `l`, opens two libraries
 * in turn, one of which gets the address of the other. */
#include <alloca.h>
#include <dlfcn.h>

#include "enemy.h"
#include "library.h"

#define NR_SITES 4
#define NR_SLOTS 5
#define SLOT_BYTES 1024
#define SITE_BYTES ((size_t)8192)

struct site {
	uint8_t *code;
	unsigned nr; /* functions in a chain: the first calls the second, and so on */
	int is_active, is_callback;
};

typedef void (*node_fn)(unsigned depth, unsigned seed);
static const node_fn nodes[6];
static struct site sites[NR_SITES];
static unsigned callback_depth;
static const char *kinds; /* kinds of functions to make */
static int is_rewriting, is_elsewhere, has_libraries;
static volatile unsigned long sink;

ENEMY_KEPT static void called_back(void)
{
	ENEMY_ENTER();
	ENEMY_CALL();
	nodes[enemy_random(6)](callback_depth, callback_depth);
	enemy_back_one();
	ENEMY_LEAVE();
}

static uint8_t *emit(uint8_t *at, const void *bytes, size_t nr)
{
	memcpy(at, bytes, nr);
	return at + nr;
}
#define EMIT(...) (at = emit(at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})))

/* mov $turns, %ecx; 1: dec %ecx; jnz 1b */
static uint8_t *emit_loop(uint8_t *at)
{
	uint32_t turns = 50000 + enemy_random(1500000);

	EMIT(0xb9);
	at = emit(at, &turns, 4);
	return EMIT(0xff, 0xc9, 0x75, 0xfc);
}

/* The function's action: it loops, calls the next one directly, or calls back through a register. */
static uint8_t *emit_payload(const struct site *site, unsigned number, uint8_t *at)
{
	if (number + 1 < site->nr) {
		int32_t off = (int32_t)(site->code + (size_t)(number + 1) * SLOT_BYTES - (at + 5));

		EMIT(0xe8);
		return emit(at, &off, 4);
	}
	if (site->is_callback) {
		uint64_t target = (uint64_t)(uintptr_t)called_back;

		EMIT(0x48, 0xb8);
		at = emit(at, &target, 8);
		return EMIT(0xff, 0xd0);
	}
	return emit_loop(at);
}

/* More instructions than an unwinder follows. */
static uint8_t *emit_long(uint8_t *at)
{
	for (int i = 0; i < 220; i++)
		EMIT(0xff, 0xc0); /* inc %eax */
	return at;
}

static void emit_function(const struct site *site, unsigned number)
{
	uint8_t *at = site->code + (size_t)number * SLOT_BYTES, room = (uint8_t)(16 * enemy_random(7));

	memset(at, 0xcc, SLOT_BYTES);
	switch (kinds[enemy_random((unsigned)strlen(kinds))] - '0') {
	case 0: /* sub $n, %rsp */
		room += 8;
		EMIT(0x48, 0x83, 0xec, room);
		at = emit_payload(site, number, at);
		EMIT(0x48, 0x83, 0xc4, room, 0xc3);
		break;
	case 1: /* a frame pointer */
		EMIT(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, room);
		at = emit_payload(site, number, at);
		EMIT(0xc9, 0xc3);
		break;
	case 2: /* pushes rbp, and leaves it */
		EMIT(0x55, 0x48, 0x83, 0xec, room);
		at = emit_payload(site, number, at);
		EMIT(0x48, 0x83, 0xc4, room, 0x5d, 0xc3);
		break;
	case 3: /* the same, with its end far away */
		EMIT(0x55, 0x48, 0x83, 0xec, room);
		at = emit_payload(site, number, at);
		at = emit_long(at);
		EMIT(0x48, 0x83, 0xc4, room, 0x5d, 0xc3);
		break;
	case 4: /* sets rbp to 0 */
		EMIT(0x55, 0x31, 0xed);
		at = emit_payload(site, number, at);
		EMIT(0x5d, 0xc3);
		break;
	case 5: /* other registers */
		EMIT(0x53, 0x41, 0x54, 0x41, 0x55);
		at = emit_payload(site, number, at);
		EMIT(0x41, 0x5d, 0x41, 0x5c, 0x5b, 0xc3);
		break;
	case 6: /* pushes rbp, and another register after the call */
		EMIT(0x55, 0x48, 0x83, 0xec, room);
		at = emit_payload(site, number, at);
		EMIT(0x50, 0x58, 0x48, 0x83, 0xc4, room, 0x5d, 0xc3);
		break;
	default: /* a frame pointer, with the end far away */
		EMIT(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, room);
		at = emit_payload(site, number, at);
		at = emit_long(at);
		EMIT(0xc9, 0xc3);
	}
}

static void make_code(struct site *site)
{
	if (is_elsewhere) /* where no code was before */
		site->code = mmap(NULL, SITE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else if (enemy_random(8) == 0) /* other memory at the same address */
		mmap(site->code, SITE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	site->nr = 1 + enemy_random(NR_SLOTS);
	site->is_callback = enemy_random(3) == 0;
	for (unsigned i = 0; i < site->nr; i++)
		emit_function(site, i);
}

ENEMY_KEPT static void call_code(unsigned depth)
{
	struct site *site = &sites[enemy_random(NR_SITES)];

	ENEMY_ENTER();
	if (!site->is_active) {
		site->is_active = 1;
		if (!site->nr || (is_rewriting && enemy_random(2)) || (is_elsewhere && !enemy_random(8)))
			make_code(site);
		callback_depth = depth;
		ENEMY_CALL();
		for (unsigned i = 0; i < site->nr; i++) {
			char name[27];

			snprintf(name, sizeof(name), "@%llx+%x", (unsigned long long)(uintptr_t)site->code + i * SLOT_BYTES,
				 SLOT_BYTES - 1);
			enemy_push('m', name);
		}
		((void (*)(void))(uintptr_t)site->code)();
		enemy_back(site->nr + (site->is_callback ? 1 : 0));
		site->is_active = 0;
	}
	ENEMY_LEAVE();
}

static const char *library_paths[2];
static const struct library_hooks hooks = {.note = enemy_note};

ENEMY_KEPT static void visit_library(unsigned depth)
{
	void *library;
	const library_fn *entry;

	ENEMY_ENTER();
	ENEMY_CALL();
	library = dlopen(library_paths[enemy_random(2)], RTLD_NOW | RTLD_LOCAL);
	entry = library ? dlsym(library, "library_entry") : NULL;
	enemy_note('S', "");
	if (!entry)
		_exit(4);
	ENEMY_CALL();
	(*entry)(&hooks, 50000 + enemy_random(1000000), depth);
	enemy_note('B', "1");
	ENEMY_CALL();
	dlclose(library);
	enemy_note('S', "");
	ENEMY_LEAVE();
}

static inline __attribute__((always_inline)) void wander(unsigned depth, unsigned seed)
{
	for (unsigned turns = 1 + enemy_random(3); turns && !enemy_is_over(); turns--) {
		unsigned what = enemy_random(100);

		if (what < 30) {
			enemy_spin(20000 + enemy_random(400000));
		} else if (depth) {
			ENEMY_CALL();
			if (what < 70)
				call_code(depth - 1);
			else if (what < 73 && has_libraries)
				visit_library(depth);
			else
				nodes[enemy_random(6)](depth - 1, seed + turns);
			enemy_back_one();
		}
	}
}

#define DEFINE_NODE(i, before, after) \
	ENEMY_KEPT static void code_f##i(unsigned depth, unsigned seed) \
	{ \
		ENEMY_ENTER(); \
		before; \
		wander(depth, seed); \
		after; \
		ENEMY_LEAVE(); \
	}
#define BUFFER(bytes) \
	volatile unsigned char room[bytes]; \
	room[seed % (bytes)] = (unsigned char)depth
#define DYNAMIC \
	volatile unsigned char *room = alloca(16 + (seed & 63)); \
	room[seed & 15] = (unsigned char)depth

DEFINE_NODE(0, , )
DEFINE_NODE(1, BUFFER(24), room[0]++)
DEFINE_NODE(2, DYNAMIC, room[0]++)
DEFINE_NODE(3, BUFFER(120), room[0]++)
DEFINE_NODE(4, DYNAMIC, room[0]++)
DEFINE_NODE(5, , )

static const node_fn nodes[6] = {code_f0, code_f1, code_f2, code_f3, code_f4, code_f5};

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	enemy_end_ns = strtoull(argv[1], NULL, 10);
	kinds = argv[2];
	is_rewriting = !!strchr(argv[3], 'r');
	is_elsewhere = !!strchr(argv[3], 'e');
	has_libraries = !!strchr(argv[3], 'l');
	library_paths[0] = argv[4];
	library_paths[1] = argv[5];
	for (int i = 0; i < NR_SITES; i++)
		sites[i].code = mmap(NULL, SITE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	enemy_begin();
	ENEMY_ENTER();
	while (!enemy_is_over()) {
		ENEMY_CALL();
		nodes[enemy_random(6)](10, 1);
		enemy_back_one();
	}
	enemy_note('Z', "");
	return 0;
}
