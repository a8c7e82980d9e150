// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of `sonde files`: each call that opens a file, at its end. There the result is known, the arguments are still in the saved
 * registers, and the page with the name is in memory, as the kernel has just read it. A relative name gets the folder that the kernel began
 * at. Either each call is sent, or calls are summed by process and name; then the text is sent once. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/opens.h"
#include "lib/command.h"
#include "lib/file_path.h"
#include "lib/filter.h"
#include "lib/knobs.h"
#include "lib/syscall.h"
#include "lib/wake.h"
#include "lib/map.h"

#define AT_CWD	    (-100) /* AT_FDCWD, linux/fcntl.h */
#define CREAT_FLAGS 01101  /* O_CREAT | O_WRONLY | O_TRUNC: asm-generic/fcntl.h */
#define IN_ROOT	    0x10   /* RESOLVE_IN_ROOT: linux/openat2.h */
#define TEXT_WORDS  (SONDE_TEXT_BYTES / 8)

const volatile struct sonde_opens_config opens_cfg = {};
volatile __u32 own_tgid; /* sonde's own calls are left out; as in the root PID namespace */

struct open_scratch {
	struct sonde_open_record record;
	struct file_text file;
};

struct { /* the raw tracepoint's program is not preempted, and system calls do not nest */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct open_scratch);
} scratches MAP("sonde_scratch");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_open_counters);
} counters MAP("sonde_counters");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* set by the loader */
} ring MAP("sonde_ring");

struct open_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space creates larger ones */
	__uint(key_size, sizeof(struct sonde_open_key));
	__uint(value_size, sizeof(struct sonde_open_sum));
};

struct { /* the one in use: user space replaces it with an empty one; after that nobody writes to the old one */
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct open_sums);
} sums MAP("sonde_sums");

static __always_inline struct file_text *file_text(void)
{
	struct open_scratch *s = zeroth(&scratches);

	return s ? &s->file : 0;
}

/* Most calls open nothing, and leave here. */
static __always_inline enum sonde_open_call call_of(const void *regs, bool *ret_compat)
{
	__u64 number = call_number(regs);

	if (number >= SONDE_MAX_CALLS || !(opens_cfg.calls[0][number] | opens_cfg.calls[1][number]))
		return SONDE_OPEN_NONE;
	*ret_compat = is_compat_call(regs);
	return *ret_compat ? opens_cfg.calls[1][number] : opens_cfg.calls[0][number];
}

static __always_inline bool is_asked_for(struct task_struct *task, struct sonde_open_counters *count, long result)
{
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	char comm[SONDE_COMM_BYTES] = {};

	if (tgid_tid >> 32 == own_tgid) {
		count->own++;
		return false;
	}
	if (cfg.filter_comm)
		bpf_get_current_comm(comm, sizeof(comm));
	if ((!opens_cfg.failed_only || result < 0) && is_wanted(task, tgid_tid >> 32, tgid_tid, comm))
		return true;
	count->filtered++;
	return false;
}

static __always_inline __u64 flags_of(const void *regs, bool compat, enum sonde_open_call call)
{
	__u64 flags = 0;

	switch (call) {
	case SONDE_OPEN_OPEN:
		return (__u32)call_argument(regs, compat, 1);
	case SONDE_OPEN_CREAT:
		return CREAT_FLAGS;
	case SONDE_OPEN_OPENAT2: /* the first field of struct open_how, linux/openat2.h */
		bpf_probe_read_user(&flags, sizeof(flags), (void *)call_argument(regs, compat, 2));
		return flags;
	default:
		return (__u32)call_argument(regs, compat, 2);
	}
}

static __always_inline const void *name_of(const void *regs, bool compat, enum sonde_open_call call)
{
	switch (call) {
	case SONDE_OPEN_BY_HANDLE:
		return 0;
	case SONDE_OPEN_OPEN:
	case SONDE_OPEN_CREAT:
		return (const void *)call_argument(regs, compat, 0);
	default:
		return (const void *)call_argument(regs, compat, 1);
	}
}

/* The folder that the kernel began at. */
static __always_inline void take_folder(struct file_text *to, struct task_struct *task, const void *regs, bool compat,
					enum sonde_open_call call)
{
	bool at_cwd = call == SONDE_OPEN_OPEN || call == SONDE_OPEN_CREAT;
	__s32 fd = at_cwd ? AT_CWD : (__s32)call_argument(regs, compat, 0);
	struct file *file;
	struct path at = {};

	if (fd == AT_CWD) {
		BPF_CORE_READ_INTO(&at, (struct task_struct___files *)task, fs, pwd);
	} else {
		file = file_of(task, fd);
		if (!file)
			return;
		read_path(&at, &file->f_path);
	}
	to->of.kind = SONDE_FILE_PATH;
	path_append((__u64)at.mnt, (__u64)at.dentry);
}

/* The descriptor's folder is the root of absolute names, too. */
static __always_inline bool is_in_root(const void *regs, bool compat, enum sonde_open_call call)
{
	__u64 how[3] = {}; /* struct open_how: flags, mode, resolve */

	if (call != SONDE_OPEN_OPENAT2 || bpf_probe_read_user(how, sizeof(how), (void *)call_argument(regs, compat, 2)))
		return false;
	return how[2] & IN_ROOT;
}

/* Fills in the text. A name that cannot be read (another thread has unmapped it meanwhile) is taken from the file. */
static __always_inline void take_text(struct open_scratch *s, struct task_struct *task, const void *regs, bool compat,
				      enum sonde_open_call call, long result)
{
	const void *name = name_of(regs, compat, call);
	long bytes = name ? bpf_probe_read_user_str(s->file.text, SONDE_NAME_MAX_BYTES, name) : 0;

	s->file.of = (struct sonde_file_text){};
	s->record.name_bytes = 0;
	if (bytes <= 0) {
		s->record.from = result < 0 ? SONDE_OPEN_NO_NAME : SONDE_OPEN_OF_FILE;
		if (result >= 0)
			take_file(&s->file, file_of(task, result));
		return;
	}
	s->record.name_bytes = s->file.of.bytes = bytes;
	s->record.from = s->file.text[0] == '/' && !is_in_root(regs, compat, call) ? SONDE_OPEN_ABSOLUTE : SONDE_OPEN_RELATIVE;
	if (s->record.from == SONDE_OPEN_RELATIVE)
		take_folder(&s->file, task, regs, compat, call);
}

static __always_inline __u64 hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* Two hashes of 64 bits, with secret beginnings, of the scratch's text. */
FUNCTION int hash_text(void)
{
	struct open_scratch *s = zeroth(&scratches);
	const __u64 *words;
	__u32 bytes, nr, rest;
	__u64 first, second, word;

	if (!s)
		return 0; /* there is always one */
	words = (const void *)s->file.text;
	bytes = s->file.of.bytes;
	nr = bytes / 8;
	rest = bytes % 8;
	first = cfg.hash_seed ^ s->record.name_bytes;
	second = ~cfg.hash_seed ^ s->file.of.kind;

	for (__u32 i = 0; i < TEXT_WORDS && i < nr; i++) {
		first = hash_word(first, words[i & (TEXT_WORDS - 1)]);
		second = hash_word(second, ~words[i & (TEXT_WORDS - 1)]);
	}
	if (rest && nr < TEXT_WORDS) {
		word = words[nr & (TEXT_WORDS - 1)] & ((1ULL << rest * 8) - 1);
		first = hash_word(first, word);
		second = hash_word(second, ~word);
	}
	s->record.key.text_hash[0] = first;
	s->record.key.text_hash[1] = second;
	return 0;
}

static __always_inline long send(struct open_scratch *s)
{
	__u64 size = sizeof(s->record) + sizeof(s->file.of) + s->file.of.bytes;

	if (size > sizeof(*s))
		return -1;
	return bpf_ringbuf_output(&ring, s, size, wake_flag(&ring, s->record.time_ns));
}

/* The sum of the key, created if necessary. NULL: there is no room. */
static __always_inline struct sonde_open_sum *sum_of(struct task_struct *task, const struct sonde_open_key *key)
{
	struct sonde_open_sum begin = {}, *found;
	void *map = zeroth(&sums);

	if (!map)
		return 0;
	found = bpf_map_lookup_elem(map, key);
	if (found)
		return found;
	BPF_CORE_READ_STR_INTO(&begin.comm, task, group_leader, comm);
	bpf_map_update_elem(map, key, &begin, BPF_NOEXIST); /* another CPU may have been faster */
	return bpf_map_lookup_elem(map, key);
}

static __always_inline void add(struct open_scratch *s, struct task_struct *task, struct sonde_open_counters *count)
{
	struct sonde_open_record *record = &s->record;
	struct sonde_open_sum *sum;

	record->key = (struct sonde_open_key){ .tgid = opens_cfg.by_tgid ? record->tgid : 0 };
	if (opens_cfg.by_path)
		hash_text();
	if (opens_cfg.by_comm)
		__builtin_memcpy(record->key.comm, record->comm, sizeof(record->key.comm));
	sum = sum_of(task, &record->key);
	if (!sum) {
		count->keys_full++;
		return;
	}
	count->summed++;
	__sync_fetch_and_add(record->result < 0 ? &sum->failed : &sum->opens, 1);
	if (record->result < 0)
		sum->last_error = -record->result;
	if (!opens_cfg.by_path || sum->is_named)
		return;
	if (send(s))
		count->names_lost++;
	else
		sum->is_named = 1;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sonde_open, struct pt_regs *regs, long result)
{
	struct sonde_open_counters *count;
	struct task_struct *task;
	enum sonde_open_call call;
	struct open_scratch *s;
	bool compat = false;
	__u64 tgid_tid;

	call = call_of(regs, &compat);
	if (call == SONDE_OPEN_NONE)
		return 0;
	task = (void *)bpf_get_current_task();
	count = zeroth(&counters);
	s = zeroth(&scratches);
	if (!count || !s)
		return 0; /* there are always some */
	count->calls++;
	if (!is_asked_for(task, count, result))
		return 0;
	tgid_tid = bpf_get_current_pid_tgid();
	s->record = (struct sonde_open_record){ .time_ns = bpf_ktime_get_ns(),
						.result = result,
						.flags = flags_of(regs, compat, call),
						.tgid = tgid_tid >> 32,
						.tid = tgid_tid };
	bpf_get_current_comm(s->record.comm, sizeof(s->record.comm));
	if (!opens_cfg.sums || opens_cfg.by_path)
		take_text(s, task, regs, compat, call, result);
	if (opens_cfg.sums)
		add(s, task, count);
	else if (send(s))
		count->lost++;
	else
		count->sent++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
