// SPDX-License-Identifier: Apache-2.0
/* HotSpot's compiled code and stubs, instruction by instruction: a thread of tests/programs/JavaCode.java is stopped at random moments and
 * goes on for some thousand instructions; at each one in the code cache the kernel side's walk (runtimes/java.h, compiled for the host) is
 * compared with two witnesses that know nothing of how it works:
 *  - the program, which prints the methods that call a scenario's, and in which only methods of known names run above these;
 *  - the processor: `call` leaves a return address and sp, and `ret` goes there. What the walk said of the caller, at each instruction
 *    between these two, must be that. Where the thread was stopped within a call, this is judged when it returns.
 *
 * Without arguments: the installed Java on default flags, a part of the scenarios. Otherwise: ROOT JAVA SECONDS SCENARIOS [OPTION...]: ""
 * or a directory to chroot to; the time for each scenario; their names, separated by commas, or "all". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "java_child.h"

#define MAX_LEVELS 4096
#define MAX_SCENARIOS 160
#define MAX_KINDS 512
#define MAX_CHAIN 8
#define STEPS 2500        /* after each stop */
#define STEPS_OUTSIDE 30000 /* in native code, where a signal leads to it */
#define MIN_STEPS 10000   /* of a scenario that is judged by itself: one frame that is exchanged for interpreted ones is 300 marked ones */
#define MAX_CALLS 256     /* that are followed */
#define MAX_CLAIMS 16

/* --- what was counted ----------------------------------------------------------------------------------------------------------------- */

enum verdict { EXACT, MARKED, WRONG };

struct tally {
	char name[64];
	uint64_t counts[3];
	uint32_t nr_instructions;
	bool is_missing;
};

/* An instruction that was stepped. */
struct place {
	uint64_t pc;
	uint32_t cookie, kind;
	uint32_t scenario;
	uint32_t counts[3];
	uint64_t start; /* of its blob's code; 0: not known */
	__u8 code[24];  /* 12 before it, too */
	char why[96];   /* of the last one that is not exact */
};

#define NR_PLACES (1u << 18)
static struct place *places;
static uint32_t nr_places;
static struct tally scenarios[MAX_SCENARIOS], kinds[MAX_KINDS];
static uint32_t nr_scenarios, nr_kinds, now;
static char why[256];
static bool is_verbose; /* SONDE_TEST_VERBOSE */
static bool is_unread;  /* SONDE_TEST_UNREAD: nobody reads the code, and what the walk assumes is believed: that is wrong often */

static struct tally *kind_of(const char *name)
{
	uint32_t i = 0;

	while (i < nr_kinds && strcmp(kinds[i].name, name))
		i++;
	assert_true(i < MAX_KINDS);
	if (i == nr_kinds)
		snprintf(kinds[nr_kinds++].name, sizeof(kinds[0].name), "%s", name);
	return &kinds[i];
}

/* The name of the blob that the leaf is in, by the VM, and where its code begins. */
static const char *name_blob(uint64_t pc, uint64_t *ret_start)
{
	static char name[64];
	struct java_blob blob;

	*ret_start = 0;
	if (java_is_interpreter(&process.java, pc))
		return "interpreter";
	if (java_find_blob(&w, &r, &process.java, pc, &blob))
		return "not known";
	*ret_start = blob.code_start;
	memset(name, 0, sizeof(name));
	for (size_t i = 0; i < sizeof(name) - 1; i++) {
		if (read_child(&name[i], 1, java_u64(r.buffer, process.java.block_bytes + process.java.blob_name) + i) || !name[i])
			break;
	}
	name[sizeof(name) - 1] = '\0';
	return name;
}

static struct place *place_at(uint64_t pc, uint32_t cookie)
{
	uint32_t i = (uint32_t)((pc * 0x9e3779b97f4a7c15 ^ cookie * 0x85ebca6bu) >> 44) & (NR_PLACES - 1);
	struct place *place;

	while (places[i].pc && (places[i].pc != pc || places[i].cookie != cookie || places[i].scenario != now))
		i = (i + 1) & (NR_PLACES - 1);
	place = &places[i];
	if (place->pc)
		return place;
	assert_true(++nr_places < NR_PLACES / 2);
	*place = (struct place){ .pc = pc, .cookie = cookie, .scenario = now };
	place->kind = (uint32_t)(kind_of(name_blob(pc, &place->start)) - kinds);
	read_child(place->code, sizeof(place->code), pc - 12);
	scenarios[now].nr_instructions++;
	kinds[place->kind].nr_instructions++;
	return place;
}

static void count(struct place *place, enum verdict verdict, int64_t nr)
{
	place->counts[verdict] += (uint32_t)nr;
	scenarios[place->scenario].counts[verdict] += (uint64_t)nr;
	kinds[place->kind].counts[verdict] += (uint64_t)nr;
}

/* --- names ---------------------------------------------------------------------------------------------------------------------------- */

enum part { HIDDEN, STUB, LIBRARY, STALE, GO, HELPER, OWN };

struct named {
	enum part part;
	char name[100];
};

/* What a frame is called, leaf first. Kept, as compile ids and cookies are not used twice. */
struct cached_names {
	uint64_t code, where;
	uint32_t cookie, nr;
	const struct named *names[40];
};

#define NR_CACHED (1u << 13)
static struct cached_names *cached;
static struct named *known_names;
static uint32_t nr_known;
#define MAX_KNOWN 65536
static const struct named *got[MAX_LEVELS];
static uint32_t nr_got;

static enum part part_of(const char *name)
{
	const char *method;

	if (strncmp(name, "[stub: ", 7) == 0)
		return STUB;
	if (is_hidden(name))
		return HIDDEN;
	if (strncmp(name, "JavaCode", 8) != 0)
		return LIBRARY;
	method = strrchr(name, '.');
	method = method ? method + 1 : name;
	if (!strcmp(method, "go"))
		return GO;
	if (!strcmp(method, "stale") || !strcmp(method, "stale2"))
		return STALE;
	return !strncmp(method, "h_", 2) || !strncmp(method, "lambda$", 7) || !strcmp(method, "<init>") || !strcmp(method, "compareTo") ||
			       !strcmp(method, "equals") || !strcmp(method, "hashCode") || !strcmp(method, "toString")
		   ? HELPER : OWN;
}

static const struct named *name_keep(const char *name)
{
	uint32_t i = 0;

	for (const char *c = name; *c; c++)
		i = i * 31 + (uint8_t)*c;
	for (i %= MAX_KNOWN; known_names[i].name[0]; i = (i + 1) % MAX_KNOWN) {
		if (!strncmp(known_names[i].name, name, sizeof(known_names[i].name) - 1))
			return &known_names[i];
	}
	assert_true(++nr_known < MAX_KNOWN / 2);
	snprintf(known_names[i].name, sizeof(known_names[i].name), "%.99s", name);
	known_names[i].part = part_of(name);
	return &known_names[i];
}

static bool add_name(const struct named *name)
{
	if (nr_got >= MAX_LEVELS)
		return false;
	got[nr_got++] = name;
	return true;
}

/* False: it cannot be named, or is a mark. */
static bool name_frame(const struct sonde_runtime_frame *frame)
{
	uint32_t i = (uint32_t)((frame->code * 31 + frame->where * 0x9e3779b97f4a7c15 + frame->cookie) >> 40) & (NR_CACHED - 1);
	struct cached_names *names = &cached[i];
	struct runtime_function function = { 0 };

	if (names->nr && names->code == frame->code && names->where == frame->where && names->cookie == frame->cookie) {
		for (uint32_t level = 0; level < names->nr; level++) {
			if (!add_name(names->names[level]))
				return false;
		}
		return true;
	}
	names->nr = 0;
	for (uint32_t level = 0; !level || function.has_caller; level++) {
		const struct named *name;
		int err;

		function = (struct runtime_function){ .level = level };
		err = java_describe(&image, &process, &memory, frame, &function);
		if (err || function.is_mark) {
			snprintf(why, sizeof(why), "%d %.200s", err, function.name);
			names->nr = 0;
			return false;
		}
		name = name_keep(function.name);
		if (!add_name(name))
			return false;
		if (level < ARRAY_SIZE(names->names))
			names->names[level] = name;
		names->nr = level + 1;
	}
	if (names->nr > ARRAY_SIZE(names->names))
		names->nr = 0;
	names->code = frame->code;
	names->where = frame->where;
	names->cookie = frame->cookie;
	return true;
}

static bool name_frames(void)
{
	uint32_t nr = 0;

	nr_got = 0;
	for (uint32_t i = 0; i < r.nr_frames; i++) {
		if (!(r.frames[i].flags & SONDE_RUNTIME_ENTRY) && !name_frame(&r.frames[i]))
			return false;
	}
	for (uint32_t i = 0; i < nr_got; i++) {
		if (got[i]->part > STUB)
			got[nr++] = got[i];
	}
	nr_got = nr;
	return true;
}

/* --- the first witness: the program --------------------------------------------------------------------------------------------------- */

static pid_t tid;
static const struct named *chain[MAX_CHAIN]; /* the calls below a scenario, leaf first */
static uint32_t nr_chain;
static const struct named *scenario_go;

static enum verdict wrong(const char *what, const struct named *name)
{
	snprintf(why, sizeof(why), "%s: %s", what, name ? name->name : "nothing");
	return WRONG;
}

/* Above the chain. */
static enum verdict compare_scenario(uint32_t nr_above)
{
	const struct named *first = got[nr_above - 1];

	if (first != scenario_go && first->part != STALE)
		return wrong("not the scenario", first);
	for (uint32_t i = 0; i + 1 < nr_above; i++) {
		if (first->part == STALE ? got[i]->part != STALE || got[i] == got[i + 1]
					 : got[i]->part != LIBRARY && got[i]->part != HELPER)
			return wrong("not of the scenario", got[i]);
	}
	return EXACT;
}

static enum verdict compare(void)
{
	bool is_proved = is_unread || is_walk_proved();
	uint32_t nr_above = 0, nr;

	if (w.stop != SONDE_STOP_COMPLETE || r.record.stop != SONDE_RUNTIME_STOP_COMPLETE) {
		snprintf(why, sizeof(why), "stop %u, runtime %u", w.stop, r.record.stop);
		return MARKED;
	}
	if (w.has_gap) {
		snprintf(why, sizeof(why), "gap");
		return MARKED;
	}
	if (!name_frames())
		return MARKED;
	if (!is_proved) {
		snprintf(why, sizeof(why), "refuted");
		return MARKED;
	}
	if (!nr_got)
		return wrong("empty", NULL);
	if (nr_got > nr_chain)
		nr_above = nr_got - nr_chain;
	nr = nr_got - nr_above;
	for (uint32_t i = 0; i < nr; i++) {
		if (got[nr_got - 1 - i] != chain[nr_chain - 1 - i])
			return wrong(chain[nr_chain - 1 - i]->name, got[nr_got - 1 - i]);
	}
	return nr_above ? compare_scenario(nr_above) : EXACT;
}

/* --- the second witness: the processor ------------------------------------------------------------------------------------------------ */

/* What the walk said of the caller, while a call is followed that the thread was stopped within. */
struct claim {
	struct place *place;
	uint64_t pc, sp;
};

struct call {
	uint64_t ret_pc, cfa; /* of the first one 0: not known */
};

static struct claim claims[STEPS + 1]; /* of the first one */
static struct call calls[MAX_CALLS];
static uint32_t nr_claims, nr_calls; /* at least one call */

static bool in_cache(uint64_t pc)
{
	return java_heap_of(&process.java, pc) < SONDE_JAVA_MAX_HEAPS;
}

static void calls_reset(void)
{
	calls[0] = (struct call){ 0 };
	nr_calls = 1;
	nr_claims = 0;
}

static void calls_push(uint64_t ret_pc, uint64_t cfa)
{
	if (nr_calls == MAX_CALLS)
		memmove(&calls[1], &calls[2], sizeof(calls[0]) * (--nr_calls - 1));
	calls[nr_calls++] = (struct call){ .ret_pc = ret_pc, .cfa = cfa };
}

/* An interpreter frame's caller has other bounds than sp tells: adapters move arguments, and its own sp is in its frame. */
static bool is_caller(uint64_t pc, uint64_t sp, uint64_t ret_pc, uint64_t cfa)
{
	uint64_t there = 0;

	if (pc == ret_pc && (sp == cfa || java_is_interpreter(&process.java, pc)))
		return true;
	/* made to return elsewhere meanwhile: deoptimized */
	return sp == cfa && !read_child(&there, sizeof(there), cfa - 8) && there == pc;
}

static uint64_t code_of(uint64_t pc)
{
	struct java_blob blob;

	if (java_is_interpreter(&process.java, pc))
		return 1;
	return in_cache(pc) && !java_find_blob(&w, &r, &process.java, pc, &blob) ? blob.start : 0;
}

static bool is_same_code(uint64_t a, uint64_t b)
{
	return code_of(a) == code_of(b);
}

#define MAX_POLL_BYTES 10

/* Code that a signal has interrupted at its poll goes on behind the poll. */
static bool is_poll(const struct claim *claim, uint64_t pc, uint64_t sp)
{
	return !strcmp(kinds[claim->place->kind].name, "SafepointBlob") && claim->sp == sp && pc - claim->pc <= MAX_POLL_BYTES;
}

/* The first call has returned to pc and sp, or most claims say so. */
static void claims_judge(uint64_t pc, uint64_t sp, const char *what)
{
	for (uint32_t i = 0; i < nr_claims; i++) {
		struct claim *claim = &claims[i];

		if (is_caller(claim->pc, claim->sp, pc, sp) || is_poll(claim, pc, sp) || (claim->sp == sp && is_same_code(claim->pc, pc)))
			continue; /* the last: to the handler of an exception */
		count(claim->place, EXACT, -1);
		count(claim->place, WRONG, 1);
		snprintf(claim->place->why, sizeof(claim->place->why), "caller %llx, but %s %llx", (unsigned long long)claim->pc, what,
			 (unsigned long long)pc);
	}
	nr_claims = 0;
}

/* It has not returned: claims that are not those of most instructions are wrong. */
static void claims_compare(void)
{
	uint32_t best = 0, most = 0;

	for (uint32_t i = 0; i < nr_claims && most <= nr_claims / 2; i++) {
		uint32_t nr = 0;

		for (uint32_t k = 0; k < nr_claims; k++)
			nr += claims[k].pc == claims[i].pc && claims[k].sp == claims[i].sp;
		if (nr > most) {
			most = nr;
			best = i;
		}
	}
	if (nr_claims)
		claims_judge(claims[best].pc, claims[best].sp, "mostly");
}

static void calls_drop(void)
{
	claims_compare();
	calls_reset();
}

static void calls_pop(uint64_t pc, uint64_t sp)
{
	if (!calls[nr_calls - 1].cfa)
		claims_judge(pc, sp, "it returned to");
	if (--nr_calls == 0)
		calls_reset();
}

/* These replace a compiled frame, their caller, by interpreted ones. */
static bool is_exchange(const char *blob)
{
	return !strcmp(blob, "DeoptimizationBlob") || !strcmp(blob, "UncommonTrapBlob");
}

/* What the walk says of the caller at the current instruction, which is exact by the first witness. */
static enum verdict calls_check(struct place *place)
{
	const struct call *call = &calls[nr_calls - 1];
	uint64_t pc, sp;

	if (w.nr_frames < 2 || java_is_interpreter(&process.java, w.start.pc) || is_exchange(kinds[place->kind].name))
		return EXACT;
	pc = frames[1] & ~SONDE_FRAME_RETURN;
	sp = w.sps[1];
	if (!call->cfa) {
		if (nr_claims < ARRAY_SIZE(claims))
			claims[nr_claims++] = (struct claim){ place, pc, sp };
		return EXACT;
	}
	if (is_caller(pc, sp, call->ret_pc, call->cfa))
		return EXACT;
	snprintf(why, sizeof(why), "caller %llx sp %llx, not %llx sp %llx", (unsigned long long)pc, (unsigned long long)sp,
		 (unsigned long long)call->ret_pc, (unsigned long long)call->cfa);
	return WRONG;
}

/* --- stepping ------------------------------------------------------------------------------------------------------------------------- */

/* Waits until the thread stops, for up to `ms`; else stops it. *signal: as of stop_thread. Was it in time? */
static bool wait_for(int ms, int *signal)
{
	struct timespec begin, at;
	pid_t stopped = 0;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int turn = 0; !stopped; turn++) {
		stopped = waitpid(tid, &status, __WALL | WNOHANG);
		if (stopped || turn < 20)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &at);
		if ((at.tv_sec - begin.tv_sec) * 1000 + (at.tv_nsec - begin.tv_nsec) / 1000000 >= ms)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 30000 }, NULL);
	}
	if (!stopped) {
		assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
		assert_int_equal(waitpid(tid, &status, __WALL), tid);
	}
	*signal = signal_of(status);
	return stopped;
}

static void set_debug_register(int number, uint64_t value)
{
	assert_int_equal(ptrace(PTRACE_POKEUSER, tid, (void *)(offsetof(struct user, u_debugreg) + 8 * (size_t)number), (void *)value), 0);
}

/* Lets it go on until it is at pc, by a breakpoint of the processor, which no other thread runs into. `sp`: there, or 0: any. False: it did
 * not get there in time. */
static bool run_to(uint64_t pc, uint64_t sp, int *signal)
{
	bool is_there = false;

	set_debug_register(0, pc);
	set_debug_register(7, 1);
	for (int turn = 0; turn < 60 && !is_there; turn++) {
		assert_int_equal(ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)*signal), 0);
		if (!wait_for(100, signal))
			break;
		take_registers(&w, tid);
		is_there = w.pc == pc && (!sp || w.sp == sp);
		if (w.pc != pc || is_there)
			continue;
		set_debug_register(7, 0);
		*signal = step_thread(tid, *signal);
		set_debug_register(7, 1);
	}
	set_debug_register(7, 0);
	set_debug_register(6, 0);
	return is_there && !*signal;
}

enum effect { NEITHER, CALLS, RETURNS, JUMPS };

/* What the instruction at `code` does, if it is executed. JUMPS: to where a register or memory says. */
static enum effect effect_of(const __u8 *code)
{
	if (code[0] == 0xf3 || code[0] == 0xf2 || (code[0] & 0xf0) == 0x40)
		code++;
	if (code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2))
		return CALLS;
	if (code[0] == 0xff && (code[1] >> 3 & 7) == 4)
		return JUMPS;
	return code[0] == 0xc3 || code[0] == 0xc2 ? RETURNS : NEITHER;
}

static uint32_t nr_shown;

static void show_walk(const struct place *place)
{
	print_message("# %s: %s, in %s +%llx\n", scenarios[now].name, why, kinds[place->kind].name,
		      (unsigned long long)(place->start ? place->pc - place->start : 0));
	print_message("#   code");
	for (size_t i = 0; i < sizeof(place->code); i++)
		print_message("%s%02x", i == 12 ? " | " : " ", place->code[i]);
	print_message("\n");
	for (uint32_t i = 0; i < w.nr_frames && i < (is_verbose ? 100u : 8u); i++)
		print_message("#   %2u %llx sp %llx\n", i, (unsigned long long)(frames[i] & ~SONDE_FRAME_RETURN),
			      (unsigned long long)w.sps[i]);
	for (uint32_t i = 0; i < nr_got && i < (is_verbose ? 100u : 12u); i++)
		print_message("#   %s\n", got[i]->name);
}

/* Walks at the current instruction. */
static struct place *look(void)
{
	enum verdict verdict;
	struct place *place;
	bool is_new;

	why[0] = '\0';
	nr_got = 0;
	walk_thread(tid);
	verdict = compare();
	place = place_at(w.start.pc, r.nr_frames ? r.frames[0].cookie : 0);
	if (verdict == EXACT)
		verdict = calls_check(place);
	is_new = !place->counts[verdict];
	count(place, verdict, 1);
	if (verdict == EXACT)
		return place;
	if (verdict == WRONG || !place->counts[WRONG])
		snprintf(place->why, sizeof(place->why), "%.95s", why);
	if (is_new && nr_shown++ < (is_verbose ? 40 : verdict == WRONG ? 4 : 1))
		show_walk(place);
	return place;
}

/* Has a jump led to a blob that takes rdx for its return address, as an nmethod's handler of exceptions does? */
static bool is_thrown(uint64_t from)
{
	__u8 first = 0;

	return w.pc - from > 16 && in_cache(w.pc) && !read_child(&first, 1, w.pc) && first == 0x52 && !is_same_code(w.pc, from);
}

/* One instruction of native code after another, until it is in the code cache. */
static bool step_back_in(int *signal)
{
	for (int n = 0; n < STEPS_OUTSIDE; n++) {
		*signal = step_thread(tid, *signal);
		take_registers(&w, tid);
		if (in_cache(w.pc))
			return !*signal;
	}
	return false;
}

/* The effect of an instruction that was executed at `place`, on the calls. False: where it goes on cannot be followed. */
static bool follow(const struct place *place, enum effect effect, uint64_t sp_before, int *signal)
{
	struct call *call;

	take_registers(&w, tid);
	if (java_is_interpreter(&process.java, place->pc) || is_exchange(kinds[place->kind].name) ||
	    (effect == JUMPS && nr_calls == 1 && !is_same_code(place->pc, w.pc)))
		calls_drop(); /* the interpreter calls and returns by jumps; an exception leaves a call by one; frames are exchanged */
	if (*signal || (!in_cache(w.pc) && effect != CALLS && effect != RETURNS && nr_calls == 1)) {
		calls_drop(); /* a handler may let it go on anywhere */
		return step_back_in(signal);
	}
	if (effect == CALLS && w.sp == sp_before - 8 && w.pc != place->pc) {
		uint64_t ret = 0;

		assert_false(read_child(&ret, sizeof(ret), w.sp));
		calls_push(ret, w.sp + 8);
	} else if (effect == RETURNS && w.pc != place->pc) {
		calls_pop(w.pc, w.sp);
		if (java_is_interpreter(&process.java, w.pc))
			calls_drop();
	} else if (is_thrown(place->pc)) {
		calls_push(w.regs[JAVA_RDX], w.sp);
	}
	if (!in_cache(w.pc)) {
		call = &calls[nr_calls - 1];
		if (!call->cfa || !in_cache(call->ret_pc) || !run_to(call->ret_pc, call->cfa, signal))
			return false;
		calls_pop(w.pc, w.sp);
	}
	/* Left by a jump: to the handler of an exception. */
	for (call = &calls[nr_calls - 1]; call->cfa && (w.sp > call->cfa || (w.sp == call->cfa && is_same_code(w.pc, call->ret_pc)));
	     call = &calls[nr_calls - 1])
		nr_calls--;
	return true;
}

static void look_at_steps(void)
{
	int signal;

	nanosleep(&(struct timespec){ .tv_nsec = rand() % 3000000 }, NULL);
	signal = stop_thread(tid);
	calls_reset();
	take_registers(&w, tid);
	if (!in_cache(w.pc)) {
		uint32_t i = 0;

		walk_thread(tid); /* only to find where to begin */
		while (i < w.nr_frames && !in_cache(frames[i] & ~SONDE_FRAME_RETURN))
			i++;
		if (i == w.nr_frames || !run_to(frames[i] & ~SONDE_FRAME_RETURN, 0, &signal)) {
			release_thread(tid, signal);
			return;
		}
	}
	for (int n = 0; n < STEPS && !signal; n++) {
		const struct place *place = look();
		uint64_t sp = w.start.sp;

		signal = step_thread(tid, signal);
		if (!follow(place, effect_of(place->code + 12), sp, &signal))
			break;
	}
	claims_compare();
	release_thread(tid, signal);
}

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

static char folder[256];
static FILE *from_java;
static int to_java;

static void tell_java(const char *text)
{
	char line[80];
	int length = snprintf(line, sizeof(line), "%s\n", text);

	assert_int_equal(write(to_java, line, (size_t)length), length);
}

static void read_java(char *line, size_t size)
{
	if (!fgets(line, (int)size, from_java))
		fail_msg("the program has ended");
}

static const char *const nastiest[] = { "IndexOf",     "IndexOfConstant", "InstanceOf", "Conversions", "Sha512",
					"CopyChecked", "Thrown",	  "Barriers",	"BigFrame",	"AesGcm" };

/* False: this version does not have it. */
static bool start_scenario(const char *name)
{
	char line[512], method[128], of[101];

	tell_java(name);
	read_java(line, sizeof(line));
	if (line[0] == '.')
		return false;
	assert_int_equal(sscanf(line, "T %d %100s", &tid, of), 2);
	nr_chain = 0;
	while (read_java(line, sizeof(line)), line[0] != 'E' || line[1] != '\n') {
		assert_true(nr_chain < MAX_CHAIN);
		assert_int_equal(sscanf(line, "%127s", method), 1);
		chain[nr_chain++] = name_keep(method);
	}
	snprintf(method, sizeof(method), "%s.go", of);
	scenario_go = name_keep(method);
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *const *x = a, *const *y = b;
	uint32_t left = (*x)->counts[WRONG] * 4 + (*x)->counts[MARKED], right = (*y)->counts[WRONG] * 4 + (*y)->counts[MARKED];

	return left < right ? 1 : left > right ? -1 : 0;
}

/* The instructions of the scenario that are most often not exact. */
static void show_places(uint32_t max)
{
	const struct place **bad = calloc(nr_places + 1, sizeof(*bad));
	uint32_t nr = 0;

	assert_non_null(bad);
	for (uint32_t i = 0; i < NR_PLACES; i++) {
		if (places[i].pc && places[i].scenario == now && (places[i].counts[WRONG] || places[i].counts[MARKED]))
			bad[nr++] = &places[i];
	}
	qsort(bad, nr, sizeof(*bad), compare_places);
	for (uint32_t i = 0; i < nr && i < max; i++) {
		const struct place *place = bad[i];

		print_message("#   %u exact %u marked %u wrong at %s %llx +%llx:", place->counts[EXACT], place->counts[MARKED],
			      place->counts[WRONG], kinds[place->kind].name, (unsigned long long)place->pc,
			      (unsigned long long)(place->start ? place->pc - place->start : 0));
		for (size_t k = 0; k < sizeof(place->code); k++)
			print_message("%s%02x", k == 12 ? " | " : " ", place->code[k]);
		print_message(": %s\n", place->why);
	}
	free(bad);
}

static void test_scenario(const char *name, double seconds)
{
	uint64_t begin;
	uint32_t before, quiet = 0;

	now = nr_scenarios;
	assert_true(nr_scenarios < MAX_SCENARIOS);
	snprintf(scenarios[nr_scenarios++].name, sizeof(scenarios[0].name), "%s", name);
	nr_shown = 0;
	if (!start_scenario(name)) {
		scenarios[now].is_missing = true;
		return;
	}
	for (begin = now_ms(); now_ms() - begin < seconds * 1000 / 3;) /* it is compiled */
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	begin = now_ms();
	while (now_ms() - begin < seconds * 1000 * 2 / 3 && quiet < 40) {
		before = scenarios[now].nr_instructions;
		look_at_steps();
		quiet = scenarios[now].nr_instructions > before ? 0 : quiet + 1;
	}
}

static void show_tally(const char *what, const struct tally *tally)
{
	uint64_t nr = tally->counts[EXACT] + tally->counts[MARKED] + tally->counts[WRONG];

	print_message("# %s %-24s %8llu steps at %5u instructions: %llu exact, %llu marked (%.2f %%), %llu wrong (%.2f %%)\n", what,
		      tally->name, (unsigned long long)nr, tally->nr_instructions, (unsigned long long)tally->counts[EXACT],
		      (unsigned long long)tally->counts[MARKED], nr ? 100.0 * (double)tally->counts[MARKED] / (double)nr : 0,
		      (unsigned long long)tally->counts[WRONG], nr ? 100.0 * (double)tally->counts[WRONG] / (double)nr : 0);
}

static bool make_program(const char *root)
{
	const char *sources = getenv("SONDE_TEST_PROGRAMS");
	char command[2048];

	snprintf(folder, sizeof(folder), "%s/tmp/java-code-XXXXXX", root);
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "javac -nowarn -Xlint:-options --release 8 -d %s %s/JavaCode.java 2>%s/errors", folder, sources,
		 folder);
	if (system(command) != 0)
		return false;
	snprintf(command, sizeof(command), "javac -nowarn -Xlint:-options --release 17 -cp %s -d %s %s/JavaCode17.java 2>>%s/errors",
		 folder, folder, sources, folder);
	if (system(command) != 0)
		print_message("# without JavaCode17\n");
	memmove(folder, folder + strlen(root), strlen(folder + strlen(root)) + 1);
	return true;
}

static void start_program(const char *root, const char *java, char *const *options)
{
	const char *argv[64] = { java, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,JavaCode*.*" };
	uint32_t nr = 3;
	int in[2];

	while (*options && nr < 50)
		argv[nr++] = *options++;
	argv[nr++] = "-cp";
	argv[nr++] = folder;
	argv[nr++] = "JavaCode";
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	from_java = fdopen(start_java(root, argv, in[0]), "r");
	assert_non_null(from_java);
	close(in[0]);
	to_java = in[1];
}

static void end_program(void)
{
	host_tables_free(&tables);
	stop_child();
	fclose(from_java);
	close(to_java);
}

/* --- tests ---------------------------------------------------------------------------------------------------------------------------- */

static const char *given_root = "", *given_java = "/usr/bin/java", *given_scenarios;
static double given_seconds = 3;
static char *no_options[] = { NULL };
static char *const *given_options = no_options;

static void test_scenarios(void)
{
	static char names[8192];

	if (!given_scenarios) {
		for (size_t i = 0; i < ARRAY_SIZE(nastiest); i++)
			test_scenario(nastiest[i], given_seconds);
		return;
	}
	tell_java("?");
	read_java(names, sizeof(names));
	if (strcmp(given_scenarios, "all") != 0)
		snprintf(names, sizeof(names), "%s", given_scenarios);
	for (char *rest = names, *name; (name = strsep(&rest, ", \n"));) {
		if (*name)
			test_scenario(name, given_seconds);
	}
}

static void judge(const char *root, const char *java)
{
	struct tally all = { 0 };
	uint32_t nr_bad = 0;

	for (uint32_t i = 0; i < nr_kinds; i++)
		show_tally("blob", &kinds[i]);
	for (now = 0; now < nr_scenarios; now++) {
		const struct tally *one = &scenarios[now];
		uint64_t nr = one->counts[EXACT] + one->counts[MARKED] + one->counts[WRONG];

		if (one->is_missing) {
			print_message("# scenario %s: not in this version\n", one->name);
			continue;
		}
		show_tally("scenario", one);
		if (one->counts[MARKED] || one->counts[WRONG])
			show_places(is_verbose ? 60 : 4);
		for (int verdict = 0; verdict < 3; verdict++)
			all.counts[verdict] += one->counts[verdict];
		all.nr_instructions += one->nr_instructions;
		nr_bad += one->counts[WRONG] || (nr >= MIN_STEPS && one->counts[MARKED] > nr / 20);
	}
	print_message("# %s%s %u.%u.%u", root, java, image.version[0], image.version[1], image.version[2]);
	for (char *const *option = given_options; *option; option++)
		print_message(" %s", *option);
	print_message("\n");
	snprintf(all.name, sizeof(all.name), "%u scenarios", nr_scenarios);
	show_tally("all", &all);
	assert_int_equal(all.counts[WRONG], 0);
	assert_true(all.counts[MARKED] <= all.counts[EXACT] / 200);
	assert_int_equal(nr_bad, 0);
	assert_true(all.counts[EXACT] > 0);
}

static void test_instructions(void **state)
{
	if (access(given_java, X_OK) && !given_root[0]) {
		print_message("# SKIPPED: no java\n");
		skip();
	}
	if (!make_program(given_root)) {
		print_message("# SKIPPED: no javac\n");
		skip();
	}
	places = calloc(NR_PLACES, sizeof(*places));
	cached = calloc(NR_CACHED, sizeof(*cached));
	known_names = calloc(MAX_KNOWN, sizeof(*known_names));
	assert_true(places && cached && known_names);
	start_program(given_root, given_java, given_options);
	start_scenario("Loops");
	load_tables();
	test_scenarios();
	end_program();
	remove_java_folder(given_root, folder);
	judge(given_root, given_java);
	free(places);
	free(cached);
	free(known_names);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_instructions) };

	is_verbose = getenv("SONDE_TEST_VERBOSE");
	is_unread = getenv("SONDE_TEST_UNREAD");
	if (argc > 4) {
		given_root = argv[1];
		given_java = argv[2];
		given_seconds = strtod(argv[3], NULL);
		given_scenarios = argv[4];
		given_options = argv + 5;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
