// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of `sonde io`: calls that read and write. At the begin the time and the file are stored with the thread: another thread may
 * close the descriptor meanwhile. At the end the call is added to the sum of its process and file. A file is known by where it lies in the
 * kernel's memory (struct sonde_file_id); its name is sent once, with the first call of a sum. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/io.h"
#include "lib/comm.h"
#include "lib/command.h"
#include "lib/file_path.h"
#include "lib/filter.h"
#include "lib/knobs.h"
#include "lib/syscall.h"
#include "lib/map.h"

static const bool tasks_are_typed = true;

#define MAX_ARGUMENTS 8	   /* a power of two; five are used */
#define MAX_VECTORS   1024 /* UIO_MAXIOV, linux/uio.h */
#define MAP_KINDS     15   /* MAP_TYPE, linux/mman.h; 1 and 3 are shared */
#define MAY_WRITE     2	   /* PROT_WRITE */

const volatile struct sonde_io_config io_cfg = {};
volatile __u32 own_tgid; /* sonde's own calls are left out; as in the root PID namespace */

struct thread_io {	/* the call that the thread is in */
	__u64 start_ns; /* 0: none */
	__u64 index;
	struct sonde_file_id files[SONDE_IO_SIDES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_io);
} threads MAP("sonde_threads");

struct name_scratch {
	struct sonde_io_name name;
	struct file_text file;
	struct sonde_io_sum begin; /* of a new sum: all but `comm` stays zero. Not on the stack, which is too small for it before 6.18 */
};

struct { /* the raw tracepoint's program is not preempted, and system calls do not nest */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name_scratch);
} scratches MAP("sonde_scratch");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_io_counters);
} counters MAP("sonde_counters");

struct { /* names */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* set by the loader */
} ring MAP("sonde_ring");

struct io_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space creates larger ones */
	__uint(key_size, sizeof(struct sonde_io_key));
	__uint(value_size, sizeof(struct sonde_io_sum));
};

struct { /* the one in use: user space replaces it with an empty one; after that nobody writes to the old one */
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct io_sums);
} sums MAP("sonde_sums");

static __always_inline struct file_text *file_text(void)
{
	struct name_scratch *s = zeroth(&scratches);

	return s ? &s->file : 0;
}

struct call {
	__u64 index; /* of io_cfg.facts */
	__u64 args[MAX_ARGUMENTS];
	struct sonde_io_call facts;
	bool compat;
};

static __always_inline void read_facts(struct call *call)
{
	call->facts = (struct sonde_io_call){};
	if (call->index < SONDE_IO_MAX_CALLS)
		call->facts = *(const struct sonde_io_call *)knob(&io_cfg.facts[call->index]);
}

/* socketcall(2) of 32-bit programs. */
static __always_inline void enter_socketcall(struct call *call)
{
	__u32 args[5] = {};
	__u64 number = call->args[0];

	bpf_probe_read_user(args, sizeof(args[0]) * 4, (const void *)call->args[1]); /* on failure the descriptor is 0 */
	call->index = number < sizeof(io_cfg.socketcalls) ? io_cfg.socketcalls[number] : 0;
	for (int i = 0; i < 5; i++)
		call->args[i] = args[i];
	read_facts(call);
}

/* Which call it is. False: another one; most leave here. */
static __always_inline bool is_io(const void *regs, struct task_struct *task, struct call *ret_call)
{
	__u64 number = call_number(regs);

	if (number >= SONDE_MAX_CALLS || !(io_cfg.calls[0][number] | io_cfg.calls[1][number]))
		return false;
	ret_call->compat = is_compat_task_call(task, regs);
	ret_call->index = ret_call->compat ? io_cfg.calls[1][number] : io_cfg.calls[0][number];
	read_facts(ret_call);
	if (!ret_call->facts.kind)
		return false;
#pragma clang loop unroll(full)
	for (int i = 0; i < 5; i++)
		ret_call->args[i] = call_argument(regs, ret_call->compat, i);
	if (ret_call->facts.kind == SONDE_IO_SOCKETCALL)
		enter_socketcall(ret_call);
	return ret_call->facts.kind;
}

/* `number`: from 1 on. */
static __always_inline __u64 argument(const struct call *call, __u32 number)
{
	return call->args[(number - 1) & (MAX_ARGUMENTS - 1)];
}

static __always_inline bool is_asked_for(struct task_struct *task)
{
	__u64 comm[SONDE_COMM_BYTES / 8] = {};

	if (cfg.filter_comm)
		read_comm(task, comm);
	return is_wanted(task, task->tgid, task->pid, comm);
}

/* As file_of, without a call where the verifier knows the types. */
static __always_inline struct file *typed_file_of(struct task_struct *task, __u32 fd)
{
	struct files_struct *files = ((struct task_struct___files *)task)->files;
	struct fdtable *table = files ? files->fdt : 0;
	struct file *file = 0;

	if (!table || fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}

/* A pointer that the verifier lets be read like one of its own: no call for each read (Linux 6.2). */
extern void *bpf_rdonly_cast(const void *at, __u32 btf_id) __ksym __weak;

#define TYPED(type, at) ((type *)bpf_rdonly_cast(at, bpf_core_type_id_kernel(type)))

struct dentry_names { /* neighbours in struct dentry of all kernels: include/linux/dcache.h */
	__u64 parent, hash_len, name, inode;
};

static __always_inline void take_typed_id(struct sonde_file_id *to, struct file *file)
{
	struct dentry *dentry = TYPED(struct file, file)->f_path.dentry;

	to->dentry = (__u64)dentry;
	to->parent = (__u64)dentry->d_parent;
	to->hash_len = dentry->d_name.hash_len;
	to->ino = dentry->d_inode ? dentry->d_inode->i_ino : 0;
}

static __always_inline void take_id(struct sonde_file_id *to, struct file *file)
{
	struct dentry_names names = {};
	struct dentry *dentry;
	struct inode *inode;

	*to = (struct sonde_file_id){};
	if (!file)
		return;
	if (io_cfg.typed) {
		take_typed_id(to, file);
		return;
	}
	dentry = BPF_CORE_READ(file, f_path.dentry);
	bpf_probe_read_kernel(&names, sizeof(names), (const void *)dentry + bpf_core_field_offset(struct dentry, d_parent));
	to->dentry = (__u64)dentry;
	to->parent = names.parent;
	to->hash_len = names.hash_len;
	inode = (void *)names.inode;
	bpf_core_read(&to->ino, sizeof(to->ino), &inode->i_ino);
}

/* The files of the call's descriptors. */
static __always_inline void take_ids(struct sonde_file_id *files, struct task_struct *task, const struct call *call)
{
	if (!io_cfg.by_file)
		return;
	if (call->facts.read_fd)
		take_id(&files[SONDE_IO_READ], typed_file_of(task, argument(call, call->facts.read_fd)));
	if (call->facts.write_fd)
		take_id(&files[SONDE_IO_WRITE], typed_file_of(task, argument(call, call->facts.write_fd)));
}

/* --- bytes ---------------------------------------------------------------------------------------------------------------------------- */

/* Adds up `nr` numbers of 8 bytes in the memory of the program, each `stride` behind the one before it. */
FUNCTION __u64 sum_of_longs(__u64 at, __u64 nr, __u32 stride)
{
	__u64 sum = 0, number = 0;

	for (__u32 i = 0; i < MAX_VECTORS && i < nr; i++, at += stride) {
		if (bpf_probe_read_user(&number, sizeof(number), (const void *)at))
			break;
		sum += number;
	}
	return sum;
}

/* The same of 4 bytes. */
FUNCTION __u64 sum_of_words(__u64 at, __u64 nr, __u32 stride)
{
	__u64 sum = 0;
	__u32 number = 0;

	for (__u32 i = 0; i < MAX_VECTORS && i < nr; i++, at += stride) {
		if (bpf_probe_read_user(&number, sizeof(number), (const void *)at))
			break;
		sum += number;
	}
	return sum;
}

/* What an array of struct iovec asks for: iov_len is behind the address. */
static __always_inline __u64 vector_bytes(__u64 at, __u64 nr, bool compat)
{
	return compat ? sum_of_words(at + 4, nr, 8) : sum_of_longs(at + 8, nr, 16);
}

/* msg_iov and msg_iovlen of a struct msghdr: uapi/linux/socket.h, and struct compat_msghdr in net/compat.h. */
static __always_inline __u64 message_bytes(__u64 at, bool compat)
{
	__u64 words[2] = {};

	if (bpf_probe_read_user(words, compat ? 8 : 16, (const void *)at + (compat ? 8 : 16)))
		return 0;
	return compat ? vector_bytes((__u32)words[0], words[0] >> 32, true) : vector_bytes(words[0], words[1], false);
}

/* msg_len of each struct mmsghdr, behind its struct msghdr of 56 or 28 bytes. */
static __always_inline __u64 messages_bytes(__u64 at, __u64 nr, bool compat)
{
	return compat ? sum_of_words(at + 28, nr, 32) : sum_of_words(at + 56, nr, 64);
}

static __always_inline __u64 requested_bytes(const struct call *call, long result)
{
	switch (call->facts.kind) {
	case SONDE_IO_VECTOR:
		return vector_bytes(call->args[1], call->args[2], call->compat);
	case SONDE_IO_MESSAGE:
		return message_bytes(call->args[1], call->compat);
	case SONDE_IO_MESSAGES: /* of single messages the kernel says only what was transferred */
		return result > 0 ? messages_bytes(call->args[1], result, call->compat) : 0;
	default:
		return call->facts.count ? argument(call, call->facts.count) : 0;
	}
}

static __always_inline __u64 bytes_of(const struct call *call, long result)
{
	if (io_cfg.requested)
		return requested_bytes(call, result);
	if (result <= 0)
		return 0;
	return call->facts.kind == SONDE_IO_MESSAGES ? messages_bytes(call->args[1], result, call->compat) : result;
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

/* The sum of the key, created if necessary. NULL: there is no room. */
static __always_inline struct sonde_io_sum *sum_of(struct task_struct *task, const struct sonde_io_key *key)
{
	struct name_scratch *scratch;
	struct sonde_io_sum *found;
	void *map = zeroth(&sums);

	if (!map)
		return 0;
	found = bpf_map_lookup_elem(map, key);
	if (found)
		return found;
	scratch = zeroth(&scratches);
	if (!scratch)
		return 0;
	bpf_probe_read_kernel(scratch->begin.comm, sizeof(scratch->begin.comm), task->group_leader->comm);
	bpf_map_update_elem(map, key, &scratch->begin, BPF_NOEXIST); /* another CPU may have been faster */
	return bpf_map_lookup_elem(map, key);
}

static __always_inline bool is_same(const struct sonde_file_id *a, const struct sonde_file_id *b)
{
	return a->dentry == b->dentry && a->parent == b->parent && a->hash_len == b->hash_len && a->ino == b->ino;
}

/* Sends the name of the file in the scratch's key, if the descriptor still is that file. 1: sent. */
FUNCTION int send_name(__u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sonde_io_counters *count = zeroth(&counters);
	struct name_scratch *s = zeroth(&scratches);
	struct file *file = typed_file_of(task, fd);
	struct sonde_file_id now;
	__u64 size;

	if (!s || !count)
		return 0; /* there are always some */
	take_id(&now, file);
	if (!is_same(&now, &s->name.key.file)) {
		count->names_gone++;
		return 0;
	}
	take_file(&s->file, file);
	size = sizeof(s->name) + sizeof(s->file.of) + s->file.of.bytes;
	if (size <= sizeof(*s) && !bpf_ringbuf_output(&ring, s, size, 0))
		return 1;
	count->names_lost++;
	return 0;
}

static __always_inline void name_sum(struct sonde_io_sum *sum, const struct sonde_io_key *key, __u32 fd)
{
	struct name_scratch *s = zeroth(&scratches);

	if (!s)
		return;
	s->name.key = *key;
	sum->is_named = send_name(fd);
}

static __always_inline void add_side(struct sonde_io_side *side, __u64 bytes, long result, __u64 took_ns)
{
	__sync_fetch_and_add(&side->calls, 1);
	if (result < 0)
		__sync_fetch_and_add(&side->failed, 1);
	if (bytes)
		__sync_fetch_and_add(&side->bytes, bytes);
	if (!took_ns) {
		__sync_fetch_and_add(&side->untimed, 1);
		return;
	}
	__sync_fetch_and_add(&side->ns, took_ns);
	if (took_ns > side->max_ns)
		side->max_ns = took_ns; /* of two at the same time one may be lost */
}

struct ended { /* a call, for the functions below */
	struct task_struct *task;
	const struct call *call;
	long result;
	__u64 bytes, took_ns; /* 0: not known */
};

/* Adds the call to the sum of one of its files. */
static __always_inline void add(const struct ended *ended, const struct sonde_file_id *file, __u32 fd, __u32 side,
				struct sonde_io_counters *count)
{
	struct sonde_io_key key = {};
	struct sonde_io_sum *sum;

	if (io_cfg.by_file)
		key.file = *file;
	if (io_cfg.by_tgid)
		key.tgid = ended->task->tgid;
	if (io_cfg.by_call)
		key.call = ended->call->index;
	if (io_cfg.by_comm)
		read_comm(ended->task, (__u64 *)key.comm);
	sum = sum_of(ended->task, &key);
	if (!sum) {
		count->keys_full++;
		return;
	}
	count->summed++;
	add_side(&sum->sides[side & 1], ended->bytes, ended->result, ended->took_ns);
	if (io_cfg.by_file && key.file.dentry && !sum->is_named)
		name_sum(sum, &key, fd);
}

static __always_inline bool is_read_only(struct task_struct *task, __u32 fd)
{
	struct file *file = typed_file_of(task, fd);

	return file && !(BPF_CORE_READ(file, f_mode) & FMODE_WRITE);
}

static __always_inline void add_call(const struct ended *ended, const struct sonde_file_id *files, struct sonde_io_counters *count)
{
	const struct sonde_io_call *facts = &ended->call->facts;
	__u32 read_fd = argument(ended->call, facts->read_fd), write_fd = argument(ended->call, facts->write_fd);
	bool reads = facts->by_mode && is_read_only(ended->task, write_fd);

	if (facts->read_fd)
		add(ended, &files[SONDE_IO_READ], read_fd, SONDE_IO_READ, count);
	if (facts->write_fd)
		add(ended, &files[SONDE_IO_WRITE], write_fd, reads ? SONDE_IO_READ : SONDE_IO_WRITE, count);
}

/* What reads and writes without one of these calls, so that the report can name it. */
static __always_inline void count_unseen(const struct call *call, long result, struct sonde_io_counters *count)
{
	bool shared = (call->args[3] & MAP_KINDS) == 1 || (call->args[3] & MAP_KINDS) == 3;

	count->unseen++;
	if (call->facts.kind == SONDE_IO_SUBMIT && result > 0)
		count->submitted += result;
	if (call->facts.kind == SONDE_IO_MAP && shared && call->args[2] & MAY_WRITE && (__s32)call->args[4] >= 0 &&
	    (result > 0 || result < -4095))
		count->shared_maps++;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sonde_io_begin, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_io *thread;
	struct call call = {};

	if (!is_io(regs, task, &call) || call.facts.kind >= SONDE_IO_SUBMIT)
		return 0;
	if (task->tgid == (int)own_tgid || !is_asked_for(task))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return 0; /* no memory: the call is counted without its time */
	thread->index = call.index;
	take_ids(thread->files, task, &call);
	thread->start_ns = bpf_ktime_get_ns();
	return 0;
}

/* Moves the begin of the thread's call out of its storage. False: the call began before the recording. */
static __always_inline bool take_begin(struct task_struct *task, const struct call *call, struct sonde_file_id *files, __u64 *ret_start_ns)
{
	struct thread_io *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread || !thread->start_ns || thread->index != call->index)
		return false;
	*ret_start_ns = thread->start_ns;
	thread->start_ns = 0;
	if (io_cfg.by_file) {
		files[SONDE_IO_READ] = thread->files[SONDE_IO_READ];
		files[SONDE_IO_WRITE] = thread->files[SONDE_IO_WRITE];
	}
	return true;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sonde_io_end, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sonde_io_counters *count = zeroth(&counters);
	struct sonde_file_id files[SONDE_IO_SIDES] = {};
	struct ended ended = { .task = task, .result = result };
	__u64 start_ns = 0;
	struct call call = {};

	if (!count || !is_io(regs, task, &call))
		return 0;
	count->calls++;
	if (task->tgid == (int)own_tgid) {
		count->own++;
		return 0;
	}
	ended.call = &call;
	if (take_begin(task, &call, files, &start_ns)) {
		ended.took_ns = bpf_ktime_get_ns() - start_ns ?: 1;
	} else {
		if (!is_asked_for(task)) {
			count->filtered++;
			return 0;
		}
		if (call.facts.kind >= SONDE_IO_SUBMIT) {
			count_unseen(&call, result, count);
			return 0;
		}
		count->untimed++;
		take_ids(files, task, &call);
	}
	ended.bytes = bytes_of(&call, result);
	add_call(&ended, files, count);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
