/* SPDX-License-Identifier: Apache-2.0 */
/* wait_ways: runs one process for each way to wait, all at once; its argument is the number of seconds. Each process has the way's name.
 * On stdout: `way NAME KIND` for those that run, `without NAME` for those that this kernel lacks. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/if_ether.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 1000
#define FAILED 77 /* the kernel lacks this way */

static int no(void)
{
	_exit(FAILED);
}

static int ok(int result)
{
	return result < 0 ? no() : result;
}

struct beside {
	void *(*run)(void *);
	void *arg;
};

static void *run_beside(void *arg)
{
	struct beside *beside = arg;

	prctl(PR_SET_NAME, "beside");
	return beside->run(beside->arg);
}

/* In a second thread, with another name. */
static pthread_t beside(void *(*run)(void *), void *arg)
{
	static struct beside beside;
	pthread_t thread;

	beside = (struct beside){ run, arg };
	if (pthread_create(&thread, NULL, run_beside, &beside))
		no();
	usleep(50000);
	return thread;
}

static void *rest(void *unused)
{
	for (;;)
		sleep(LONG_S);
	return unused;
}

/* --- futex ---------------------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void way_futex(void)
{
	int word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
}

static void *hold_mutex(void *unused)
{
	pthread_mutex_lock(&mutex);
	return rest(unused);
}

static void way_mutex(void)
{
	beside(hold_mutex, NULL);
	pthread_mutex_lock(&mutex);
}

static void way_pi_mutex(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &attr);
	way_mutex();
}

static void *hold_rwlock(void *unused)
{
	pthread_rwlock_wrlock(&rwlock);
	return rest(unused);
}

static void way_rwlock(void)
{
	beside(hold_rwlock, NULL);
	pthread_rwlock_rdlock(&rwlock);
}

static void way_condition(void)
{
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&condition, &mutex);
}

static void way_join(void)
{
	pthread_join(beside(rest, NULL), NULL);
}

static void way_semaphore(void)
{
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	sem_wait(&semaphore);
}

static void way_barrier(void)
{
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_barrier_wait(&barrier);
}

static void way_futex_waitv(void)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} waiter = { 0 };
	uint32_t word = 0;

	waiter.address = (uintptr_t)&word;
	waiter.flags = 2; /* FUTEX_32 */
	ok((int)syscall(449, &waiter, 1, 0, NULL, CLOCK_MONOTONIC));
}

/* --- sleep ---------------------------------------------------------------------------------------------------------------------------- */

static void way_nanosleep(void)
{
	syscall(SYS_nanosleep, &(struct timespec){ LONG_S, 0 }, NULL);
}

static void way_clock_sleep(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += LONG_S;
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &now, NULL);
}

static void way_cpu_sleep(void)
{
	clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &(struct timespec){ LONG_S, 0 }, NULL);
}

/* --- pipe ----------------------------------------------------------------------------------------------------------------------------- */

static void fill(int fd)
{
	static char zeros[65536];

	for (;;) {
		if (write(fd, zeros, sizeof(zeros)) < 0)
			no();
	}
}

static void way_pipe_read(void)
{
	int fds[2];
	char byte;

	ok(pipe(fds));
	ok((int)read(fds[0], &byte, 1));
}

static void way_pipe_write(void)
{
	int fds[2];

	ok(pipe(fds));
	fill(fds[1]);
}

static char folder[] = "/tmp/wait_ways.XXXXXX";

static const char *path(const char *name)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s/%s", folder, name);
	return text;
}

static void way_fifo_open(void)
{
	ok(mkfifo(path("fifo"), 0600));
	ok(open(path("fifo"), O_RDONLY));
}

static void way_splice(void)
{
	int from[2], to[2];

	ok(pipe(from));
	ok(pipe(to));
	ok((int)splice(from[0], NULL, to[1], NULL, 100, 0));
}

/* --- socket --------------------------------------------------------------------------------------------------------------------------- */

static void hear(int fd)
{
	char bytes[100];

	ok((int)recv(fd, bytes, sizeof(bytes), 0));
}

static void way_unix_stream(void)
{
	int fds[2];

	ok(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	hear(fds[0]);
}

static void way_unix_packet(void)
{
	int fds[2];

	ok(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	hear(fds[0]);
}

static void way_unix_send(void)
{
	int fds[2];

	ok(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	fill(fds[0]);
}

static int listen_unix(const char *name, struct sockaddr_un *address)
{
	int fd = ok(socket(AF_UNIX, SOCK_STREAM, 0));

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path(name));
	ok(bind(fd, (struct sockaddr *)address, sizeof(*address)));
	ok(listen(fd, 0));
	return fd;
}

static void way_unix_accept(void)
{
	struct sockaddr_un address;

	ok(accept(listen_unix("accept", &address), NULL, NULL));
}

static void way_unix_connect(void)
{
	struct sockaddr_un address;

	listen_unix("connect", &address);
	for (;;)
		ok(connect(ok(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&address, sizeof(address)));
}

static int listen_tcp(struct sockaddr_in *address)
{
	int fd = ok(socket(AF_INET, SOCK_STREAM, 0));
	socklen_t size = sizeof(*address);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	ok(bind(fd, (struct sockaddr *)address, size));
	ok(listen(fd, 8));
	ok(getsockname(fd, (struct sockaddr *)address, &size));
	return fd;
}

static int connect_tcp(void)
{
	struct sockaddr_in address;
	int fd;

	listen_tcp(&address);
	fd = ok(socket(AF_INET, SOCK_STREAM, 0));
	ok(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

static void way_tcp_accept(void)
{
	struct sockaddr_in address;

	ok(accept(listen_tcp(&address), NULL, NULL));
}

static void way_tcp_receive(void)
{
	hear(connect_tcp());
}

static void way_tcp_send(void)
{
	fill(connect_tcp());
}

static void way_udp(void)
{
	hear(ok(socket(AF_INET, SOCK_DGRAM, 0)));
}

static void way_netlink(void)
{
	hear(ok(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)));
}

static void way_recvmmsg(void)
{
	struct mmsghdr message = { 0 };
	int fds[2];

	ok(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	ok(recvmmsg(fds[0], &message, 1, 0, NULL));
}

/* --- epoll, poll, select -------------------------------------------------------------------------------------------------------------- */

static void way_epoll(void)
{
	struct epoll_event event;

	ok(epoll_wait(ok(epoll_create1(0)), &event, 1, -1));
}

static void way_epoll_pwait2(void)
{
	struct epoll_event event;
	struct timespec time = { LONG_S, 0 };

	ok((int)syscall(441, ok(epoll_create1(0)), &event, 1, &time, NULL, 0));
}

static void way_poll(void)
{
	int fds[2];

	ok(pipe(fds));
	poll(&(struct pollfd){ .fd = fds[0], .events = POLLIN }, 1, -1);
}

static void way_ppoll(void)
{
	ppoll(NULL, 0, &(struct timespec){ LONG_S, 0 }, NULL);
}

static void way_select(void)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ LONG_S, 0 });
}

static void way_pselect(void)
{
	fd_set set;
	int fds[2];

	ok(pipe(fds));
	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	pselect(fds[0] + 1, &set, NULL, NULL, NULL, NULL);
}

/* --- children, signals ---------------------------------------------------------------------------------------------------------------- */

static int child(void)
{
	int pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "child");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rest(NULL);
	}
	return pid;
}

static void way_wait4(void)
{
	waitpid(child(), NULL, 0);
}

static void way_waitid(void)
{
	siginfo_t info;

	waitid(P_PID, (id_t)child(), &info, WEXITED);
}

static void way_vfork(void)
{
	if (!vfork()) {
		syscall(SYS_prctl, PR_SET_NAME, "child");
		syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_nanosleep, &(struct timespec){ LONG_S, 0 }, NULL);
		_exit(0);
	}
}

static void way_pause(void)
{
	pause();
}

static void way_sigsuspend(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigsuspend(&set);
}

static sigset_t *one_signal(void)
{
	static sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return &set;
}

static void way_sigwait(void)
{
	sigwaitinfo(one_signal(), NULL);
}

static void way_signalfd(void)
{
	struct signalfd_siginfo info;

	ok((int)read(ok(signalfd(-1, one_signal(), 0)), &info, sizeof(info)));
}

static void way_stopped(void)
{
	raise(SIGSTOP);
}

static void way_traced(void)
{
	int pid = fork();

	if (pid) {
		prctl(PR_SET_NAME, "tracer");
		waitpid(pid, NULL, 0);
		prctl(PR_SET_DUMPABLE, 1);
		rest(NULL);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ok((int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGUSR1);
}

/* --- files that report events --------------------------------------------------------------------------------------------------------- */

static int open_tty(int *ret_slave)
{
	int master = ok(posix_openpt(O_RDWR | O_NOCTTY));

	ok(grantpt(master));
	ok(unlockpt(master));
	*ret_slave = ok(open(ptsname(master), O_RDWR | O_NOCTTY));
	return master;
}

static void way_tty_read(void)
{
	char byte;
	int slave;

	open_tty(&slave);
	ok((int)read(slave, &byte, 1));
}

static void way_tty_write(void)
{
	int slave;

	open_tty(&slave);
	fill(slave);
}

static void *read_fd(void *fd)
{
	char byte;

	ok((int)read(*(int *)fd, &byte, 1));
	return NULL;
}

/* Two readers of one terminal: the second waits for the kernel's lock of it. */
static void way_kernel_lock(void)
{
	int slave;

	open_tty(&slave);
	beside(read_fd, &slave);
	read_fd(&slave);
}

static void way_inotify(void)
{
	char bytes[4096];
	int fd = ok(inotify_init1(0));

	ok(inotify_add_watch(fd, "/", IN_DELETE_SELF));
	ok((int)read(fd, bytes, sizeof(bytes)));
}

static void way_fanotify(void)
{
	char bytes[4096];

	ok((int)read(ok(fanotify_init(FAN_CLASS_NOTIF, O_RDONLY)), bytes, sizeof(bytes)));
}

static void way_eventfd_read(void)
{
	uint64_t value;

	ok((int)read(ok(eventfd(0, 0)), &value, sizeof(value)));
}

static void way_eventfd_write(void)
{
	uint64_t value = UINT64_MAX - 1;
	int fd = ok(eventfd(0, 0));

	for (;;)
		ok((int)write(fd, &value, sizeof(value)));
}

static void way_timerfd(void)
{
	uint64_t value;

	ok((int)read(ok(timerfd_create(CLOCK_MONOTONIC, 0)), &value, sizeof(value)));
}

/* --- locks of files ------------------------------------------------------------------------------------------------------------------- */

static void way_flock(void)
{
	ok(flock(ok(open(path("flock"), O_RDWR | O_CREAT, 0600)), LOCK_EX));
	ok(flock(ok(open(path("flock"), O_RDWR)), LOCK_EX));
}

static void way_fcntl_lock(void)
{
	struct flock lock = { .l_type = F_WRLCK };

	ok(fcntl(ok(open(path("fcntl"), O_RDWR | O_CREAT, 0600)), F_OFD_SETLK, &lock));
	ok(fcntl(ok(open(path("fcntl"), O_RDWR)), F_SETLKW, &lock));
}

static void way_lease(void)
{
	int fd = ok(open(path("lease"), O_RDWR | O_CREAT, 0600)), pid;

	signal(SIGIO, SIG_IGN);
	ok(fcntl(fd, F_SETLEASE, F_WRLCK));
	pid = fork();
	if (pid) {
		prctl(PR_SET_NAME, "lease holder");
		rest(NULL);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fd);
	ok(open(path("lease"), O_WRONLY));
}

/* --- between processes ---------------------------------------------------------------------------------------------------------------- */

static void way_semop(void)
{
	struct sembuf operation = { .sem_op = -1 };
	int id = ok(semget(IPC_PRIVATE, 1, 0600));

	printf("semaphore %d\n", id);
	fflush(stdout);
	ok(semop(id, &operation, 1));
}

static int queue(void)
{
	int id = ok(msgget(IPC_PRIVATE, 0600));

	printf("queue %d\n", id);
	fflush(stdout);
	return id;
}

struct message {
	long type;
	char text[1000];
};

static void way_msgrcv(void)
{
	struct message message;

	ok((int)msgrcv(queue(), &message, sizeof(message.text), 0, 0));
}

static void way_msgsnd(void)
{
	struct message message = { .type = 1 };
	int id = queue();

	for (;;)
		ok(msgsnd(id, &message, sizeof(message.text), 0));
}

static mqd_t open_mq(const char *name)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	mqd_t id = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);

	if (id == (mqd_t)-1)
		no();
	mq_unlink(name);
	return id;
}

static void way_mq_receive(void)
{
	char bytes[8];

	ok((int)mq_receive(open_mq("/wait_ways_receive"), bytes, sizeof(bytes), NULL));
}

static void way_mq_send(void)
{
	mqd_t id = open_mq("/wait_ways_send");

	for (;;)
		ok(mq_send(id, "x", 1, 0));
}

/* --- others --------------------------------------------------------------------------------------------------------------------------- */

static void way_io_uring(void)
{
	struct io_uring_params params = { 0 };

	ok((int)syscall(SYS_io_uring_enter, ok((int)syscall(SYS_io_uring_setup, 8, &params)), 0, 1, IORING_ENTER_GETEVENTS, NULL, 0));
}

static void way_aio(void)
{
	aio_context_t context = 0;
	struct io_event event;

	ok((int)syscall(SYS_io_setup, 8, &context));
	ok((int)syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
}

static void way_userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = ok((int)syscall(SYS_userfaultfd, 0));
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ok(ioctl(fd, UFFDIO_API, &api));
	area.range.start = (uintptr_t)memory;
	area.range.len = 4096;
	ok(ioctl(fd, UFFDIO_REGISTER, &area));
	*(volatile char *)memory = 1;
}

/* getppid waits for a seccomp supervisor that never looks. */
static void way_seccomp(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	ok((int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
	getppid();
}

static void way_fsync(void)
{
	int fd = ok(open(path("fsync"), O_RDWR | O_CREAT, 0600));

	for (;;) {
		ok((int)pwrite(fd, "x", 1, 0));
		ok(fsync(fd));
	}
}

static void way_membarrier(void)
{
	for (;;)
		ok((int)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
}

static void on_cpu_0(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	ok(sched_setaffinity(0, sizeof(cpus), &cpus));
}

static void way_busy(void)
{
	on_cpu_0();
	if (!fork()) {
		prctl(PR_SET_NAME, "beside");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	for (;;)
		;
}

static void way_yield(void)
{
	on_cpu_0();
	if (!fork()) {
		prctl(PR_SET_NAME, "beside");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	for (;;)
		sched_yield();
}

static const struct way {
	const char *name, *kind;
	void (*wait)(void);
} ways[] = {
	{ "futex", "futex", way_futex },
	{ "mutex", "futex", way_mutex },
	{ "pi_mutex", "futex", way_pi_mutex },
	{ "rwlock", "futex", way_rwlock },
	{ "condition", "futex", way_condition },
	{ "join", "futex", way_join },
	{ "semaphore", "futex", way_semaphore },
	{ "barrier", "futex", way_barrier },
	{ "futex_waitv", "futex", way_futex_waitv },
	{ "nanosleep", "sleep", way_nanosleep },
	{ "clock_sleep", "sleep", way_clock_sleep },
	{ "cpu_sleep", "sleep", way_cpu_sleep },
	{ "pipe_read", "pipe", way_pipe_read },
	{ "pipe_write", "pipe", way_pipe_write },
	{ "fifo_open", "pipe", way_fifo_open },
	{ "splice", "pipe", way_splice },
	{ "unix_stream", "socket", way_unix_stream },
	{ "unix_packet", "socket", way_unix_packet },
	{ "unix_send", "socket", way_unix_send },
	{ "unix_accept", "socket", way_unix_accept },
	{ "unix_connect", "socket", way_unix_connect },
	{ "tcp_accept", "socket", way_tcp_accept },
	{ "tcp_receive", "socket", way_tcp_receive },
	{ "tcp_send", "socket", way_tcp_send },
	{ "udp", "socket", way_udp },
	{ "netlink", "socket", way_netlink },
	{ "recvmmsg", "socket", way_recvmmsg },
	{ "epoll", "epoll", way_epoll },
	{ "epoll_pwait2", "epoll", way_epoll_pwait2 },
	{ "poll", "poll", way_poll },
	{ "ppoll", "poll", way_ppoll },
	{ "select", "select", way_select },
	{ "pselect", "select", way_pselect },
	{ "wait4", "children", way_wait4 },
	{ "waitid", "children", way_waitid },
	{ "vfork", "vfork", way_vfork },
	{ "pause", "signal", way_pause },
	{ "sigsuspend", "signal", way_sigsuspend },
	{ "sigwait", "signal", way_sigwait },
	{ "signalfd", "signal", way_signalfd },
	{ "stopped", "stopped", way_stopped },
	{ "traced", "stopped", way_traced },
	{ "tty_read", "tty", way_tty_read },
	{ "tty_write", "tty", way_tty_write },
	{ "kernel_lock", "lock", way_kernel_lock },
	{ "inotify", "inotify", way_inotify },
	{ "fanotify", "inotify", way_fanotify },
	{ "eventfd_read", "eventfd", way_eventfd_read },
	{ "eventfd_write", "eventfd", way_eventfd_write },
	{ "timerfd", "timerfd", way_timerfd },
	{ "flock", "file lock", way_flock },
	{ "fcntl_lock", "file lock", way_fcntl_lock },
	{ "lease", "file lock", way_lease },
	{ "semop", "semaphore", way_semop },
	{ "msgrcv", "message queue", way_msgrcv },
	{ "msgsnd", "message queue", way_msgsnd },
	{ "mq_receive", "message queue", way_mq_receive },
	{ "mq_send", "message queue", way_mq_send },
	{ "io_uring", "io_uring", way_io_uring },
	{ "aio", "aio", way_aio },
	{ "userfault", "page fault", way_userfault },
	{ "seccomp", "seccomp", way_seccomp },
	{ "fsync", "disk", way_fsync },
	{ "membarrier", "rcu", way_membarrier },
	{ "busy", "preempted", way_busy },
	{ "yield", "yield", way_yield },
};

#define NR_WAYS (sizeof(ways) / sizeof(*ways))

int main(int argc, char **argv)
{
	int pids[NR_WAYS], status;

	if (argc < 2 || !mkdtemp(folder))
		return 2;
	printf("folder %s\n", folder);
	fflush(stdout);
	for (size_t i = 0; i < NR_WAYS; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_NAME, ways[i].name);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			setpgid(0, 0);
			ways[i].wait();
			_exit(FAILED);
		}
	}
	usleep((useconds_t)(strtod(argv[1], NULL) * 1e6));
	for (size_t i = 0; i < NR_WAYS; i++) {
		printf("%s %s %s\n", waitpid(pids[i], &status, WNOHANG) ? "without" : "way", ways[i].name, ways[i].kind);
		kill(-pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	return 0;
}
