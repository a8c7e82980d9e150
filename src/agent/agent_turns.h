/* SPDX-License-Identifier: Apache-2.0 */
/* agent_turns: records what has its turn beside the main recording, each time by a session of its own, on a thread of its own. So the main
 * one has no gap, and a turn costs its start: the kernel's programs are loaded, and what runs is read. */
#pragma once
#include "settings/agent_measures.h"

struct agent_turns_options { /* borrowed until agent_turns_end */
	const struct agent_measures *measures;
	uint64_t window_ns;
	/* Makes the session's options but for windows and duration. `arg` is theirs, too. */
	void (*fill)(void *arg, enum agent_measure measure, struct sonde_session_options *options);
	/* A turn has ended with this session, or failed: `err`, and the session says why; it may be NULL. */
	void (*ended)(void *arg, enum agent_measure measure, struct sonde_session *session, int err);
	void *arg;
};

struct agent_turns;
MUST_CHECK int agent_turns_start(const struct agent_turns_options *options, struct diag *diag, struct agent_turns **ret_turns);
/* Ends the turn with its window, and the thread. Takes NULL. */
void agent_turns_end(struct agent_turns *turns);
