// SPDX-License-Identifier: Apache-2.0
/* What a process publishes of itself (process/process_context): the message in both forms, damaged ones, and how it is found in a process:
 * this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "codec/protobuf.h"
#include "process/context_keys.h"
#include "process/process_context.h"
#include "process/process_labels.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct header { /* as the specification has it */
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns, payload;
};

static struct process_context context;

static void put_text(struct buffer *to, uint32_t number, const char *key, const char *text)
{
	size_t both = protobuf_open(to, number), value;

	protobuf_bytes(to, 1, key, strlen(key));
	value = protobuf_open(to, 2);
	protobuf_bytes(to, 1, text, strlen(text));
	protobuf_close(to, value);
	protobuf_close(to, both);
}

static void put_keys(struct buffer *to, uint32_t number, uint32_t nr)
{
	static const char key[] = "threadlocal.attribute_key_map";
	size_t both = protobuf_open(to, number), value, array;

	protobuf_bytes(to, 1, key, strlen(key));
	value = protobuf_open(to, 2);
	array = protobuf_open(to, 5);
	for (uint32_t i = 0; i < nr; i++) {
		size_t one = protobuf_open(to, 1);
		char name[16];

		snprintf(name, sizeof(name), "key%u", i);
		protobuf_bytes(to, 1, name, strlen(name));
		protobuf_close(to, one);
	}
	protobuf_close(to, array);
	protobuf_close(to, value);
	protobuf_close(to, both);
}

static void make(struct buffer *to, bool is_resource, uint32_t nr_keys)
{
	size_t resource = is_resource ? 0 : protobuf_open(to, 1);

	put_text(to, 1, "service.name", "checkout");
	put_text(to, 1, "service.version", "1.0");
	put_text(to, 1, "secret.token", "hunter2");
	if (is_resource) {
		put_keys(to, 1, nr_keys);
		protobuf_u64(to, 2, 3); /* dropped_attributes_count */
		return;
	}
	protobuf_close(to, resource);
	put_text(to, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
	put_keys(to, 2, nr_keys);
}

static const char *attribute(const char *key)
{
	for (uint32_t i = 0; i < context.nr_attributes; i++) {
		if (!strcmp(context.attributes[i].key, key))
			return context.attributes[i].text;
	}
	return "";
}

static void both_forms(void **state)
{
	for (int is_resource = 0; is_resource < 2; is_resource++) {
		CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 16);

		make(&message, is_resource, 3);
		assert_int_equal(process_context_parse(message.data, message.size, &context), 0);
		assert_int_equal(context.nr_attributes, 3);
		assert_string_equal(attribute("service.name"), "checkout");
		assert_string_equal(attribute("service.version"), "1.0");
		assert_int_equal(context.nr_keys, 3);
		assert_memory_equal(context.keys[2].key, "key2", 5);
		for (size_t size = 0; size < message.size; size++) { /* cut off */
			int err = process_context_parse(message.data, size, &context);

			assert_true(err == 0 || err == -EBADMSG);
		}
	}
}

static void bounds(void **state)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 20);
	size_t resource = protobuf_open(&message, 1);
	char key[16], text[300];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	put_text(&message, 1, "long", text);
	put_text(&message, 1, "twice", "first");
	put_text(&message, 1, "twice", "last\n\x1b");
	put_text(&message, 1, "", "no key");
	put_text(&message, 1, "empty", "");
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		put_text(&message, 1, key, "v");
	}
	protobuf_close(&message, resource);
	put_keys(&message, 2, 300);
	assert_int_equal(process_context_parse(message.data, message.size, &context), 0);
	assert_int_equal(context.nr_attributes, PROCESS_CONTEXT_ATTRIBUTES);
	assert_int_equal(context.nr_keys, PROCESS_CONTEXT_KEYS);
	assert_string_equal(attribute("twice"), "last??");
	assert_int_equal(strlen(attribute("long")), PROCESS_CONTEXT_TEXT - 1);
	assert_string_equal(attribute("empty"), "");
	assert_int_equal(process_context_parse("", 0, &context), 0);
	assert_int_equal(context.nr_attributes + context.nr_keys, 0);
}

/* Resources are long where detectors fill them in, and some SDKs sort them. */
static void service_comes_late(void **state)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 16);
	size_t resource = protobuf_open(&message, 1);
	char key[32];

	for (int i = 0; i < 60; i++) {
		snprintf(key, sizeof(key), "host.attribute.%d", i);
		put_text(&message, 1, key, "v");
	}
	put_text(&message, 1, "service.name", "checkout");
	protobuf_close(&message, resource);
	assert_int_equal(process_context_parse(message.data, message.size, &context), 0);
	assert_string_equal(attribute("service.name"), "checkout");
}

/* --- in a process --------------------------------------------------------------------------------------------------------------------- */

static struct header *map_memfd(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	void *mapped;

	assert_true(fd >= 0 && !ftruncate(fd, 4096));
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(mapped != MAP_FAILED);
	close(fd);
	return mapped;
}

static void publish(struct header *header, const struct buffer *message, uint64_t published_ns)
{
	*header = (struct header){
		.signature = "OTEL_CTX", .version = 2, .size = (uint32_t)message->size, .payload = (uintptr_t)message->data
	};
	header->published_ns = published_ns;
}

static void found(void **state)
{
	/* one unknown field of 65,533 bytes: a message, but for its size */
	static const uint8_t large[PROCESS_CONTEXT_BYTES + 1] = { 3 << 3 | 2, 0xfd, 0xff, 0x03 };
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 16);
	struct header *header = map_memfd();
	uint32_t self = (uint32_t)getpid();

	make(&message, false, 2);
	assert_int_equal(process_context_find(NULL, self, &context), -EBADMSG); /* no signature */
	publish(header, &message, 1);
	assert_int_equal(process_context_find(NULL, self, &context), 0);
	assert_string_equal(attribute("service.name"), "checkout");
	assert_int_equal(process_context_renew(NULL, self, &context), -EALREADY);
	header->published_ns = 2;
	assert_int_equal(process_context_renew(NULL, self, &context), 0);
	header->published_ns = 0; /* being written */
	assert_int_equal(process_context_renew(NULL, self, &context), -EAGAIN);
	assert_int_equal(process_context_find(NULL, self, &context), -EAGAIN);
	publish(header, &message, 3);
	header->version = 1;
	assert_int_equal(process_context_find(NULL, self, &context), -EBADMSG);
	publish(header, &message, 3);
	header->size = PROCESS_CONTEXT_BYTES + 1;
	header->payload = (uintptr_t)large;
	assert_int_equal(process_context_find(NULL, self, &context), -EBADMSG);
	header->size = 0;
	assert_true(process_context_find(NULL, self, &context) < 0);
	publish(header, &message, 3);
	header->payload = 4096; /* nothing is there */
	assert_true(process_context_find(NULL, self, &context) < 0);
	header->payload = UINT64_MAX;
	assert_true(process_context_find(NULL, self, &context) < 0);
	munmap(header, 4096);
	assert_int_equal(process_context_find(NULL, self, &context), -ENOENT);
	assert_true(process_context_renew(NULL, self, &context) < 0);
}

#define FILLER_BYTES 60000

static volatile bool is_done;

struct changing {
	struct header *header;
	char *first, *last; /* letters of the message */
};

/* Publishes a, b, ... in turn, by the specification's protocol. */
static void *change(void *argument)
{
	const struct changing *changing = argument;

	for (uint64_t i = 1; !is_done; i++) {
		*(volatile uint64_t *)&changing->header->published_ns = 0;
		__sync_synchronize();
		*changing->first = *changing->last = (char)('a' + i % 26);
		__sync_synchronize();
		*(volatile uint64_t *)&changing->header->published_ns = i;
		for (volatile int wait = 0; wait < 3000; wait++)
			;
	}
	return NULL;
}

/* While it changes all the time, what is read is of one publication. */
static void changing(void **state)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 17);
	CLEANUP(freep) char *filler = calloc(1, FILLER_BYTES);
	struct changing changing = { .header = map_memfd() };
	uint32_t nr_read = 0, self = (uint32_t)getpid();
	uint64_t until_ns = clock_ns() + NS_PER_S;
	pthread_t thread;

	put_text(&message, 1, "service.name", "?");
	protobuf_bytes(&message, 3, filler, FILLER_BYTES);
	put_text(&message, 1, "service.version", "?");
	changing.first = memchr(message.data, '?', message.size);
	changing.last = memrchr(message.data, '?', message.size);
	publish(changing.header, &message, 1);
	assert_int_equal(process_context_find(NULL, self, &context), 0);
	is_done = false;
	assert_int_equal(pthread_create(&thread, NULL, change, &changing), 0);
	while (clock_ns() < until_ns) {
		int err = process_context_renew(NULL, self, &context);

		assert_true(!err || err == -EALREADY || err == -EAGAIN);
		if (!err)
			assert_string_equal(attribute("service.name"), attribute("service.version"));
		nr_read += !err;
	}
	is_done = true;
	pthread_join(thread, NULL);
	assert_true(nr_read > 0);
	munmap(changing.header, 4096);
}

/* Memory without a file, with a name: where the kernel has them. */
static void named_memory(void **state)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 16);
	struct header *header = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, 8192, "OTEL_CTX")) {
		munmap(header, 8192);
		skip();
	}
	make(&message, false, 1);
	publish(header, &message, 7);
	assert_int_equal(process_context_find(NULL, (uint32_t)getpid(), &context), 0);
	assert_int_equal(context.published_ns, 7);
	munmap(header, 8192);
}

static void key_names(void **state)
{
	CLEANUP(buffer_done) struct buffer two = BUFFER_INIT(1 << 16), three = BUFFER_INIT(1 << 16);
	struct context_keys *keys = context_keys_new(NULL);
	struct header *header = map_memfd();
	const struct context_key *key;
	uint32_t self = (uint32_t)getpid();

	make(&two, false, 2);
	make(&three, false, 3);
	publish(header, &two, 1);
	key = context_keys_find(keys, self, 5, 1, true);
	assert_true(key && key->bytes == 4 && !memcmp(key->key, "key1", 4));
	assert_null(context_keys_find(keys, self, 5, 2, true));
	publish(header, &three, 2);
	key = context_keys_find(keys, self, 5, 2, true);
	assert_true(key && !memcmp(key->key, "key2", 4));
	assert_null(context_keys_find(keys, self, 6, 2, false)); /* it ran before what publishes now */
	assert_non_null(context_keys_find(keys, self, 5, 2, false));
	munmap(header, 4096);
	assert_non_null(context_keys_find(keys, self, 5, 2, true)); /* it was read */
	assert_null(context_keys_find(keys, self, 5, 3, true));
	assert_null(context_keys_find(keys, self, 6, 0, true)); /* of another program nothing is known */
	context_keys_free(keys);
}

/* What is published replaces what was found out, and nothing else leaves. */
static void joined_labels(void **state)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(1 << 16);
	const struct process_identity identity = { .service = "by its unit", .executable = "program" };
	const struct environment_names names = { 0 };
	const struct environment_values values = { 0 };
	struct process_labels *own = process_labels_new(&identity, &names, &values), *joined;

	make(&message, false, 1);
	assert_int_equal(process_context_parse(message.data, message.size, &context), 0);
	joined = process_labels_join(own, &context);
	assert_int_equal(joined->nr, 3);
	assert_string_equal(joined->list[0].key, "process.executable.name");
	assert_string_equal(joined->list[1].key, "service.name");
	assert_string_equal(joined->list[1].text, "checkout");
	assert_string_equal(joined->list[2].key, "service.version");
	process_labels_unref(own);
	process_labels_unref(joined);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms), cmocka_unit_test(bounds),	      cmocka_unit_test(service_comes_late),
		cmocka_unit_test(found),      cmocka_unit_test(changing),     cmocka_unit_test(named_memory),
		cmocka_unit_test(key_names),
		cmocka_unit_test(joined_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
