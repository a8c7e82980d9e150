// SPDX-License-Identifier: Apache-2.0
/* Which inlined methods java_scopes_find shows in code, with PcDescs and scopes, that is made up here. Methods: MAIN is the nmethod's own,
 * and has inlined F, G and H; G has inlined IN_G. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "abi/java.h"
#include "runtime/java/java_scopes.h"

enum { MAIN = 1, F, G, H, IN_G };

#define CODE_PC 0x10000
#define DESCS_AT 0x20000
#define SCOPES_AT 0x30000
#define NONE SONDE_JAVA_NO_BCI

static struct {
	uint8_t code[512], scopes[1024];
	struct java_desc descs[64];
	uint32_t nr_code, nr_scopes, nr_descs;
} made;

static int read_made(void *arg, uint64_t from, void *to, size_t size)
{
	const struct {
		uint64_t start;
		const void *bytes;
		size_t size;
	} parts[] = { { CODE_PC, made.code, sizeof(made.code) }, { DESCS_AT, made.descs, sizeof(made.descs) },
		      { SCOPES_AT, made.scopes, sizeof(made.scopes) } };

	for (size_t i = 0; i < 3; i++) {
		if (from - parts[i].start < parts[i].size && size <= parts[i].size - (from - parts[i].start)) {
			memcpy(to, (const uint8_t *)parts[i].bytes + (from - parts[i].start), size);
			return 0;
		}
	}
	return -EFAULT;
}

static const struct runtime_memory memory = { read_made, NULL };

static int begin(void **state)
{
	memset(&made, 0, sizeof(made));
	made.nr_scopes = 1;
	made.descs[made.nr_descs++] = (struct java_desc){ .pc = -1 };
	return 0;
}

/* Its offset. `values`: of a safepoint. */
static int scope(int sender, int method, int bci, int values)
{
	const uint8_t bytes[] = { (uint8_t)sender, (uint8_t)method, (uint8_t)(bci + 1), (uint8_t)values, 0, 0 };
	int at = (int)made.nr_scopes;

	memcpy(made.scopes + at, bytes, sizeof(bytes));
	made.nr_scopes += sizeof(bytes);
	return at;
}

/* In MAIN at this bci. */
static int in_main(int method, int call_bci, int bci)
{
	return scope(scope(0, MAIN, call_bci, 9), method, bci, 9);
}

static void desc(int at_scope)
{
	made.descs[made.nr_descs++] = (struct java_desc){ .pc = (int32_t)made.nr_code, .scope = at_scope };
}

static uint32_t put(const void *bytes, size_t size)
{
	uint32_t at = made.nr_code;

	memcpy(made.code + at, bytes, size);
	made.nr_code += (uint32_t)size;
	return at;
}

static uint32_t nops(void) /* its last one's offset */
{
	return put("\x90\x90\x90\x90", 4) + 3;
}

static void call(int at_scope)
{
	put("\xe8\0\0\0", 5);
	if (at_scope)
		desc(at_scope);
}

static uint32_t poll(int at_scope)
{
	desc(at_scope);
	return put("\x85\x00", 2);
}

static uint32_t jump(uint8_t op, uint32_t to) /* eb: always; 74: sometimes */
{
	const uint8_t bytes[] = { op, (uint8_t)(to - (made.nr_code + 2)) };

	return put(bytes, sizeof(bytes));
}

static void jump_here(uint32_t from)
{
	made.code[from + 1] = (uint8_t)(made.nr_code - (from + 2));
}

static int find_in(uint32_t nr_descs, uint32_t where, struct java_scopes *scopes)
{
	const struct java_debug_info info = { .memory = &memory, .descs = DESCS_AT, .scopes = SCOPES_AT, .nr_descs = nr_descs,
					      .code = CODE_PC, .code_bytes = made.nr_code };

	return java_scopes_find(&info, where, scopes);
}

/* `where` as the kernel side says it. Expected: the innermost method, how many there are, and the innermost one's bci. */
static void expect(uint32_t where, uint32_t nr, uint32_t method, uint32_t bci)
{
	struct java_scopes scopes;

	made.descs[made.nr_descs] = (struct java_desc){ .pc = INT32_MAX };
	assert_int_equal(find_in(made.nr_descs + 1, where, &scopes), 0);
	assert_int_equal(scopes.nr, nr);
	if (!nr)
		return;
	assert_int_equal(scopes.scopes[0].method, MAIN);
	assert_int_equal(scopes.scopes[nr - 1].method, method);
	assert_int_equal(scopes.scopes[nr - 1].bci, bci);
}

static void expect_at(uint32_t pc, uint32_t nr, uint32_t method, uint32_t bci) /* at an interrupted instruction */
{
	expect(pc + 1, nr, method, bci);
}

static void test_straight(void **state)
{
	uint32_t in_g, between, after;

	call(in_main(G, 20, 5));
	expect(made.nr_code, 2, G, 5); /* the return address */
	in_g = nops();
	call(in_main(G, 20, 6));
	between = nops();
	call(in_main(H, 30, 7));
	after = nops();
	put("\xc3", 1);
	expect_at(in_g, 2, G, 6);          /* both are in G: by convention the line is the next one's */
	expect_at(between, 1, MAIN, NONE); /* it is not known where G ends and H begins */
	expect_at(after, 0, 0, 0);         /* no debug information comes */
}

static void test_entry(void **state)
{
	uint32_t first = nops();

	call(in_main(G, 20, 5));
	expect_at(first, 1, MAIN, NONE);
}

/* The safepoint that is next in the code is another path's. */
static void test_other_path(void **state)
{
	uint32_t in_main_only, branch, out, in_h;

	call(in_main(G, 20, 5));
	in_main_only = nops();
	branch = jump(0x74, 0);
	out = jump(0xeb, 0);
	call(in_main(G, 20, 6)); /* cold, as the next one */
	call(in_main(H, 30, 6));
	put("\xf4", 1);
	jump_here(branch);
	in_h = nops();
	call(in_main(H, 30, 7));
	jump_here(out);
	call(in_main(G, 20, 8));
	expect_at(in_main_only, 1, MAIN, NONE); /* G comes before it and next in the code, but H may come, too */
	expect_at(in_h, 1, MAIN, NONE);         /* only jumped to: what comes before is not known */
}

/* A loop with a poll: what is inlined there is so in all of the loop, although G's other code is before it, and F's next in the code. */
static void test_loop(void **state)
{
	int in_g = scope(0, MAIN, 20, 9);
	uint32_t head, inner, exit, polling;

	call(in_main(H, 15, 3));
	head = made.nr_code;
	inner = nops();
	jump(0x74, inner);
	exit = jump(0x74, 0);
	nops();
	polling = poll(scope(in_g, IN_G, 4, 9));
	jump(0xeb, head);
	call(in_main(F, 10, 2));
	jump_here(exit);
	put("\xc3", 1);
	expect_at(inner, 2, IN_G, 4);
	expect_at(polling, 2, IN_G, 4);
}

/* The poll is of an outer loop: the inner one's method is not known. */
static void test_outer_loop(void **state)
{
	uint32_t head = made.nr_code, inner;

	call(in_main(G, 20, 5));
	inner = nops();
	jump(0x74, inner);
	call(in_main(H, 30, 7));
	poll(scope(0, MAIN, 40, 9));
	jump(0xeb, head);
	expect_at(inner, 1, MAIN, NONE);
}

static void test_both_callees(void **state)
{
	int in_g = scope(0, MAIN, 20, 9);
	uint32_t at;

	call(scope(scope(in_g, G, 7, 9), IN_G, 1, 9));
	at = nops();
	call(scope(scope(in_g, G, 7, 9), IN_G, 3, 9));
	call(scope(scope(in_g, G, 8, 9), IN_G, 3, 9));
	expect_at(at, 3, IN_G, 3);
	made.nr_code = 5;
	made.nr_descs = 2;
	at = nops();
	call(scope(scope(in_g, G, 8, 9), IN_G, 3, 9));
	expect_at(at, 2, G, NONE); /* two calls of IN_G from G */
}

/* PcDescs of DebugNonSafepoints are no proof: F's may be anywhere. */
static void test_no_safepoints(void **state)
{
	int f = scope(scope(0, MAIN, 10, 0), F, 2, 0), g = scope(scope(0, MAIN, 20, 0), G, 5, 0);
	uint32_t head, in_loop, exit, before_g, behind_leaf;

	call(in_main(H, 15, 3));
	head = made.nr_code;
	nops();
	desc(f);
	in_loop = nops();
	desc(f);
	exit = jump(0x74, 0);
	poll(scope(scope(0, MAIN, 30, 9), H, 4, 9));
	jump(0xeb, head);
	jump_here(exit);
	before_g = nops();
	desc(g);
	call(in_main(G, 20, 5));
	nops();
	desc(g);
	call(0); /* of the VM's code, no safepoint */
	desc(f);
	behind_leaf = made.nr_code;
	nops();
	call(in_main(G, 20, 9));
	expect_at(in_loop, 2, H, 4);
	expect_at(before_g, 2, G, 5);     /* all paths lead there */
	expect(behind_leaf, 2, G, 9);     /* a return address, but no safepoint's */
}

/* The return address of a call that is no safepoint. */
static void test_leaf_call(void **state)
{
	uint32_t behind;

	call(in_main(G, 20, 5));
	nops();
	call(0);
	behind = made.nr_code;
	nops();
	call(in_main(G, 20, 6));
	expect(behind, 2, G, 6);
}

static void test_hostile(void **state)
{
	struct java_scopes scopes;
	uint32_t at;

	call(in_main(G, 20, 5));
	at = nops();
	put("\x06", 1); /* no instruction */
	call(in_main(G, 20, 6));
	expect_at(at, 1, MAIN, NONE);
	call(in_main(H, 20, 6));
	made.scopes[made.nr_scopes - 6] = (uint8_t)(made.nr_scopes - 6); /* its own caller */
	made.descs[made.nr_descs] = (struct java_desc){ .pc = INT32_MAX };
	assert_int_equal(find_in(made.nr_descs + 1, made.nr_code, &scopes), -EBADMSG);
	assert_int_equal(find_in(1 << 16, at + 1, &scopes), -EFAULT);
	assert_int_equal(find_in(0, at + 1, &scopes), 0);
	assert_int_equal(scopes.nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_straight, begin), cmocka_unit_test_setup(test_entry, begin),
		cmocka_unit_test_setup(test_other_path, begin), cmocka_unit_test_setup(test_loop, begin),
		cmocka_unit_test_setup(test_outer_loop, begin), cmocka_unit_test_setup(test_both_callees, begin),
		cmocka_unit_test_setup(test_no_safepoints, begin), cmocka_unit_test_setup(test_leaf_call, begin),
		cmocka_unit_test_setup(test_hostile, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
