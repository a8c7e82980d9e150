// SPDX-License-Identifier: Apache-2.0
#include "session/failure.h"

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

/* The path of this program's file, for the hint. */
static const char *program_path(char *to, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", to, size - 1);

	if (length < 0)
		return "PROGRAM";
	to[length] = '\0';
	return to;
}

enum sonde_exit failure_code(int err, struct diag *diag)
{
	if (err == -ENOMEM)
		diag_errno(diag, ENOMEM, "out of memory");
	if (err == -EPERM || err == -EACCES) {
		struct diag cause = *diag;
		char own_path[256];

		snprintf(diag->text, sizeof(diag->text),
			 "%.160s (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG): run as root, or give them to the program: sudo setcap "
			 "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_checkpoint_restore+ep %.120s",
			 cause.text, program_path(own_path, sizeof(own_path)));
		return SONDE_EXIT_NOT_PERMITTED;
	}
	return err == -EOPNOTSUPP ? SONDE_EXIT_KERNEL_CANNOT : SONDE_EXIT_FAILED;
}

int session_fail_setup(struct sonde_session *session, int err)
{
	return session_fail(session, failure_code(err, &session->diag), err);
}
