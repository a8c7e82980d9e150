/* SPDX-License-Identifier: Apache-2.0 */
/* sky_wire: SkyWalking's messages between an eBPF agent and its OAP server (skywalking-data-collect-protocol, ebpf/profiling/Process.proto,
 * Profile.proto and Continuous.proto, package skywalking.v3). What the server says is untrusted: texts that are longer than their room are
 * refused. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/reader.h"

#define SKY_ID_BYTES	   128
#define SKY_PATH_BYTES	   256
#define SKY_MAX_ARGUMENTS  16

struct sky_entity { /* who a process is for the server */
	char layer[32], service[128], instance[128], name[160];
	char label[128]; /* its executable: processes of a service are chosen by it */
};

struct sky_process {
	struct sky_entity entity;
	uint32_t pid;
	char executable[SKY_PATH_BYTES]; /* path */
	char id[SKY_ID_BYTES]; /* the server's; "": it has given none yet */
};

/* Requests. Errors are the buffer's. */
void sky_write_report(const char *agent_id, const char *host_address, const struct sky_process *const *processes, uint32_t nr,
		      struct buffer *buffer);
void sky_write_keep_alive(const char *agent_id, const char *host_address, const struct sky_process *const *processes, uint32_t nr,
			  struct buffer *buffer);
void sky_write_task_query(const char *agent_id, uint64_t since_ms, struct buffer *buffer);

void sky_write_policy(const char *service, const char *uuid, struct buffer *buffer); /* for one service; the next may follow */
/* That a process is above a threshold: `cause` is a number of the protocol's ContinuousProfilingCauseType. */
struct sky_alarm {
	uint32_t cause;
	double threshold, current;
	uint64_t duration_s;
	bool is_off_cpu;
};
void sky_write_alarm(const struct sky_entity *entity, const struct sky_alarm *alarm, struct buffer *buffer);

/* Reads the answer to a report: sets the ids of those processes that the server knows, by pid and whole entity. False: it is no such
 * answer. */
bool sky_read_ids(struct reader message, struct sky_process *const *processes, uint32_t nr);

struct sky_argument {
	struct reader key, value; /* borrowed from the message */
};

struct sky_command {
	struct reader name;
	struct sky_argument arguments[SKY_MAX_ARGUMENTS];
	uint32_t nr;
};

/* Reads the next command of an answer. False: no more. */
bool sky_next_command(struct reader *message, struct sky_command *ret_command);
bool sky_is_command(const struct sky_command *command, const char *name);
const struct reader *sky_argument_bytes(const struct sky_command *command, const char *key); /* borrowed; NULL: there is none */
/* Copies an argument. False: there is none, or it does not fit. */
bool sky_argument(const struct sky_command *command, const char *key, char *room, size_t room_bytes);

/* A part of a stack. Names are NUL-terminated, one after the other, leaf first. */
struct sky_side {
	const char *names;
	uint32_t nr, id; /* id: unique among the records of a flush */
};

struct sky_record {
	struct sky_side kernel, user;
	int32_t count;
	int64_t duration_ns;
};

struct sky_data { /* which task the records of a stream belong to */
	const char *task_id, *process_id;
	uint64_t start_ms, now_ms;
	bool is_off_cpu;
};

/* A message of the stream of records. Only the first one of a stream says what task it is. */
void sky_write_record(const struct sky_data *data, bool is_first, const struct sky_record *record, struct buffer *buffer);
