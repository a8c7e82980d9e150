// SPDX-License-Identifier: Apache-2.0
/* Names of Linux 5.12 to 6.18; those of which only some kernels have a symbol of their own (the others inline them) stand beside their callers. */
#include "model/wait_rules.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#define SURE(function, kind)   { #function, WAIT_KIND_##kind, WAIT_RULE_SURE }
#define AROUND(function, kind) { #function, WAIT_KIND_##kind, WAIT_RULE_AROUND }
#define GUESS(function, kind)  { #function, WAIT_KIND_##kind, WAIT_RULE_GUESS }
#define LAST(function, kind)   { #function, WAIT_KIND_##kind, WAIT_RULE_LAST }

/* In no order: a recording meets a few hundred different kernel stacks, and each is asked for once. */
static const struct wait_rule rules[] = {
	/* kernel/futex */
	SURE(futex_wait_queue, FUTEX), SURE(futex_wait_queue_me, FUTEX), SURE(futex_do_wait, FUTEX), SURE(__futex_wait, FUTEX), SURE(futex_wait, FUTEX),
	SURE(futex_wait_multiple, FUTEX), SURE(futex_wait_requeue_pi, FUTEX), SURE(futex_lock_pi, FUTEX),
	/* kernel/locking, lib */
	SURE(__mutex_lock, LOCK), SURE(mutex_lock, LOCK), SURE(mutex_lock_interruptible, LOCK), SURE(mutex_lock_killable, LOCK), SURE(mutex_lock_io, LOCK),
	SURE(__mutex_lock_slowpath, LOCK), SURE(__mutex_lock_interruptible_slowpath, LOCK), SURE(__mutex_lock_killable_slowpath, LOCK),
	SURE(__ww_mutex_lock, LOCK), SURE(ww_mutex_lock, LOCK), SURE(ww_mutex_lock_interruptible, LOCK),
	SURE(rwsem_down_read_slowpath, LOCK), SURE(rwsem_down_write_slowpath, LOCK), SURE(down_read, LOCK), SURE(down_read_interruptible, LOCK),
	SURE(down_read_killable, LOCK), SURE(down_write, LOCK), SURE(down_write_killable, LOCK), SURE(down, LOCK), SURE(down_interruptible, LOCK),
	SURE(down_killable, LOCK), SURE(down_timeout, LOCK), SURE(__down, LOCK), SURE(__down_interruptible, LOCK), SURE(__down_killable, LOCK), SURE(__down_timeout, LOCK),
	SURE(percpu_rwsem_wait, LOCK), SURE(percpu_down_write, LOCK), SURE(rt_mutex_slowlock, LOCK), SURE(__rt_mutex_slowlock, LOCK), SURE(rtlock_slowlock_locked, LOCK),
	SURE(rt_mutex_lock, LOCK), SURE(__lock_sock, LOCK), SURE(lock_sock_nested, LOCK), SURE(inode_wait_for_dio, LOCK), SURE(d_alloc_parallel, LOCK), SURE(start_this_handle, LOCK),
	/* kernel/time */
	SURE(do_nanosleep, SLEEP), SURE(hrtimer_nanosleep, SLEEP), SURE(posix_cpu_nsleep, SLEEP), SURE(do_cpu_nanosleep, SLEEP), SURE(msleep, SLEEP),
	SURE(msleep_interruptible, SLEEP), SURE(usleep_range_state, SLEEP), SURE(usleep_range, SLEEP), SURE(alarm_timer_nsleep, SLEEP), SURE(alarmtimer_do_nsleep, SLEEP),
	SURE(ssleep, SLEEP),
	/* fs/pipe.c, fs/splice.c */
	SURE(pipe_read, PIPE), SURE(pipe_write, PIPE), SURE(anon_pipe_read, PIPE), SURE(anon_pipe_write, PIPE), SURE(fifo_pipe_read, PIPE), SURE(fifo_pipe_write, PIPE),
	SURE(wait_for_partner, PIPE), SURE(fifo_open, PIPE), SURE(pipe_wait_readable, PIPE), SURE(pipe_wait_writable, PIPE), SURE(wait_for_space, PIPE),
	SURE(ipipe_prep, PIPE), SURE(opipe_prep, PIPE), SURE(splice_from_pipe_next, PIPE),
	/* net */
	SURE(sk_wait_data, SOCKET), SURE(__skb_wait_for_more_packets, SOCKET), SURE(inet_csk_accept, SOCKET), SURE(inet_wait_for_connect, SOCKET),
	SURE(__inet_stream_connect, SOCKET), SURE(inet_stream_connect, SOCKET), SURE(unix_stream_read_generic, SOCKET), SURE(unix_stream_data_wait, SOCKET),
	SURE(unix_wait_for_peer, SOCKET), SURE(unix_stream_connect, SOCKET), SURE(sock_alloc_send_pskb, SOCKET), SURE(sock_wait_for_wmem, SOCKET),
	SURE(sk_stream_wait_memory, SOCKET), SURE(sk_stream_wait_connect, SOCKET), SURE(sk_stream_wait_close, SOCKET), SURE(tcp_recvmsg_locked, SOCKET),
	SURE(mptcp_recvmsg, SOCKET), SURE(vsock_connectible_recvmsg, SOCKET), SURE(vsock_connectible_wait_data, SOCKET), SURE(vsock_accept, SOCKET),
	SURE(vsock_connect, SOCKET), SURE(smc_rx_wait, SOCKET), SURE(smc_tx_wait, SOCKET), SURE(smc_accept, SOCKET), SURE(sctp_wait_for_packet, SOCKET),
	SURE(sctp_skb_recv_datagram, SOCKET), SURE(sctp_wait_for_connect, SOCKET), SURE(sctp_accept, SOCKET), SURE(bt_sock_wait_state, SOCKET),
	SURE(bt_sock_recvmsg, SOCKET), SURE(netlink_attachskb, SOCKET), SURE(packet_recvmsg, SOCKET), SURE(alg_wait_for_data, SOCKET), SURE(af_alg_wait_for_data, SOCKET),
	SURE(tls_rx_rec_wait, SOCKET), SURE(tun_do_read, SOCKET), SURE(tun_ring_recv, SOCKET), SURE(tap_do_read, SOCKET),
	/* fs/eventpoll.c, fs/select.c */
	SURE(ep_poll, EPOLL), SURE(do_epoll_wait, EPOLL), SURE(do_epoll_pwait, EPOLL), SURE(do_sys_poll, POLL), SURE(do_poll, POLL), SURE(do_select, SELECT),
	SURE(core_sys_select, SELECT),
	/* kernel/exit.c, fork.c, signal.c, ptrace.c, exec.c */
	SURE(do_wait, CHILDREN), SURE(kernel_wait4, CHILDREN), SURE(wait_for_vfork_done, VFORK), AROUND(kernel_clone, VFORK), AROUND(_do_fork, VFORK),
	SURE(sigsuspend, SIGNAL), SURE(do_sigtimedwait, SIGNAL), SURE(signalfd_dequeue, SIGNAL), SURE(signalfd_read, SIGNAL), SURE(signalfd_read_iter, SIGNAL),
	SURE(ptrace_stop, STOPPED), SURE(do_signal_stop, STOPPED), SURE(ptrace_freeze_traced, STOPPED), SURE(ptrace_unfreeze_traced, STOPPED),
	SURE(de_thread, EXEC), AROUND(begin_new_exec, EXEC), SURE(coredump_wait, EXIT), SURE(coredump_task_exit, EXIT), SURE(zap_pid_ns_processes, EXIT),
	AROUND(vfs_coredump, EXIT), AROUND(do_coredump, EXIT), AROUND(do_exit, EXIT), AROUND(do_group_exit, EXIT),
	/* the freezers */
	SURE(do_freezer_trap, FROZEN), AROUND(get_signal, FROZEN), SURE(cgroup_enter_frozen, FROZEN), SURE(__refrigerator, FROZEN),
	/* drivers/tty */
	SURE(n_tty_read, TTY), SURE(n_tty_write, TTY), SURE(tty_read, TTY), SURE(file_tty_write, TTY), SURE(tty_write, TTY), SURE(tty_wait_until_sent, TTY),
	SURE(__tty_check_change, TTY), SURE(tty_write_lock, TTY), SURE(tty_port_block_til_ready, TTY),
	/* fs: what is asked for by read */
	SURE(inotify_read, INOTIFY), SURE(fanotify_read, INOTIFY), SURE(fanotify_get_response, INOTIFY), SURE(fanotify_handle_event, INOTIFY),
	SURE(eventfd_read, EVENTFD), SURE(eventfd_write, EVENTFD), SURE(timerfd_read, TIMERFD), SURE(timerfd_read_iter, TIMERFD),
	SURE(io_cqring_wait, IO_URING), SURE(io_sq_thread, IO_URING), SURE(io_wq_worker, IO_URING), SURE(io_wqe_worker, IO_URING), SURE(io_sqpoll_wait_sq, IO_URING),
	SURE(io_ring_exit_work, IO_URING), SURE(io_uring_cancel_generic, IO_URING), SURE(__do_sys_io_uring_enter, IO_URING),
	SURE(read_events, AIO), SURE(do_io_getevents, AIO), SURE(exit_aio, AIO), SURE(wait_for_all_aios, AIO),
	SURE(fcntl_setlk, FILE_LOCK), SURE(do_lock_file_wait, FILE_LOCK), SURE(posix_lock_inode_wait, FILE_LOCK), SURE(flock_lock_inode_wait, FILE_LOCK),
	SURE(locks_lock_inode_wait, FILE_LOCK), SURE(__break_lease, FILE_LOCK), SURE(nlmclnt_block, FILE_LOCK), SURE(nlmclnt_wait, FILE_LOCK),
	/* ipc */
	SURE(do_semtimedop, SEMAPHORE), SURE(__do_semtimedop, SEMAPHORE), SURE(do_msgrcv, MESSAGE_QUEUE), SURE(do_msgsnd, MESSAGE_QUEUE), SURE(wq_sleep, MESSAGE_QUEUE),
	SURE(do_mq_timedreceive, MESSAGE_QUEUE), SURE(do_mq_timedsend, MESSAGE_QUEUE),
	/* block, mm, file systems */
	SURE(io_schedule, DISK), SURE(io_schedule_timeout, DISK), SURE(blk_io_schedule, DISK), SURE(bit_wait_io, DISK), SURE(submit_bio_wait, DISK),
	SURE(folio_wait_bit_common, DISK), SURE(wait_on_page_bit_common, DISK), SURE(wait_on_page_bit, DISK), SURE(folio_wait_writeback, DISK),
	SURE(folio_put_wait_locked, DISK), SURE(put_and_wait_on_page_locked, DISK), SURE(__lock_page, DISK), SURE(__folio_lock, DISK), SURE(__wait_on_buffer, DISK),
	SURE(migration_entry_wait_on_locked, DISK), SURE(wait_for_completion_io, DISK), SURE(wait_for_completion_io_timeout, DISK), SURE(blk_mq_get_tag, DISK),
	SURE(rq_qos_wait, DISK), SURE(wbt_wait, DISK), SURE(blk_queue_enter, DISK), SURE(__bio_queue_enter, DISK), SURE(blk_mq_freeze_queue_wait, DISK),
	SURE(jbd2_log_wait_commit, DISK), SURE(jbd2_journal_commit_transaction, DISK), SURE(wait_transaction_locked, DISK), SURE(add_transaction_credits, DISK),
	SURE(xlog_wait_on_iclog, DISK), SURE(xfs_log_force_seq, DISK), SURE(xfs_buf_iowait, DISK), SURE(btrfs_wait_ordered_range, DISK), SURE(wait_current_trans, DISK),
	SURE(btrfs_commit_transaction, DISK), SURE(balance_dirty_pages, DISK), SURE(balance_dirty_pages_ratelimited, DISK), SURE(wb_wait_for_completion, DISK),
	SURE(__writeback_inodes_sb_nr, DISK), SURE(sync_inodes_sb, DISK), SURE(filemap_fdatawait_range, DISK), SURE(__filemap_fdatawait_range, DISK),
	SURE(__wait_on_freeing_inode, DISK), SURE(__iomap_dio_rw, DISK), SURE(dio_await_completion, DISK), SURE(swap_readpage, DISK), SURE(loop_queue_work, DISK),
	AROUND(vfs_fsync_range, DISK), AROUND(vfs_fsync, DISK), AROUND(blkdev_issue_flush, DISK),
	SURE(request_wait_answer, FUSE), SURE(fuse_wait_aborted, FUSE), SURE(__fuse_request_send, FUSE), SURE(fuse_dev_do_read, FUSE), SURE(fuse_get_req, FUSE),
	SURE(rpc_wait_bit_killable, NETWORK_FS), SURE(nfs_wait_bit_killable, NETWORK_FS), SURE(p9_client_rpc, NETWORK_FS), SURE(p9_virtio_request, NETWORK_FS),
	SURE(wait_for_response, NETWORK_FS), SURE(compound_send_recv, NETWORK_FS), SURE(ceph_mdsc_wait_request, NETWORK_FS), SURE(svc_recv, NETWORK_FS),
	/* mm */
	SURE(handle_userfault, PAGE_FAULT), AROUND(handle_mm_fault, PAGE_FAULT), AROUND(do_user_addr_fault, PAGE_FAULT), AROUND(exc_page_fault, PAGE_FAULT),
	AROUND(do_page_fault, PAGE_FAULT), AROUND(faultin_page, PAGE_FAULT), AROUND(asm_exc_page_fault, PAGE_FAULT), AROUND(do_mem_abort, PAGE_FAULT),
	SURE(throttle_direct_reclaim, MEMORY), SURE(reclaim_throttle, MEMORY), SURE(congestion_wait, MEMORY), SURE(wait_iff_congested, MEMORY),
	SURE(mem_cgroup_handle_over_high, MEMORY), SURE(__mem_cgroup_handle_over_high, MEMORY), SURE(mem_cgroup_oom_synchronize, MEMORY), SURE(shrink_inactive_list, MEMORY),
	SURE(out_of_memory, MEMORY), SURE(userfaultfd_read_iter, PAGE_FAULT), SURE(userfaultfd_read, PAGE_FAULT), SURE(userfaultfd_ctx_read, PAGE_FAULT),
	/* kernel/rcu, smp */
	SURE(__wait_rcu_gp, RCU), SURE(synchronize_rcu, RCU), SURE(synchronize_rcu_normal, RCU), SURE(synchronize_rcu_expedited, RCU), SURE(synchronize_srcu, RCU),
	SURE(__synchronize_srcu, RCU), SURE(rcu_barrier, RCU), SURE(synchronize_rcu_tasks_generic, RCU), SURE(synchronize_rcu_expedited_wait_once, RCU),
	SURE(stop_one_cpu, RCU), SURE(stop_two_cpus, RCU), SURE(__stop_cpus, RCU), SURE(stop_machine_cpuslocked, RCU), SURE(affine_move_task, RCU), SURE(__flush_work, RCU),
	SURE(flush_work, RCU), SURE(__flush_workqueue, RCU), SURE(schedule_on_each_cpu, RCU),
	/* others */
	SURE(seccomp_do_user_notification, SECCOMP), SURE(seccomp_notify_recv, SECCOMP), SURE(__seccomp_filter, SECCOMP), SURE(kvm_vcpu_block, KVM), SURE(kvm_vcpu_halt, KVM),
	SURE(evdev_read, DEVICE), SURE(mousedev_read, DEVICE), SURE(hidraw_read, DEVICE), SURE(wait_for_random_bytes, DEVICE), SURE(rng_dev_read, DEVICE),
	SURE(devkmsg_read, DEVICE), SURE(kmsg_read, DEVICE), SURE(do_syslog, DEVICE), SURE(syslog_print, DEVICE), SURE(perf_read, DEVICE), SURE(tracing_read_pipe, DEVICE),
	SURE(tracing_wait_pipe, DEVICE), SURE(ring_buffer_wait, DEVICE), SURE(usb_start_wait_urb, DEVICE), SURE(usbdev_ioctl, DEVICE), SURE(snd_pcm_lib_read, DEVICE),
	SURE(wait_for_avail, DEVICE), SURE(drm_read, DEVICE), SURE(drm_wait_vblank_ioctl, DEVICE), SURE(dma_fence_default_wait, DEVICE),
	SURE(dma_fence_wait_timeout, DEVICE), SURE(nvme_submit_user_cmd, DEVICE), SURE(blk_execute_rq, DISK), SURE(vhost_task_fn, KERNEL_THREAD), SURE(vhost_worker, KERNEL_THREAD),
	SURE(do_sched_yield, YIELD), SURE(autofs_wait, DISK), SURE(call_usermodehelper_exec, EXEC),
	/* what is left of threads of the kernel, and of system calls that say nothing */
	GUESS(worker_thread, KERNEL_THREAD), GUESS(kthread, KERNEL_THREAD), GUESS(kthread_worker_fn, KERNEL_THREAD), GUESS(kthreadd, KERNEL_THREAD),
	GUESS(rescuer_thread, KERNEL_THREAD), GUESS(smpboot_thread_fn, KERNEL_THREAD),
	GUESS(wait_for_completion, LOCK), GUESS(wait_for_completion_interruptible, LOCK), GUESS(wait_for_completion_killable, LOCK), GUESS(wait_for_completion_state, LOCK),
	GUESS(wait_for_completion_timeout, LOCK), GUESS(__wait_on_bit_lock, LOCK), GUESS(__wait_on_bit, LOCK),
	/* threads of the kernel wait by these for their work, too, and the kernel does not tell them of a wait that it is asked of */
	LAST(schedule_hrtimeout_range, SLEEP), LAST(schedule_hrtimeout_range_clock, SLEEP), LAST(schedule_timeout, SLEEP),
};

const struct wait_rule *wait_rule_of_function(const char *function)
{
	size_t size = strcspn(function, ".");

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!strncmp(rules[i].function, function, size) && !rules[i].function[size])
			return &rules[i];
	}
	return NULL;
}

enum wait_kind wait_rule_of_syscall(uint16_t syscall)
{
	static const struct {
		int syscall;
		enum wait_kind kind;
	} kinds[] = {
		{ SYS_futex, WAIT_KIND_FUTEX }, { SYS_nanosleep, WAIT_KIND_SLEEP }, { SYS_clock_nanosleep, WAIT_KIND_SLEEP }, { SYS_ppoll, WAIT_KIND_POLL },
		{ SYS_pselect6, WAIT_KIND_SELECT }, { SYS_epoll_pwait, WAIT_KIND_EPOLL }, { SYS_accept, WAIT_KIND_SOCKET }, { SYS_accept4, WAIT_KIND_SOCKET },
		{ SYS_connect, WAIT_KIND_SOCKET }, { SYS_recvfrom, WAIT_KIND_SOCKET }, { SYS_recvmsg, WAIT_KIND_SOCKET }, { SYS_recvmmsg, WAIT_KIND_SOCKET },
		{ SYS_sendto, WAIT_KIND_SOCKET }, { SYS_sendmsg, WAIT_KIND_SOCKET }, { SYS_sendmmsg, WAIT_KIND_SOCKET }, { SYS_wait4, WAIT_KIND_CHILDREN },
		{ SYS_waitid, WAIT_KIND_CHILDREN }, { SYS_rt_sigsuspend, WAIT_KIND_SIGNAL }, { SYS_rt_sigtimedwait, WAIT_KIND_SIGNAL },
		{ SYS_io_getevents, WAIT_KIND_AIO }, { SYS_flock, WAIT_KIND_FILE_LOCK }, { SYS_fcntl, WAIT_KIND_FILE_LOCK }, { SYS_fsync, WAIT_KIND_DISK },
		{ SYS_fdatasync, WAIT_KIND_DISK }, { SYS_sync, WAIT_KIND_DISK }, { SYS_syncfs, WAIT_KIND_DISK }, { SYS_msync, WAIT_KIND_DISK },
		{ SYS_sync_file_range, WAIT_KIND_DISK }, { SYS_pread64, WAIT_KIND_DISK }, { SYS_pwrite64, WAIT_KIND_DISK }, { SYS_preadv, WAIT_KIND_DISK },
		{ SYS_pwritev, WAIT_KIND_DISK }, { SYS_semop, WAIT_KIND_SEMAPHORE }, { SYS_semtimedop, WAIT_KIND_SEMAPHORE }, { SYS_msgsnd, WAIT_KIND_MESSAGE_QUEUE },
		{ SYS_msgrcv, WAIT_KIND_MESSAGE_QUEUE }, { SYS_mq_timedsend, WAIT_KIND_MESSAGE_QUEUE }, { SYS_mq_timedreceive, WAIT_KIND_MESSAGE_QUEUE },
		{ SYS_clone, WAIT_KIND_VFORK }, { SYS_execve, WAIT_KIND_EXEC }, { SYS_execveat, WAIT_KIND_EXEC }, { SYS_exit, WAIT_KIND_EXIT },
		{ SYS_exit_group, WAIT_KIND_EXIT }, { SYS_sched_yield, WAIT_KIND_YIELD }, { SYS_membarrier, WAIT_KIND_RCU }, { SYS_sched_setaffinity, WAIT_KIND_RCU },
		{ SYS_io_uring_enter, WAIT_KIND_IO_URING },
#ifdef __x86_64__ /* that newer architectures have not */
		{ SYS_poll, WAIT_KIND_POLL }, { SYS_select, WAIT_KIND_SELECT }, { SYS_epoll_wait, WAIT_KIND_EPOLL }, { SYS_pause, WAIT_KIND_SIGNAL },
		{ SYS_vfork, WAIT_KIND_VFORK }, { SYS_fork, WAIT_KIND_VFORK },
#endif
		/* the same numbers everywhere; libc's headers may be older */
		{ 441, WAIT_KIND_EPOLL }, /* epoll_pwait2 */
		{ 449, WAIT_KIND_FUTEX }, /* futex_waitv */
		{ 455, WAIT_KIND_FUTEX }, /* futex_wait */
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].syscall == syscall)
			return kinds[i].kind;
	}
	return WAIT_KIND_COUNT;
}
