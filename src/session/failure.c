// SPDX-License-Identifier: Apache-2.0
/* What a failure means to the user: its exit code, and what to do next. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"

int session_fail(struct sonde_session *session, enum sonde_exit code, int err)
{
	if (session->exit_code == SONDE_EXIT_REPORT)
		session->exit_code = code;
	return err;
}

/* Where this program's file is, for the hint. */
static const char *program_path(char *to, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", to, size - 1);

	if (length < 0)
		return "PROGRAM";
	to[length] = '\0';
	return to;
}

int session_fail_setup(struct sonde_session *session, int err)
{
	if (err == -ENOMEM)
		diag_errno(&session->diag, ENOMEM, "out of memory");
	if (err == -EPERM || err == -EACCES) {
		struct diag cause = session->diag;
		char own_path[256];

		snprintf(session->diag.text, sizeof(session->diag.text),
			 "%.160s (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG): run as root, or give them to the program: sudo setcap "
			 "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_checkpoint_restore+ep %.120s",
			 cause.text, program_path(own_path, sizeof(own_path)));
		return session_fail(session, SONDE_EXIT_NOT_PERMITTED, err);
	}
	return session_fail(session, err == -EOPNOTSUPP ? SONDE_EXIT_KERNEL_CANNOT : SONDE_EXIT_FAILED, err);
}
