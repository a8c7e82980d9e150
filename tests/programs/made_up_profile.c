// SPDX-License-Identifier: Apache-2.0
#include "made_up_profile.h"

#include <string.h>

#define MAX_FRAMES 64

struct place { /* the parts of a location; name NULL ends a list */
	const char *name, *path, *build_id;
	uint64_t pc, off;
	enum frame_kind kind;
	int strayed; /* its pc is below (-1) or above (1) its mapping */
	const char *file; /* source, or NULL */
	uint32_t line, start_line, is_inlined;
};

#define WORKER "/usr/bin/worker", "5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7"
#define LIBC "/usr/lib/x86_64-linux-gnu/libc.so.6", "93ac8b2f0d1e4c5a6b7988776655443322110fed"
#define BASE_PC 0x400000ULL
#define LIBC_PC 0x7f0000000000ULL
#define KERNEL_KADDR 0xffffffff81000000ULL
#define NATIVE(name, where, pc) { name, where, pc, (pc) & 0xf, FRAME_NATIVE, 0, NULL, 0, 0, 0 }
#define KERNEL(name, pc) { name, NULL, "", KERNEL_KADDR + (pc), (pc) & 0xff, FRAME_KERNEL, 0, NULL, 0, 0, 0 }
#define MARK(name, kind) { name, NULL, "", 0, 0, kind, 0, NULL, 0, 0, 0 }
#define SOURCE(name, pc, off, file, line, start_line, is_inlined) \
	{ name, WORKER, pc, off, FRAME_NATIVE, 0, file, line, start_line, is_inlined }
#define RUN(name, file, line, start_line, kind) { name, NULL, "", 0, 0, kind, 0, file, line, start_line, 0 }
#define PYTHON(name, file, line, start_line) RUN(name, file, line, start_line, FRAME_PYTHON)
#define END { NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, 0 }

#define LONG_NAME_CHARS 1000
static char long_name[LONG_NAME_CHARS + 1]; /* filled once with one repeated letter */

static uint32_t add_mapping(struct profile *profile, const struct place *place)
{
	struct profile_mapping mapping = { .file_off = 0x1000 };

	if (!place->path)
		return PROFILE_NONE;
	mapping.start_pc = (place->pc & ~0xfffffULL) - (uint64_t)(int64_t)(place->strayed * 0x100000);
	mapping.end_pc = mapping.start_pc + 0x100000;
	mapping.path = profile_string(profile, place->path);
	mapping.build_id = profile_string(profile, place->build_id);
	return profile_mapping(profile, &mapping);
}

static uint32_t add_location(struct profile *profile, const struct place *place)
{
	struct profile_function function = { .file = profile_string(profile, place->file ? place->file : ""), .line = place->start_line };
	struct profile_location location = { .pc = place->pc, .kind = place->kind, .function_off = place->off, .line = place->line };

	function.name = function.system_name = profile_string(profile, place->name);
	location.function = profile_function(profile, &function);
	location.mapping = add_mapping(profile, place);
	location.is_inlined = place->is_inlined;
	if (place->path)
		location.elf_vaddr = (place->pc & 0xfffff) + 0x1000;
	if (*place->name == '[')
		location.function_off = 0;
	return profile_location(profile, &location);
}

/* Leaf first; NULL: the side does not exist. */
static uint32_t add_stack(struct profile *profile, const struct place *places)
{
	uint32_t locations[MAX_FRAMES], nr_locations = 0;

	if (!places)
		return PROFILE_NONE;
	for (; places[nr_locations].name; nr_locations++)
		locations[nr_locations] = add_location(profile, &places[nr_locations]);
	return profile_stack(profile, locations, nr_locations);
}

struct made_up_sample {
	const char *comm;
	const struct place *user, *kernel;
	uint32_t tgid, tid, cpu;
	uint64_t count;
};

static const struct place spin[] = { NATIVE("spin", WORKER, 0x401104), NATIVE("work", WORKER, 0x401205), NATIVE("main", WORKER, 0x401306),
				     NATIVE("__libc_start_main", LIBC, LIBC_PC + 0x2724a), NATIVE("_start", WORKER, 0x401021), END };
static const struct place spin_elsewhere[] = { NATIVE("spin", WORKER, 0x401108), NATIVE("work", WORKER, 0x401205),
					       NATIVE("main", WORKER, 0x401306), NATIVE("__libc_start_main", LIBC, LIBC_PC + 0x2724a),
					       NATIVE("_start", WORKER, 0x401021), END };
static const struct place reads[] = { NATIVE("__read", LIBC, LIBC_PC + 0x9a7c1), NATIVE("load", WORKER, 0x401404),
				      NATIVE("main", WORKER, 0x40130e), END };
static const struct place kernel_read[] = { KERNEL("copy_user_generic", 0x10), KERNEL("vfs_read", 0x1121), KERNEL("ksys_read", 0x2132),
					    KERNEL("do_syscall_64", 0x3143), KERNEL("entry_SYSCALL_64_after_hwframe", 0x4154), END };
static const struct place kernel_thread[] = { KERNEL("worker_thread", 0x5165), KERNEL("kthread", 0x6176), KERNEL("ret_from_fork", 0x7187),
					      END };
static const struct place kernel_module[] = { KERNEL("ext4_readpage [ext4]", 0x40001234), KERNEL("kthread", 0x6176), END };
static const struct place missed_user[] = { MARK(PROFILE_MISSED_USER, FRAME_MISSED), END };
static const struct place missed_kernel[] = { MARK(PROFILE_MISSED_KERNEL, FRAME_MISSED), END };
static const struct place truncated[] = { NATIVE("recurse(int)", WORKER, 0x401508), NATIVE("recurse(int)", WORKER, 0x401518),
					  MARK("[truncated]", FRAME_MARK), END };
static const struct place no_symbols[] = { { "[libfoo.so]", "/opt/libfoo.so", "", LIBC_PC + 0x500abc, 0, FRAME_NATIVE, 0, NULL, 0, 0, 0 },
					   { "[unknown]", NULL, "", 0x7f12345678, 0, FRAME_NATIVE, 0, NULL, 0, 0,
					     0 }, /* JIT code without a map */
					   { "[libfoo.so]", "/opt/libfoo.so", "", LIBC_PC + 0x500def, 0, FRAME_NATIVE, 0, NULL, 0, 0, 0 },
					   END };
static const struct place hostile[] = { NATIVE("<script>alert(1)</script>", WORKER, 0x402001),
					NATIVE("</script><!--", WORKER, 0x402012),
					NATIVE("a;b", WORKER, 0x402023),
					NATIVE("new\nline\ttab", WORKER, 0x402034),
					NATIVE("\"quotes\" & 'more' \\", WORKER, 0x402045),
					NATIVE("bad \xff\xc3( utf8 \xe2\x82", WORKER, 0x402056),
					NATIVE("\x1b[31mred\x07\xc2\x9b", WORKER, 0x402067),
					NATIVE("line\xe2\x80\xa8separator \xe2\x80\xaeturned", WORKER, 0x402078),
					NATIVE("gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x94\xa5", WORKER, 0x402089),
					NATIVE(long_name, WORKER, 0x40209a),
					NATIVE("", WORKER, 0x4020ab),
					END };
static const struct place outside[] = { { "stray", WORKER, 0x403001, 1, FRAME_NATIVE, -1, NULL, 0, 0, 0 },
					{ "stray", WORKER, 0x403012, 2, FRAME_NATIVE, 1, NULL, 0, 0, 0 }, END };

/* Two functions inlined into a third, and into the same one at another location. */
static const struct place inlined[] = { SOURCE("main.square", 0x404123, 0, "/src/math.go", 11, 10, 1),
					SOURCE("main.norm", 0x404123, 0, "/src/math.go", 21, 20, 1),
					SOURCE("main.shade", 0x404123, 0x23, "/src/shade.go", 33, 30, 0),
					SOURCE("main.main", 0x404256, 0x56, "/src/shade.go", 45, 40, 0), END };
static const struct place inlined_elsewhere[] = { SOURCE("main.square", 0x404189, 0, "/src/math.go", 12, 10, 1),
						  SOURCE("main.shade", 0x404189, 0x89, "/src/shade.go", 35, 30, 0),
						  SOURCE("main.main", 0x404256, 0x56, "/src/shade.go", 45, 40, 0), END };

/* Interpreter frames between native frames: functions of one name in two files and at two first lines, files whose names show no
 * language, and an omitted part. */
static const struct place python[] = { NATIVE("bisect", LIBC, LIBC_PC + 0x3311),
				       PYTHON("find", "/srv/app/models.py", 14, 12),
				       PYTHON("find", "/srv/app/models.py", 44, 42),
				       NATIVE("list_sort", WORKER, 0x405123),
				       PYTHON("<module>", "/srv/app/views/__init__.py", 3, 1),
				       PYTHON("<lambda>", "<string>", 241, 233),
				       MARK("[python: frames left out]", FRAME_MARK),
				       PYTHON("<module>", "/srv/app/main.py", 9, 1),
				       NATIVE("Py_RunMain", WORKER, 0x405234),
				       END };
static const struct place python_elsewhere[] = { PYTHON("find", "/srv/app/models.py", 15, 12), PYTHON("<module>", "/srv/old/main.py", 0, 1),
						 NATIVE("Py_RunMain", WORKER, 0x405234), END };
static const struct place other_runtimes[] = { RUN("App\\Http\\Kernel::handle", "/var/www/index;1.php", 20, 18, FRAME_PHP),
					       RUN("{main}", "", 0, 0, FRAME_PHP),
					       NATIVE("php_execute_scripts", WORKER, 0x405345),
					       RUN("List::Util::first", "/usr/share/perl/List/Util.pm", 7, 5, FRAME_PERL),
					       RUN("<b>main</b>", "run.pl", 3, 0, FRAME_PERL),
					       NATIVE("perl_run", WORKER, 0x405456),
					       END };

static const struct made_up_sample samples[] = {
	{ "worker", spin, NULL, 100, 100, 0, 30 },
	{ "worker", spin_elsewhere, NULL, 100, 101, 1, 12 },
	{ "worker", spin, NULL, 200, 200, 1, 5 },
	{ "worker", reads, kernel_read, 100, 100, 0, 7 },
	{ "worker", reads, kernel_read, 100, 101, 0, 2 },
	{ "kworker/0:1", NULL, kernel_thread, 7, 7, 0, 3 },
	{ "kworker/0:1", NULL, kernel_module, 7, 7, 0, 3 },
	{ "worker", missed_user, kernel_read, 100, 100, 0, 4 },
	{ "worker", reads, missed_kernel, 100, 100, 0, 1 },
	{ "worker", missed_user, missed_kernel, 100, 100, 0, 1 },
	{ "deep", truncated, NULL, 300, 300, 0, 6 },
	{ "stripped", no_symbols, NULL, 400, 400, 1, 8 },
	{ "a;b\n\x1b[2J\"'", hostile, NULL, 666, 666, 1, 9 },
	{ "</script>", outside, NULL, 667, 667, 1, 1 },
	{ "nothing", NULL, NULL, 500, 500, 0, 2 },
	{ "", spin, kernel_read, 501, 501, 0, 1 },
	{ "gopher", inlined, NULL, 700, 701, 1, 10 },
	{ "gopher", inlined_elsewhere, NULL, 700, 702, 0, 4 },
	{ "python3", python, kernel_read, 800, 800, 0, 11 },
	{ "python3", python_elsewhere, NULL, 800, 801, 1, 2 },
	{ "php", other_runtimes, NULL, 801, 801, 1, 6 },
};

static void fill_account(struct account *account)
{
	snprintf(account->command_line, sizeof(account->command_line), "profile -F 49 -o <a&b>.html 10");
	snprintf(account->event, sizeof(account->event), "cpu-clock");
	snprintf(account->event_unit, sizeof(account->event_unit), "nanoseconds");
	snprintf(account->host, sizeof(account->host), "made-up");
	snprintf(account->kernel, sizeof(account->kernel), "6.1.0-made-up");
	account->freq_hz = 49;
	account->start_unix_ns = 1700000000123456789ULL;
	account->duration_ns = 10000000000ULL;
	account->nr_cpus = 2;
	account->filtered[SONDE_FILTER_IDLE] = 881;
	account->dropped[SONDE_DROP_RING_FULL] = 3;
	account->nr_frames_unnamed = 2;
	account->runtime_missed = 1;
	account->labels_missed = 6;
	account->runtime_cache_hits = 1600;
	account->runtime_cache_checks = 100;
	account->runtime_cache_wrong = 4;
	account_runtime(account, "python", "3.11.2", 1);
	account_runtime(account, "perl", "5.36.0", 2);
	account->runtime_stopped[SONDE_RUNTIME_STOP_COMPLETE] = 15;
	account->runtime_stopped[SONDE_RUNTIME_STOP_DEPTH] = 4;
	account->audited = 128;
	account->audit_agreed = 124;
	account->audit_differed = 1;
	account->audit_not_comparable[AUDIT_REASON_COPY] = 1;
	account->audit_not_comparable[AUDIT_REASON_NO_CFI] = 2;
	account->cpu_user_ns = 41000000;
	account->cpu_system_ns = 12000000;
	account->max_rss_bytes = 18 << 20;
	account->bpf_map_bytes = 5 << 20;
	account->startup_ns = 187000000;
	account->unwind_rows = 412345;
	account->unwind_bytes = 1800000;
	account->unwind_evicted = 7;
	account->unwind_reloaded = 3;
	account->unwind_cached = 50;
	account->nr_processes = 61;
	account->nr_objects = 88;
}

/* Each sample's own figures, so that the account's sums are right. */
static void count_sample(struct account *account, const struct made_up_sample *sample)
{
	account->recorded += sample->count;
	if (sample->user == truncated)
		account->stopped[SONDE_STOP_DEPTH] += sample->count;
	else if (sample->user && sample->user != missed_user)
		account->stopped[SONDE_STOP_COMPLETE] += sample->count;
	account->missed_user += sample->user == missed_user ? sample->count : 0;
	account->missed_kernel += sample->kernel == missed_kernel ? sample->count : 0;
}

static void close_account(struct account *account)
{
	account->ticks = account->recorded;
	account->expected = 4711;
	account->events = 5000000;
	account->throttled = 3;
	account->throttled_ns = 12345678;
	account->unscheduled_ns = 2000000;
	for (int i = 0; i < SONDE_FILTER_COUNT; i++)
		account->ticks += account->filtered[i];
	for (int i = 0; i < SONDE_DROP_COUNT; i++)
		account->ticks += account->dropped[i];
}

struct profile *made_up_profile(void)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();

	if (!profile)
		return NULL;
	memset(long_name, 'x', LONG_NAME_CHARS);
	fill_account(profile_account(profile));
	account_note(profile_account(profile), "the event \"cycles\" is not there; sampled cpu-clock <b>instead</b>");
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct made_up_sample *from = &samples[i];
		struct profile_sample sample = {
			.tgid = from->tgid, .tid = from->tid, .cpu = from->cpu, .values = { (int64_t)from->count }
		};

		sample.user_stack = add_stack(profile, from->user);
		sample.kernel_stack = add_stack(profile, from->kernel);
		sample.comm = profile_string(profile, from->comm);
		if (profile_add(profile, &sample))
			return NULL;
		count_sample(profile_account(profile), from);
	}
	close_account(profile_account(profile));
	return MOVE(profile);
}

/* xorshift64: the same numbers on every machine. */
static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (uint32_t)(*seed >> 33) % below;
}

/* Favours small numbers: most calls take the same few ways. */
static uint32_t draw_branch(uint64_t *seed)
{
	uint32_t branch = 0;

	while (branch < 6 && !draw(seed, 3))
		branch++;
	return branch;
}

static uint32_t big_user_stack(struct profile *profile, uint64_t *seed, uint32_t program)
{
	static const char *const verbs[] = {
		"parse", "eval", "lookup", "insert", "copy", "scan", "visit", "emit", "hash", "merge", "sort"
	};
	static const char *const nouns[] = { "expression", "node",  "tuple",   "row",  "page",	"token", "buffer",
					     "list",	   "index", "request", "path", "value", "table" };
	uint32_t locations[MAX_FRAMES], nr_frames = 6 + draw(seed, 30), at = program * 7919;

	for (uint32_t i = 1; i <= nr_frames; i++) {
		char name[64], path[64];
		struct place place = { .name = name, .path = path, .build_id = "00ff", .off = 8, .kind = FRAME_NATIVE };

		at = at * 31 + draw_branch(seed);
		snprintf(name, sizeof(name), "%s_%s", verbs[at % ARRAY_SIZE(verbs)], nouns[at / 16 % ARRAY_SIZE(nouns)]);
		snprintf(path, sizeof(path), "/usr/bin/program%u", program);
		place.pc = BASE_PC + at % 4096 * 16;
		locations[nr_frames - i] = add_location(profile, &place);
	}
	return profile_stack(profile, locations, nr_frames);
}

/* A sample of one of several programs, without values. */
static struct profile_sample draw_sample(struct profile *profile, uint64_t *seed, uint32_t kind)
{
	static const char *const comms[] = { "postgres", "python3", "cc1plus", "nginx", "ld", "sshd" };
	uint32_t program = draw_branch(seed) % (uint32_t)ARRAY_SIZE(comms);
	struct profile_sample sample = { .tgid = 100 + program, .tid = 100 + program + draw(seed, 4), .cpu = draw(seed, 2) };

	sample.values[0] = 1 + draw(seed, 5);
	sample.comm = profile_string(profile, comms[program]);
	sample.user_stack = big_user_stack(profile, seed, program);
	sample.kernel_stack = kind < 2 ? add_stack(profile, kernel_read) : PROFILE_NONE;
	if (kind == 9)
		sample.user_stack = add_stack(profile, draw(seed, 2) ? truncated : missed_user);
	return sample;
}

static int add_big_sample(struct profile *profile, const struct profile_sample *sample, uint32_t kind, int64_t nr)
{
	profile_account(profile)->recorded += (uint64_t)nr;
	profile_account(profile)->stopped[kind == 9 ? SONDE_STOP_DEPTH : SONDE_STOP_COMPLETE] += (uint64_t)nr;
	return profile_add(profile, sample);
}

struct profile *made_up_big_profile(uint32_t nr_stacks)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	uint64_t seed = 88172645463325252ULL;

	if (!profile)
		return NULL;
	fill_account(profile_account(profile));
	for (uint32_t i = 0; i < nr_stacks; i++) {
		uint32_t kind = draw(&seed, 10);
		struct profile_sample sample = draw_sample(profile, &seed, kind);

		if (add_big_sample(profile, &sample, kind, sample.values[0]))
			return NULL;
	}
	close_account(profile_account(profile));
	return MOVE(profile);
}

struct profile *made_up_timed_profile(uint32_t nr_samples)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	uint64_t seed = 88172645463325252ULL;

	if (!profile)
		return NULL;
	fill_account(profile_account(profile));
	profile_account(profile)->freq_hz = 99;
	for (uint32_t i = 0; i < nr_samples; i++) {
		uint32_t kind = draw(&seed, 10);
		struct profile_sample sample = draw_sample(profile, &seed, kind);
		uint64_t at_ns = profile_account(profile)->duration_ns / nr_samples * i;

		if (sample.tgid == 101) /* works only in the third and fourth second */
			at_ns = 2000000000 + at_ns / 5;
		sample.time_ns = profile_account(profile)->start_unix_ns + at_ns;
		sample.values[0] = 1;
		if (add_big_sample(profile, &sample, kind, 1))
			return NULL;
	}
	close_account(profile_account(profile));
	return MOVE(profile);
}

struct profile *made_up_diff_profile(uint32_t nr_stacks)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	uint64_t seed = 88172645463325252ULL;
	int64_t before = 0, after = 0;

	if (!profile)
		return NULL;
	fill_account(profile_account(profile));
	profile_set_value_types(profile, (struct profile_value_type[]){
		{ .type = profile_string(profile, "before"), .unit = profile_string(profile, "count") },
		{ .type = profile_string(profile, "after"), .unit = profile_string(profile, "count") } }, 2, 1);
	for (uint32_t i = 0; i < nr_stacks; i++) {
		uint32_t kind = draw(&seed, 10);
		struct profile_sample sample = draw_sample(profile, &seed, kind);

		if (i + 1 == nr_stacks) { /* both have the same total */
			sample.values[0] += after > before ? after - before : 0;
			sample.values[1] = before + sample.values[0] - after;
		} else if (sample.tgid == 101) {
			sample.values[1] = sample.values[0] * 2;
		} else if (sample.tgid != 102) {
			sample.values[1] = kind < 2 ? sample.values[0] / 2 : sample.values[0];
		}
		before += sample.values[0];
		after += sample.values[1];
		if (add_big_sample(profile, &sample, kind, sample.values[1]))
			return NULL;
	}
	close_account(profile_account(profile));
	profile_account(profile)->sides[0] = (struct account_side){ "monday.json", (uint64_t)before * 2, (uint64_t)before * 2 };
	profile_account(profile)->sides[1] = (struct account_side){ "tuesday.json", (uint64_t)before, (uint64_t)before };
	return MOVE(profile);
}

#define TICK_NS 20408163ULL

static uint32_t made_up_labels(struct profile *profile, uint32_t i)
{
	struct profile_label labels[2];

	memset(labels, 0, sizeof(labels));
	labels[0].key = profile_string(profile, "route;\"path\"");
	labels[0].text = profile_string(profile, i % 2 ? "/orders/{id}" : "/<b>&");
	labels[1].key = profile_string(profile, "request");
	labels[1].number = (int64_t)i - 4;
	labels[1].unit = profile_string(profile, "bytes");
	labels[1].is_number = 1;
	return profile_labels(profile, labels, 2);
}

struct profile *made_up_threads_profile(void)
{
	static const struct made_up_sample threads[] = { { "gopher", inlined, NULL, 700, 700, 1, 1 },
							 { "worker 2", reads, kernel_read, 700, 701, 0, 1 },
							 { "deep", truncated, NULL, 300, 300, 0, 1 },
							 { "python3", python, kernel_read, 800, 800, 0, 1 } };
	CLEANUP(profile_freep) struct profile *profile = profile_new();

	if (!profile)
		return NULL;
	fill_account(profile_account(profile));
	for (uint32_t i = 0; i < 24; i++) {
		const struct made_up_sample *from = &threads[i % ARRAY_SIZE(threads)];
		struct profile_sample sample = { .tgid = from->tgid, .tid = from->tid, .cpu = from->cpu, .values = { 1 } };

		sample.user_stack = add_stack(profile, i % 8 ? from->user : inlined_elsewhere);
		sample.kernel_stack = add_stack(profile, from->kernel);
		sample.comm = profile_string(profile, from->comm);
		sample.labels = i % 5 ? PROFILE_NO_LABELS : made_up_labels(profile, i);
		sample.time_ns = profile_account(profile)->start_unix_ns + (i / 3 + (i > 12 ? 10 : 0)) * TICK_NS + i % 3 * 1000;
		if (profile_add(profile, &sample))
			return NULL;
		count_sample(profile_account(profile), from);
	}
	close_account(profile_account(profile));
	return MOVE(profile);
}

struct profile *made_up_heap_profile(void)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	static const char *const names[][2] = {
		{ "alloc_objects", "count" }, { "alloc_space", "bytes" }, { "inuse_space", "bytes" }, { "delay", "microseconds" }
	};
	struct profile_value_type types[ARRAY_SIZE(names)];

	if (!profile)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		types[i] = (struct profile_value_type){ .type = profile_string(profile, names[i][0]),
							.unit = profile_string(profile, names[i][1]) };
	profile_set_value_types(profile, types, ARRAY_SIZE(types), 2);
	fill_account(profile_account(profile));
	for (uint32_t i = 0; i < 3; i++) {
		struct profile_sample sample = { .kernel_stack = PROFILE_NONE,
						 .cpu = PROFILE_NONE,
						 .values = { 7, 7LL << (20 + i), 3LL << 53, -5 } };

		sample.user_stack = add_stack(profile, i ? inlined : hostile);
		sample.comm = profile_string(profile, i < 2 ? "heap" : "other heap");
		sample.labels = made_up_labels(profile, i);
		if (profile_add(profile, &sample))
			return NULL;
	}
	return MOVE(profile);
}

static const struct place locks[] = { NATIVE("__lll_lock_wait", LIBC, LIBC_PC + 0x8a001), NATIVE("produce", WORKER, 0x406105),
				      NATIVE("main", WORKER, 0x401306), END };
static const struct place locks_elsewhere[] = { NATIVE("__lll_lock_wait", LIBC, LIBC_PC + 0x8a001), NATIVE("produce", WORKER, 0x406205),
						NATIVE("main", WORKER, 0x401306), END };
static const struct place sleeps[] = { NATIVE("clock_nanosleep", LIBC, LIBC_PC + 0x8b001), NATIVE("produce", WORKER, 0x406305),
				       NATIVE("main", WORKER, 0x401306), END };
static const struct place kernel_futex[] = { MARK("[futex]", FRAME_MARK), KERNEL("futex_wait_queue", 0x8010), KERNEL("do_futex", 0x8121),
					     KERNEL("do_syscall_64", 0x3143), END };
static const struct place kernel_sleep[] = { MARK("[sleep]", FRAME_MARK), KERNEL("do_nanosleep", 0x9010), KERNEL("do_syscall_64", 0x3143),
					     END };
static const struct place preempted[] = { MARK("[preempted]", FRAME_MARK), NATIVE("spin", WORKER, 0x401104),
					  NATIVE("main", WORKER, 0x401306), END };

static const struct made_up_wait {
	struct made_up_sample of; /* its count is useless */
	int64_t blocked_us[4];    /* each wait; 0: none */
} waits[] = {
	{ { "producer", locks, kernel_futex, 600, 601, 0, 0 }, { 19000, 21000, 20000 } },
	{ { "producer", locks_elsewhere, kernel_futex, 600, 601, 0, 0 }, { 5, 24000 } },
	{ { "producer", locks, kernel_futex, 600, 602, 0, 0 }, { 3000000 } },
	{ { "producer", sleeps, kernel_sleep, 600, 601, 0, 0 }, { 80000, 80001, 80002 } },
	{ { "python3", python, kernel_futex, 800, 800, 0, 0 }, { 1, 2, 3, 5000 } },
	{ { "worker", preempted, NULL, 100, 100, 0, 0 }, { 4000, 8191 } },
	{ { "kworker/0:1", NULL, kernel_thread, 7, 7, 0, 0 }, { 999 } },
};

/* Three: of all waits, of one process, and of the stacks. */
static bool add_wait_histograms(struct profile *profile, const struct profile_sample *sample, int64_t blocked_us)
{
	struct profile_histogram whole = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE }, of_process, of_stack;

	whole.name = profile_string(profile, "blocked time");
	whole.unit = profile_string(profile, "us");
	histogram_add(&whole.histogram, (uint64_t)blocked_us, 1);
	of_process = of_stack = whole;
	of_process.key = profile_string(profile, "<b>pid</b> 600");
	of_stack.user_stack = sample->user_stack;
	of_stack.kernel_stack = sample->kernel_stack;
	of_stack.comm = sample->comm;
	of_stack.tgid = sample->tgid;
	of_stack.tid = sample->tid;
	return profile_histogram(profile, &whole) != PROFILE_NONE && profile_histogram(profile, &of_stack) != PROFILE_NONE &&
	       (sample->tgid != 600 || profile_histogram(profile, &of_process) != PROFILE_NONE);
}

struct profile *made_up_waits_profile(void)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_histogram length = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .histogram.scale = HISTOGRAM_LINEAR };

	if (!profile)
		return NULL;
	fill_account(profile_account(profile));
	snprintf(profile_account(profile)->event, sizeof(profile_account(profile)->event), "off-cpu");
	profile_set_value_types(profile, (struct profile_value_type[]){
		{ profile_string(profile, "waits"), profile_string(profile, "count"), VALUE_SUM },
		{ profile_string(profile, "blocked"), profile_string(profile, "nanoseconds"), VALUE_SUM },
		{ profile_string(profile, "shortest"), profile_string(profile, "nanoseconds"), VALUE_MIN },
		{ profile_string(profile, "longest"), profile_string(profile, "nanoseconds"), VALUE_MAX } }, 4, 1);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		const struct made_up_sample *from = &waits[i].of;
		struct profile_sample sample = { .tgid = from->tgid, .tid = from->tid, .cpu = PROFILE_NONE };

		sample.user_stack = add_stack(profile, from->user);
		sample.kernel_stack = add_stack(profile, from->kernel);
		sample.comm = profile_string(profile, from->comm);
		for (size_t k = 0; k < ARRAY_SIZE(waits[i].blocked_us) && waits[i].blocked_us[k]; k++) {
			int64_t us = waits[i].blocked_us[k];

			memcpy(sample.values, (int64_t[PROFILE_MAX_VALUES]){ 1, us * 1000, us * 1000, us * 1000 }, sizeof(sample.values));
			if (profile_add(profile, &sample) || !add_wait_histograms(profile, &sample, us))
				return NULL;
		}
	}
	length.name = profile_string(profile, "run queue length");
	histogram_add(&length.histogram, 0, 90);
	histogram_add(&length.histogram, 2, 9);
	return profile_histogram(profile, &length) == PROFILE_NONE ? NULL : MOVE(profile);
}

static const struct place on_cpu[] = { NATIVE("spin", WORKER, 0x401104), NATIVE("main", WORKER, 0x401306), MARK("[on-cpu]", FRAME_MARK),
				       END };
static const struct place runnable[] = { NATIVE("main", WORKER, 0x401306), MARK("[runnable]", FRAME_MARK), END };
static const struct place in_futex[] = { NATIVE("__lll_lock_wait", LIBC, LIBC_PC + 0x8a001), NATIVE("main", WORKER, 0x401306),
					 MARK("[blocked: futex]", FRAME_MARK), END };
static const struct place in_sleep[] = { MARK("[truncated]", FRAME_MARK), MARK("[blocked: sleep]", FRAME_MARK), END };

/* Counts are milliseconds. Three threads wait throughout. */
static const struct made_up_sample walls[] = {
	{ "server", on_cpu, NULL, 900, 900, 0, 1000 },     { "server", runnable, NULL, 900, 900, 0, 500 },
	{ "server", in_futex, NULL, 900, 900, 0, 8500 },   { "worker-1", on_cpu, NULL, 900, 901, 0, 4000 },
	{ "worker-1", in_sleep, NULL, 900, 901, 0, 6000 }, { "pool", in_futex, NULL, 900, 902, 0, 10000 },
	{ "pool", in_futex, NULL, 900, 903, 0, 10000 },    { "pool", in_sleep, NULL, 900, 904, 0, 10000 },
};

struct profile *made_up_wall_profile(void)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();

	if (!profile)
		return NULL;
	fill_account(profile_account(profile));
	profile_account(profile)->has_waits = true;
	profile_set_value_types(profile, (struct profile_value_type[]){
		{ profile_string(profile, "wall"), profile_string(profile, "nanoseconds"), VALUE_SUM } }, 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		const struct made_up_sample *from = &walls[i];
		struct profile_sample sample = { .tgid = from->tgid, .tid = from->tid, .cpu = PROFILE_NONE, .kernel_stack = PROFILE_NONE,
						 .values = { (int64_t)from->count * 1000000 } };

		sample.user_stack = add_stack(profile, from->user);
		sample.comm = profile_string(profile, from->comm);
		if (profile_add(profile, &sample))
			return NULL;
	}
	return MOVE(profile);
}
