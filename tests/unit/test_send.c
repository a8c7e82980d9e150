// SPDX-License-Identifier: Apache-2.0
/* What the kernel side does when another CPU or user space works on the same data at the same moment: bpf/lib/send.h and
 * runtime_program.h for the host, with maps that the other side changes between two calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

static long host_update(void *map, const void *key, const void *value, uint64_t flags);
static long host_delete(void *map, const void *key);
static void *host_lookup(void *map, const void *key);
static long host_output(void *ring, void *bytes, uint64_t size, uint64_t flags);

#define bpf_map_update_elem host_update
#define bpf_map_delete_elem host_delete
#define bpf_map_lookup_elem host_lookup
#define bpf_ringbuf_output host_output
#undef BPF_CORE_READ
#undef bpf_core_field_exists
#define bpf_core_field_exists(...) 0
#define BPF_CORE_READ(task, ...) ((void)(task), 0) /* reads no task */
#include "../../bpf/abi/python.h"
#include "../../bpf/lib/runtime_program.h"

#define HASH 0x1234
#define EEXIST_OF_BPF (-17)
#define MAX_CALLS 4

static struct {
	int state;                  /* of HASH in `stacks`; -1: no entry */
	uint32_t nr_outputs, nr_in_ring;
	bool is_full[MAX_CALLS];    /* the outputs that find no room */
	enum sonde_stack_state other_side; /* result on the other CPU, which sends the same stack during the first output */
	bool has_other;
} sending;

static struct {
	void *leads_to[2];          /* what the map returns at the first and at the second call */
	uint32_t nr_calls;
	uint32_t serial;            /* serial of that memory from the second call on; 0: unchanged */
} known;

static struct {
	uint64_t words[8];
} body;

static long host_update(void *map, const void *key, const void *value, uint64_t flags)
{
	if (flags == BPF_NOEXIST && sending.state >= 0)
		return EEXIST_OF_BPF;
	sending.state = *(const uint8_t *)value;
	return 0;
}

static long host_delete(void *map, const void *key)
{
	sending.state = -1;
	return 0;
}

static uint64_t window_is; /* the current window's number */

static void *host_lookup(void *map, const void *key)
{
	static uint8_t state;
	void *to;

	if (map == &window_nr)
		return &window_is;
	if (map == &stacks) {
		state = (uint8_t)sending.state;
		return sending.state < 0 ? NULL : &state;
	}
	to = known.leads_to[known.nr_calls != 0];
	if (known.nr_calls++ && known.serial && to)
		((struct sonde_runtime_process *)to)->serial = known.serial;
	return to;
}

static enum sonde_stack_state send_it(void)
{
	return send_payload(&body, sizeof(body), sizeof(body), HASH, 0);
}

static long host_output(void *to, void *bytes, uint64_t size, uint64_t flags)
{
	uint32_t number = sending.nr_outputs++;

	if (!number && sending.has_other)
		sending.other_side = send_it();
	if (sending.is_full[number % MAX_CALLS])
		return -1;
	sending.nr_in_ring++;
	return 0;
}

/* Two CPUs find the same new stack at once, and the first gets no room in the ring. The second one's sample refers to a payload that was
 * sent. */
static void a_body_is_stored_only_when_it_is_in_the_ring(void **state)
{
	memset(&sending, 0, sizeof(sending));
	sending.state = -1;
	sending.has_other = sending.is_full[0] = true;
	assert_int_equal(send_it(), SONDE_STACK_LOST);
	assert_int_equal(sending.other_side, SONDE_STACK_STORED);
	assert_int_equal(sending.nr_in_ring, 1);
}

static void a_body_that_found_no_room_is_sent_again(void **state)
{
	memset(&sending, 0, sizeof(sending));
	sending.state = -1;
	sending.is_full[0] = true;
	assert_int_equal(send_it(), SONDE_STACK_LOST);
	assert_false(is_sent(HASH));
	assert_int_equal(send_it(), SONDE_STACK_STORED);
	assert_true(is_sent(HASH));
	assert_int_equal(sending.nr_in_ring, 1);
}

static void what_is_being_sent_was_not_sent(void **state)
{
	memset(&sending, 0, sizeof(sending));
	sending.state = SONDE_STACK_SENDING;
	assert_false(is_sent(HASH));
}

#define GENERATION 7

static enum known copy_with(void *first, void *second, uint32_t serial, struct sonde_python *ret_copy)
{
	known.leads_to[0] = first;
	known.leads_to[1] = second;
	known.nr_calls = 0;
	known.serial = serial;
	ret_copy->process.serial = 0; /* of none */
	return copy_known(NULL, 1, GENERATION, ret_copy, sizeof(*ret_copy));
}

/* User space replaces the process's entry while it is copied. The map then returns other memory, nothing, or the same memory with
 * another process's value. */
static void what_changes_while_it_is_copied_is_torn(void **state)
{
	struct sonde_python one = { .process = { .generation = GENERATION, .serial = 1 }, .code_bytes = 11 }, other = one, copy = { 0 };

	assert_int_equal(copy_with(&one, &one, 0, &copy), KNOWN_WELL);
	assert_memory_equal(&copy, &one, sizeof(copy));
	assert_int_equal(copy_with(&one, &one, 2, &copy), KNOWN_TORN);
	assert_int_equal(copy_with(&one, &other, 0, &copy), KNOWN_TORN);
	assert_int_equal(copy_with(&one, NULL, 0, &copy), KNOWN_TORN);
	assert_int_equal(copy_with(NULL, NULL, 0, &copy), KNOWN_NOT);
	one.process.generation++;
	assert_int_equal(copy_with(&one, &one, 0, &copy), KNOWN_TORN);
}

/* What was copied under the same number is not copied again, and a torn copy is not taken for whole later. */
static void a_copy_lasts_as_long_as_its_number(void **state)
{
	struct sonde_python one = { .process = { .generation = GENERATION, .serial = 1 }, .code_bytes = 11 }, copy = { 0 };

	assert_int_equal(copy_with(&one, &one, 2, &copy), KNOWN_TORN);
	assert_int_equal(copy.process.serial, 0);
	one.process.serial = 1;
	assert_int_equal(copy_with(&one, &one, 0, &copy), KNOWN_WELL);
	copy.code_bytes = 12;
	known.nr_calls = 0;
	assert_int_equal(copy_known(NULL, 1, GENERATION, &copy, sizeof(copy)), KNOWN_WELL);
	assert_int_equal(copy.code_bytes, 12);
	one.process.serial = 3;
	known.nr_calls = 0;
	assert_int_equal(copy_known(NULL, 1, GENERATION, &copy, sizeof(copy)), KNOWN_WELL);
	assert_int_equal(copy.code_bytes, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_is_stored_only_when_it_is_in_the_ring),
		cmocka_unit_test(a_body_that_found_no_room_is_sent_again),
		cmocka_unit_test(what_is_being_sent_was_not_sent),
		cmocka_unit_test(what_changes_while_it_is_copied_is_torn),
		cmocka_unit_test(a_copy_lasts_as_long_as_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
