// SPDX-License-Identifier: Apache-2.0
/* otel_context SECONDS LIBRARY|- memfd|resource|late|none [many|all [PROGRAM ...]]: threads that publish their contexts by OpenTelemetry's
 * OTEP 4947, and the process's by OTEP 4719 (`resource`: as its drafts had it; `late`: when SIGUSR1 arrives). LIBRARY has the variable
 * (otel_sdk.c), and is opened after the threads have started. Each span has a function of its own, which runs only while the span is
 * attached. So the stack of a sample tells which span it must have. Prints
 *
 *   span FUNCTION TRACE SPAN KEY=TEXT,...   (- -: none)
 *   ready
 *
 * The spans of many_even and many_odd are numbers: even ones and odd ones. `many`: nothing but those. In the end it executes PROGRAM. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "known.h"

#define ATTRIBUTES 200
#define NR_TURNS 4
#define HEADER 28

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t bytes;
	uint8_t attributes[ATTRIBUTES];
} __attribute__((packed, aligned(8)));
_Static_assert(offsetof(struct record, attributes) == HEADER, "packed");

static void (*attach)(void *record);
static pthread_barrier_t opened;
static volatile uint64_t sink;
static uint64_t nr_spans;

static void spin(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink += i;
}
#define SPIN(function) \
	KNOWN static void function(unsigned rounds) \
	{ \
		for (unsigned i = 0; i < rounds && !known_done; i++) \
			sink += i; \
		__asm__ volatile(""); \
	}
SPIN(span_steady)
SPIN(span_long)
SPIN(turn_0)
SPIN(turn_1)
SPIN(turn_2)
SPIN(turn_3)
SPIN(many_even)
SPIN(many_odd)
SPIN(being_written)
SPIN(detached)
SPIN(never_attached)

static void add(struct record *record, uint8_t key, const char *text)
{
	size_t size = strlen(text);

	record->attributes[record->bytes++] = key;
	record->attributes[record->bytes++] = (uint8_t)size;
	memcpy(record->attributes + record->bytes, text, size);
	record->bytes += (uint16_t)size;
}

static void fill(struct record *record, uint8_t number)
{
	memset(record, 0, sizeof(*record));
	for (unsigned i = 0; i < sizeof(record->trace); i++)
		record->trace[i] = (uint8_t)(number * 16 + i);
	for (unsigned i = 0; i < sizeof(record->span); i++)
		record->span[i] = (uint8_t)(number * 8 + i + 1);
	record->valid = 1;
	record->flags = 1;
}

static void print_span(const char *function, const struct record *record, const char *labels)
{
	flockfile(stdout);
	printf("span %s ", function);
	for (unsigned i = 0; record && i < sizeof(record->trace); i++)
		printf("%02x", record->trace[i]);
	printf(record ? " " : "- -");
	for (unsigned i = 0; record && i < sizeof(record->span); i++)
		printf("%02x", record->span[i]);
	printf(" %s\n", labels);
	funlockfile(stdout);
}

static void detach(void)
{
	attach(NULL);
	detached(2000);
}

#define TEN "0123456789"

/* One span for all its life. Of two texts of one attribute the last counts; nothing names the attribute 200. */
static void *steady(void *argument)
{
	struct record record;

	fill(&record, 1);
	add(&record, 0, "/cart");
	add(&record, 1, "GET");
	add(&record, 0, "/checkout");
	add(&record, 200, "nobody");
	print_span("span_steady", &record, "http.route=/checkout,http.request.method=GET,labels_left_out=1");
	pthread_barrier_wait(&opened);
	attach(&record);
	while (!known_done)
		span_steady(100000);
	attach(NULL);
	return argument;
}

/* Texts that are longer than what is kept. */
static void *long_texts(void *argument)
{
	struct record record;

	fill(&record, 2);
	add(&record, 0, TEN TEN TEN TEN TEN TEN TEN TEN);
	add(&record, 2, "x");
	print_span("span_long", &record,
		   "http.route=" TEN TEN TEN TEN TEN TEN "0123\xe2\x80\xa6,a.key.that.is.longer.than.thirty\xe2\x80\xa6=x");
	pthread_barrier_wait(&opened);
	attach(&record);
	while (!known_done)
		span_long(100000);
	attach(NULL);
	return argument;
}

/* Spans that take turns; for every second one the pointer is exchanged, the others are marked as not valid while they change. */
static void *turns(void *argument)
{
	static void (*const functions[NR_TURNS])(unsigned) = { turn_0, turn_1, turn_2, turn_3 };
	struct record records[NR_TURNS], fixed;

	for (unsigned i = 0; i < NR_TURNS; i++) {
		char name[16], labels[32];

		fill(&records[i], (uint8_t)(3 + i));
		snprintf(name, sizeof(name), "turn_%u", i);
		snprintf(labels, sizeof(labels), "http.route=/%u", i);
		add(&records[i], 0, labels + strlen("http.route="));
		print_span(name, &records[i], labels);
	}
	memset(&fixed, 0, sizeof(fixed));
	pthread_barrier_wait(&opened);
	for (unsigned i = 0; !known_done; i = (i + 1) % NR_TURNS) {
		if (i % 2) {
			*(volatile uint8_t *)&fixed.valid = 0;
			attach(&fixed);
			memcpy(fixed.span, records[i].span, sizeof(fixed.span));
			being_written(500);
			memcpy(fixed.trace, records[i].trace, sizeof(fixed.trace));
			memcpy(fixed.attributes, records[i].attributes, sizeof(fixed.attributes));
			fixed.bytes = records[i].bytes;
			__asm__ volatile("" ::: "memory");
			*(volatile uint8_t *)&fixed.valid = 1;
		} else {
			attach(&records[i]);
		}
		functions[i](100000);
		detach();
	}
	return argument;
}

/* A new span each time. */
static void *many(void *argument)
{
	struct record record;
	uint64_t number = 0;

	fill(&record, 9);
	pthread_barrier_wait(&opened);
	while (!known_done) {
		number++;
		*(volatile uint8_t *)&record.valid = 0;
		for (unsigned i = 0; i < sizeof(record.span); i++)
			record.span[i] = (uint8_t)(number >> (56 - 8 * i));
		__asm__ volatile("" ::: "memory");
		*(volatile uint8_t *)&record.valid = 1;
		attach(&record);
		(number % 2 ? many_odd : many_even)(5000);
		attach(NULL);
	}
	nr_spans = number;
	return argument;
}

static void *nothing(void *argument)
{
	print_span("never_attached", NULL, "-");
	pthread_barrier_wait(&opened);
	while (!known_done)
		never_attached(100000);
	return argument;
}

/* --- the process's context ------------------------------------------------------------------------------------------------------------ */

struct message {
	uint8_t bytes[2048];
	size_t size;
};

static void put(struct message *to, uint8_t field, const void *bytes, size_t size)
{
	to->bytes[to->size++] = (uint8_t)(field << 3 | 2);
	if (size > 127)
		to->bytes[to->size++] = (uint8_t)(size & 127) | 128;
	to->bytes[to->size++] = size > 127 ? (uint8_t)(size >> 7) : (uint8_t)size;
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static void put_key_value(struct message *to, uint8_t field, const char *key, uint8_t kind, const struct message *value)
{
	struct message any = { .size = 0 }, both = { .size = 0 };

	put(&any, kind, value->bytes, value->size);
	put(&both, 1, key, strlen(key));
	put(&both, 2, any.bytes, any.size);
	put(to, field, both.bytes, both.size);
}

static void put_text(struct message *to, uint8_t field, const char *key, const char *text)
{
	struct message value = { .size = strlen(text) };

	memcpy(value.bytes, text, value.size);
	put_key_value(to, field, key, 1, &value);
}

static void put_keys(struct message *to, uint8_t field, unsigned nr)
{
	static const char *const keys[] = { "http.route", "http.request.method", "a.key.that.is.longer.than.thirty-two.bytes" };
	struct message values = { .size = 0 };

	for (unsigned i = 0; i < nr; i++) {
		struct message any = { .size = 0 };

		put(&any, 1, keys[i], strlen(keys[i]));
		put(&values, 1, any.bytes, any.size);
	}
	put_key_value(to, field, "threadlocal.attribute_key_map", 5, &values);
}

struct header {
	char signature[8];
	uint32_t version, size;
	uint64_t published;
	const void *payload;
};

static void publish(struct header *header, int is_resource, unsigned nr_keys)
{
	static struct message message;
	struct message resource = { .size = 0 };
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	*(volatile uint64_t *)&header->published = 0;
	__sync_synchronize();
	message.size = 0;
	put_text(&resource, 1, "service.name", "checkout");
	put_text(&resource, 1, "service.version", "1.2.3");
	put_text(&resource, 1, "service.instance.id", "instance-1");
	put_text(&resource, 1, "deployment.environment.name", "test");
	put_text(&resource, 1, "secret.token", "not to be shown");
	if (is_resource) {
		message = resource;
		put_keys(&message, 1, nr_keys);
	} else {
		put(&message, 1, resource.bytes, resource.size);
		put_text(&message, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
		put_keys(&message, 2, nr_keys);
	}
	header->payload = message.bytes;
	header->size = (uint32_t)message.size;
	header->version = 2;
	memcpy(header->signature, "OTEL_CTX", sizeof(header->signature));
	__sync_synchronize();
	*(volatile uint64_t *)&header->published = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct header *map_header(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	void *header;

	if (fd < 0 || ftruncate(fd, 4096))
		_exit(3);
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		_exit(3);
	close(fd);
	return header;
}

int main(int argc, char **argv)
{
	static void *(*const threads[])(void *) = { many, steady, long_texts, turns, nothing };
	unsigned nr = argc > 4 && !strcmp(argv[4], "many") ? 1 : sizeof(threads) / sizeof(*threads);
	void *library = RTLD_DEFAULT;
	struct header *header = NULL;
	int is_late = argc > 3 && !strcmp(argv[3], "late");
	sigset_t late;
	pthread_t made[sizeof(threads) / sizeof(*threads)];

	if (argc < 4)
		return 2;
	known_start(argv[1]);
	sigemptyset(&late);
	sigaddset(&late, SIGUSR1);
	sigprocmask(SIG_BLOCK, &late, NULL); /* in all threads */
	pthread_barrier_init(&opened, NULL, nr + 1);
	for (unsigned i = 0; i < nr; i++)
		pthread_create(&made[i], NULL, threads[i], NULL);
	spin(1000000);
	if (strcmp(argv[2], "-") != 0 && !(library = dlopen(argv[2], RTLD_NOW)))
		_exit(4);
	*(void **)&attach = dlsym(library, "otel_sdk_attach");
	if (!attach)
		_exit(5);
	if (!is_late && strcmp(argv[3], "none") != 0)
		publish(header = map_header(), !strcmp(argv[3], "resource"), 2);
	pthread_barrier_wait(&opened);
	usleep(300000);
	printf("ready\n");
	fflush(stdout);
	if (is_late) {
		sigwait(&late, &(int){ 0 });
		header = map_header();
	} else {
		usleep(700000);
	}
	if (header) /* while it is sampled, one more */
		publish(header, !strcmp(argv[3], "resource"), 3);
	for (unsigned i = 0; i < nr; i++)
		pthread_join(made[i], NULL);
	printf("spans %llu\n", (unsigned long long)nr_spans);
	fflush(stdout);
	if (argc > 5)
		execv(argv[5], argv + 5);
	return 0;
}
