// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_wire.h"

#include <stdio.h>
#include <string.h>

#include "codec/protobuf.h"
#include "codec/protobuf_read.h"

/* Field numbers, by message. */
enum { REPORT_PROCESSES = 1, REPORT_AGENT };
enum { PROPERTIES_HOST = 1 };
enum { HOST_ENTITY = 1, HOST_PID, HOST_PROPERTIES };
enum { ENTITY_LAYER = 1, ENTITY_SERVICE, ENTITY_INSTANCE, ENTITY_PROCESS, ENTITY_LABELS };
enum { PAIR_KEY = 1, PAIR_VALUE };
enum { PING_ENTITY = 1, PING_PROPERTIES };
enum { DOWNSTREAM_PROCESSES = 1 };
enum { DOWNSTREAM_ID = 1, DOWNSTREAM_HOST };
enum { DOWNSTREAM_PID = 1, DOWNSTREAM_ENTITY };
enum { QUERY_AGENT = 1, QUERY_SINCE };
enum { COMMANDS_COMMANDS = 1 };
enum { COMMAND_NAME = 1, COMMAND_ARGUMENTS };
enum { DATA_TASK = 1, DATA_ON_CPU, DATA_OFF_CPU };
enum { TASK_ID = 1, TASK_PROCESS, TASK_START, TASK_NOW };
enum { STACK_TYPE = 1, STACK_ID, STACK_SYMBOLS };
enum { RECORD_STACKS = 1, RECORD_COUNT, RECORD_DURATION };
enum { KERNEL_SPACE, USER_SPACE };
enum { POLICIES_POLICIES = 1 };
enum { POLICY_SERVICE = 1, POLICY_UUID };
enum { ALARM_LAYER = 1, ALARM_SERVICE, ALARM_INSTANCE, ALARM_PROCESS, ALARM_CAUSES, ALARM_DURATION, ALARM_ON_CPU, ALARM_OFF_CPU };
enum { CAUSE_TYPE = 1, CAUSE_SINGLE };
enum { SINGLE_THRESHOLD = 1, SINGLE_CURRENT };

static void write_text(struct buffer *buffer, uint32_t field, const char *text)
{
	protobuf_bytes(buffer, field, text, strlen(text));
}

/* --- processes ------------------------------------------------------------------------------------------------------------------------ */

static void write_entity(struct buffer *buffer, uint32_t field, const struct sky_entity *entity)
{
	size_t opened = protobuf_open(buffer, field);

	write_text(buffer, ENTITY_LAYER, entity->layer);
	write_text(buffer, ENTITY_SERVICE, entity->service);
	write_text(buffer, ENTITY_INSTANCE, entity->instance);
	write_text(buffer, ENTITY_PROCESS, entity->name);
	write_text(buffer, ENTITY_LABELS, entity->label);
	protobuf_close(buffer, opened);
}

static void write_property(struct buffer *buffer, uint32_t field, const char *key, const char *value)
{
	size_t opened = protobuf_open(buffer, field);

	write_text(buffer, PAIR_KEY, key);
	write_text(buffer, PAIR_VALUE, value);
	protobuf_close(buffer, opened);
}

/* Without support_ebpf_profiling the server gives no tasks. The command line is the path alone: arguments may be secret. */
static void write_properties(struct buffer *buffer, uint32_t field, const char *host_address, const struct sky_process *process)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", process->pid);
	write_property(buffer, field, "host_ip", host_address);
	write_property(buffer, field, "pid", pid);
	write_property(buffer, field, "command_line", process->executable);
	write_property(buffer, field, "support_ebpf_profiling", "true");
}

void sky_write_report(const char *agent_id, const char *host_address, const struct sky_process *const *processes, uint32_t nr,
		      struct buffer *buffer)
{
	for (uint32_t i = 0; i < nr; i++) {
		size_t of_process = protobuf_open(buffer, REPORT_PROCESSES), of_host = protobuf_open(buffer, PROPERTIES_HOST);

		write_entity(buffer, HOST_ENTITY, &processes[i]->entity);
		protobuf_u64(buffer, HOST_PID, processes[i]->pid);
		write_properties(buffer, HOST_PROPERTIES, host_address, processes[i]);
		protobuf_close(buffer, of_host);
		protobuf_close(buffer, of_process);
	}
	write_text(buffer, REPORT_AGENT, agent_id);
}

void sky_write_keep_alive(const char *agent_id, const char *host_address, const struct sky_process *const *processes, uint32_t nr,
			  struct buffer *buffer)
{
	for (uint32_t i = 0; i < nr; i++) {
		size_t opened = protobuf_open(buffer, REPORT_PROCESSES);

		write_entity(buffer, PING_ENTITY, &processes[i]->entity);
		write_properties(buffer, PING_PROPERTIES, host_address, processes[i]);
		protobuf_close(buffer, opened);
	}
	write_text(buffer, REPORT_AGENT, agent_id);
}

static bool is_text(const struct reader *bytes, const char *text)
{
	return reader_left(bytes) == strlen(text) && (!*text || !memcmp(bytes->pos, text, strlen(text)));
}

/* False: it does not fit, or has a NUL. */
static bool copy_text(const struct reader *bytes, char *room, size_t room_bytes)
{
	size_t size = reader_left(bytes);

	if (size >= room_bytes || memchr(bytes->pos ?: (const uint8_t *)"", '\0', size))
		return false;
	memcpy(room, bytes->pos ?: (const uint8_t *)"", size);
	room[size] = '\0';
	return true;
}

static bool is_entity(struct reader message, const struct sky_entity *entity)
{
	const char *const texts[] = { [ENTITY_LAYER] = entity->layer,
				      [ENTITY_SERVICE] = entity->service,
				      [ENTITY_INSTANCE] = entity->instance,
				      [ENTITY_PROCESS] = entity->name,
				      [ENTITY_LABELS] = entity->label };
	struct protobuf_field field;
	uint32_t nr_equal = 0;

	while (protobuf_next(&message, &field)) {
		if (field.number >= ARRAY_SIZE(texts) || !texts[field.number] || !is_text(&field.bytes, texts[field.number]))
			return false;
		nr_equal++;
	}
	return !message.bad && nr_equal == ARRAY_SIZE(texts) - 1;
}

static bool is_host_process(struct reader message, const struct sky_process *process)
{
	struct protobuf_field field;
	bool is_pid = false, is_same = false;

	while (protobuf_next(&message, &field)) {
		if (field.number == DOWNSTREAM_PID)
			is_pid = field.value == process->pid;
		else if (field.number == DOWNSTREAM_ENTITY)
			is_same = is_entity(field.bytes, &process->entity);
	}
	return is_pid && is_same;
}

static void read_id(struct reader message, struct sky_process *const *processes, uint32_t nr)
{
	struct reader id = reader_of("", 0), host = reader_of("", 0);
	struct protobuf_field field;

	while (protobuf_next(&message, &field)) {
		if (field.number == DOWNSTREAM_ID)
			id = field.bytes;
		else if (field.number == DOWNSTREAM_HOST)
			host = field.bytes;
	}
	for (uint32_t i = 0; i < nr; i++) {
		if (is_host_process(host, processes[i]) && !copy_text(&id, processes[i]->id, sizeof(processes[i]->id)))
			*processes[i]->id = '\0';
	}
}

bool sky_read_ids(struct reader message, struct sky_process *const *processes, uint32_t nr)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field)) {
		if (field.number == DOWNSTREAM_PROCESSES && field.type == PROTOBUF_BYTES)
			read_id(field.bytes, processes, nr);
	}
	return !message.bad;
}

/* --- commands ------------------------------------------------------------------------------------------------------------------------- */

void sky_write_task_query(const char *agent_id, uint64_t since_ms, struct buffer *buffer)
{
	write_text(buffer, QUERY_AGENT, agent_id);
	protobuf_u64(buffer, QUERY_SINCE, since_ms);
}

static void read_argument(struct reader message, struct sky_command *command)
{
	struct sky_argument *argument = &command->arguments[command->nr];
	struct protobuf_field field;

	if (command->nr == SKY_MAX_ARGUMENTS)
		return;
	*argument = (struct sky_argument){ 0 };
	while (protobuf_next(&message, &field)) {
		if (field.number == PAIR_KEY)
			argument->key = field.bytes;
		else if (field.number == PAIR_VALUE)
			argument->value = field.bytes;
	}
	command->nr++;
}

static void read_command(struct reader message, struct sky_command *command)
{
	struct protobuf_field field;

	*command = (struct sky_command){ 0 };
	while (protobuf_next(&message, &field)) {
		if (field.number == COMMAND_NAME)
			command->name = field.bytes;
		else if (field.number == COMMAND_ARGUMENTS)
			read_argument(field.bytes, command);
	}
}

bool sky_next_command(struct reader *message, struct sky_command *ret_command)
{
	struct protobuf_field field;

	while (protobuf_next(message, &field)) {
		if (field.number != COMMANDS_COMMANDS || field.type != PROTOBUF_BYTES)
			continue;
		read_command(field.bytes, ret_command);
		return true;
	}
	return false;
}

bool sky_is_command(const struct sky_command *command, const char *name)
{
	return is_text(&command->name, name);
}

const struct reader *sky_argument_bytes(const struct sky_command *command, const char *key)
{
	for (uint32_t i = 0; i < command->nr; i++) {
		if (is_text(&command->arguments[i].key, key))
			return &command->arguments[i].value;
	}
	return NULL;
}

bool sky_argument(const struct sky_command *command, const char *key, char *room, size_t room_bytes)
{
	const struct reader *value = sky_argument_bytes(command, key);

	return value && copy_text(value, room, room_bytes);
}

/* --- policies ------------------------------------------------------------------------------------------------------------------------- */

void sky_write_policy(const char *service, const char *uuid, struct buffer *buffer)
{
	size_t opened = protobuf_open(buffer, POLICIES_POLICIES);

	write_text(buffer, POLICY_SERVICE, service);
	write_text(buffer, POLICY_UUID, uuid);
	protobuf_close(buffer, opened);
}

static void write_double(struct buffer *buffer, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	protobuf_fixed64(buffer, field, bits);
}

void sky_write_alarm(const struct sky_entity *entity, const struct sky_alarm *alarm, struct buffer *buffer)
{
	size_t of_cause, of_value;

	write_text(buffer, ALARM_LAYER, entity->layer);
	write_text(buffer, ALARM_SERVICE, entity->service);
	write_text(buffer, ALARM_INSTANCE, entity->instance);
	write_text(buffer, ALARM_PROCESS, entity->name);
	of_cause = protobuf_open(buffer, ALARM_CAUSES);
	protobuf_u64(buffer, CAUSE_TYPE, alarm->cause);
	of_value = protobuf_open(buffer, CAUSE_SINGLE);
	write_double(buffer, SINGLE_THRESHOLD, alarm->threshold);
	write_double(buffer, SINGLE_CURRENT, alarm->current);
	protobuf_close(buffer, of_value);
	protobuf_close(buffer, of_cause);
	protobuf_u64(buffer, ALARM_DURATION, alarm->duration_s);
	protobuf_bytes(buffer, alarm->is_off_cpu ? ALARM_OFF_CPU : ALARM_ON_CPU, "", 0);
}

/* --- records -------------------------------------------------------------------------------------------------------------------------- */

static void write_task(struct buffer *buffer, const struct sky_data *data)
{
	size_t opened = protobuf_open(buffer, DATA_TASK);

	write_text(buffer, TASK_ID, data->task_id);
	write_text(buffer, TASK_PROCESS, data->process_id);
	protobuf_u64(buffer, TASK_START, data->start_ms);
	protobuf_u64(buffer, TASK_NOW, data->now_ms);
	protobuf_close(buffer, opened);
}

static void write_side(struct buffer *buffer, uint32_t type, const struct sky_side *side)
{
	size_t opened;
	const char *name = side->names;

	if (!side->nr)
		return;
	opened = protobuf_open(buffer, RECORD_STACKS);
	protobuf_u64(buffer, STACK_TYPE, type);
	protobuf_u64(buffer, STACK_ID, side->id);
	for (uint32_t i = 0; i < side->nr; i++) {
		write_text(buffer, STACK_SYMBOLS, name);
		name += strlen(name) + 1;
	}
	protobuf_close(buffer, opened);
}

void sky_write_record(const struct sky_data *data, bool is_first, const struct sky_record *record, struct buffer *buffer)
{
	size_t opened;

	if (is_first)
		write_task(buffer, data);
	opened = protobuf_open(buffer, data->is_off_cpu ? DATA_OFF_CPU : DATA_ON_CPU);
	write_side(buffer, KERNEL_SPACE, &record->kernel);
	write_side(buffer, USER_SPACE, &record->user);
	protobuf_u64(buffer, RECORD_COUNT, (uint64_t)record->count);
	if (data->is_off_cpu)
		protobuf_u64(buffer, RECORD_DURATION, (uint64_t)record->duration_ns);
	protobuf_close(buffer, opened);
}
