// SPDX-License-Identifier: Apache-2.0
#include "settings/agent_options.h"

#include <stddef.h>

#include "cli/plain_format.h"
#include "cli/runtimes_option.h"
#include "send/otlp_push.h"
#include "settings/agent_measures.h"
#include "settings/agent_settings.h"
#include "store/store.h"

#define MAX_FREQ_HZ	 10000
#define MAX_WINDOW_S	 3600
#define MAX_RECORDER_S	 86400
#define MIN_RING_BYTES	 ((uint64_t)64 << 10)
#define MAX_SKYWALKING_S 240 /* the server forgets processes after five minutes */
#define MIN_STORE_BYTES	 ((uint64_t)1 << 20)
#define DEFAULT_STORE_BYTES  ((uint64_t)1 << 30)
#define DEFAULT_MEMORY_BYTES ((uint64_t)64 << 20)

#define FIELD(field) .offset = offsetof(struct agent_arguments, field)

/* How requests to a destination are made. */
#define DESTINATION_ROWS(field, option) \
	{ .name = option "-header", \
	  .metavar = "HEADER", \
	  .kind = OPTION_TEXTS, \
	  FIELD(field.headers), \
	  .is_secret = true, \
	  .help = "a header of each request, as 'authorization: Bearer ...'; may be repeated. In the environment other users do " \
		  "not see it" }, \
	{ .name = option "-ca", \
	  .metavar = "FILE", \
	  .kind = OPTION_TEXT, \
	  FIELD(field.ca), \
	  .values = OPTION_VALUES_FILE, \
	  .help = "trust these authorities (PEM) instead of the system's" }, \
	{ .name = option "-cert", \
	  .metavar = "FILE", \
	  .kind = OPTION_TEXT, \
	  FIELD(field.cert), \
	  .values = OPTION_VALUES_FILE, \
	  .help = "our certificate (PEM), for a server that asks for one" }, \
	{ \
		.name = option "-key", .metavar = "FILE", .kind = OPTION_TEXT, FIELD(field.key), .values = OPTION_VALUES_FILE, \
		.help = "its key (PEM)" \
	}

const struct option_spec agent_options[AGENT_NR_OPTIONS] = {
	{ .group = "What is sampled",
	  .metavar = "DURATION",
	  .kind = OPTION_NUMBER,
	  FIELD(duration_s),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "seconds; without it until SIGTERM or Ctrl-C" },
	{ .name = "measure",
	  .metavar = "LIST",
	  .kind = OPTION_TEXT,
	  FIELD(measure),
	  .value_name = agent_measure_name,
	  .help = "what is measured, of cpu, offcpu and wall: cpu. Of several each has a window in turn, as cpu,cpu,offcpu: off-CPU time "
		  "in each third window. cpu goes on meanwhile, all the time. show, diff and convert read DIRECTORY@-1h,offcpu of it" },
	{ .letter = 'F',
	  .name = "frequency",
	  .otel_name = "samples-per-second",
	  .metavar = "HZ",
	  .kind = OPTION_NUMBER,
	  FIELD(freq_hz),
	  .min = 1,
	  .max = MAX_FREQ_HZ,
	  .help = "samples per second and CPU; 19" },
	{ .name = "window",
	  .otel_name = "reporter-interval",
	  .metavar = "SECONDS",
	  .kind = OPTION_SECONDS,
	  FIELD(window_s),
	  .min = 1,
	  .max = MAX_WINDOW_S,
	  .help = "a profile for so many seconds each, or 1m; 10" },
	{ .name = "max-cpu",
	  .metavar = "PCT",
	  .kind = OPTION_NUMBER,
	  FIELD(max_cpu_percent),
	  .min = 1,
	  .max = 100,
	  .help = "sample at half the rate, and again half, while the agent's processes and BPF programs take more than so much of the "
		  "machine's time; at more again when there is room. Of waits the short ones are left out instead" },
	{ .name = "max-memory",
	  .metavar = "MB",
	  .kind = OPTION_NUMBER,
	  FIELD(max_memory_mib),
	  .min = 1,
	  .max = 1 << 20,
	  .help = "unload unwind tables and forget names, the least recently used first, while the agent's processes and BPF maps take "
		  "more than so many megabytes. Stacks that need a table that is not loaded end in a mark" },
	{ .name = "audit-every",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(audit_every),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "unwind one of N user stacks once more, with libdw, and compare; --status and /metrics have the agreement" },
	{ .name = "counters",
	  .metavar = "EVENTS",
	  .kind = OPTION_TEXT,
	  FIELD(counters),
	  .help = "count these events of all CPUs all the time, for /metrics and --status: a list as of sonde stat -e" },
	{ .name = "env",
	  .otel_name = "env-vars",
	  .metavar = "NAME",
	  .kind = OPTION_TEXTS,
	  FIELD(env),
	  .help = "keep this variable of each process's environment, as the label process.environment_variable.NAME, 255 bytes of it at "
		  "most; a comma list, may be repeated, 16 names in all. No other variable is kept, except the service's name, of "
		  "OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES" },
	OPTION_ROW_RUNTIMES(offsetof(struct agent_arguments, runtimes), "tracers"),
	{ .name = "symbols",
	  .metavar = "WHERE",
	  .kind = OPTION_TEXT,
	  FIELD(symbols),
	  .value_name = agent_symbols_at,
	  .help = "names: those of functions in files are looked up here; address: build id and address leave instead, for a server that "
		  "has the files, and show has no names either. The kernel, interpreters and JIT code have names all the same; names" },
	{ .group = "Where it is kept",
	  .name = "store",
	  .metavar = "DIRECTORY",
	  .kind = OPTION_TEXT,
	  FIELD(store),
	  .values = OPTION_VALUES_FILE,
	  .help = "keep the profiles here; /var/lib/sonde. show, diff and convert read it: sonde show DIRECTORY@-1h. none: nowhere; they "
		  "wait in memory until each destination has taken them" },
	{ .name = "store-max-age",
	  .metavar = "AGE",
	  .kind = OPTION_TEXT,
	  FIELD(store_max_age),
	  .help = "remove what is older: 90s, 15m, 12h, 7d; 7d" },
	{ .name = "store-max-bytes",
	  .metavar = "BYTES",
	  .kind = OPTION_BYTES,
	  FIELD(store_max_bytes),
	  .min = MIN_STORE_BYTES,
	  .max = INT64_MAX,
	  .help = "remove the oldest when the profiles are larger than this together: 500M, 1G; 1G, in memory 64M" },
	{ .group = "Flight recorder",
	  .name = "recorder",
	  .metavar = "TIME",
	  .kind = OPTION_SECONDS,
	  FIELD(recorder_s),
	  .min = 1,
	  .max = MAX_RECORDER_S,
	  .help = "keep so much of the last time in memory, each sample with its time, and store it when a trigger fires: 5m. show, diff "
		  "and convert read DIRECTORY@-1h,incident of it. kill -9 loses what is in memory" },
	{ .name = "trigger",
	  .metavar = "TRIGGER",
	  .kind = OPTION_TEXTS,
	  FIELD(triggers),
	  .help = "when that is: 'cpu>80%/10s' (mean of the machine's CPUs over so long), psi.cpu, psi.io and psi.memory "
		  "('psi.cpu>20%/10s': share of the time in which some thread waited), 'file:PATH>200/10s' (a number that a service "
		  "writes into a file), 'runq.p99>20ms/10s' (more than one in a hundred waits for a CPU is longer), oom (the kernel "
		  "killed a process for lack of memory), crash (SIGSEGV, SIGABRT, SIGBUS, SIGFPE or SIGILL ended a process: its stack is "
		  "DIRECTORY@-1h,crash), signal (SIGUSR2 to the agent); signal. May be repeated. At most 6 in an hour" },
	{ .name = "recorder-after",
	  .metavar = "TIME",
	  .kind = OPTION_SECONDS,
	  FIELD(recorder_after_s),
	  .min = 1,
	  .max = MAX_RECORDER_S,
	  .help = "and store so much of the time after it; 1m. Another trigger meanwhile makes it longer, up to the recorder's time more" },
	{ .name = "recorder-max-bytes",
	  .metavar = "BYTES",
	  .kind = OPTION_BYTES,
	  FIELD(recorder_max_bytes),
	  .min = MIN_RING_BYTES,
	  .max = INT64_MAX,
	  .help = "drop the oldest of what is in memory before its time when it is larger than this; 64M" },
	{ .group = "Where it is delivered",
	  .name = "otlp",
	  .otel_name = "collection-agent",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(otlp.address),
	  .help = "send the profiles to an OpenTelemetry collector: http://HOST:PORT, https://, grpc://, grpcs://, or HOST:PORT, which is "
		  "gRPC with TLS, on loopback without. The store keeps what cannot be sent yet" },
	DESTINATION_ROWS(otlp, "otlp"),
	{ .name = "otlp-compression",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(otlp_compression),
	  .value_name = otlp_compression_at,
	  .help = "gzip, zstd or none; gzip. zstd takes less CPU time, where the collector knows it" },
	{ .name = "otlp-version",
	  .metavar = "VERSION",
	  .kind = OPTION_TEXT,
	  FIELD(otlp_version),
	  .value_name = otlp_version_at,
	  .help = "the version of opentelemetry-proto that the collector has: 1.10, which is right for newer ones too, 1.9, or 1.8 (as "
		  "the Collector 0.139); 1.10. Where it is wrong, most collectors say so, and the profiles wait" },
	{ .name = "disable-tls",
	  .otel_name = "disable-tls",
	  .kind = OPTION_FLAG,
	  FIELD(disable_tls),
	  .help = "HOST:PORT without a scheme is gRPC without TLS" },
	{ .name = "pyroscope",
	  .metavar = "URL",
	  .kind = OPTION_TEXT,
	  FIELD(pyroscope.address),
	  .help = "send them to Grafana Pyroscope: http://HOST:PORT, https://HOST; also beside --otlp" },
	{ .name = "pyroscope-label",
	  .metavar = "LABEL",
	  .kind = OPTION_TEXTS,
	  FIELD(pyroscope_labels),
	  .help = "a label of the profiles there, NAME=VALUE; may be repeated. Without it service_name=sonde, hostname=..., "
		  "__name__=process_cpu" },
	DESTINATION_ROWS(pyroscope, "pyroscope"),
	{ .name = "parca",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(parca.address),
	  .help = "send them to Parca: grpc://HOST:PORT, grpcs://, or HOST:PORT as above; port 7070" },
	{ .name = "parca-label",
	  .metavar = "LABEL",
	  .kind = OPTION_TEXTS,
	  FIELD(parca_labels),
	  .help = "a label of the profiles there, NAME=VALUE; may be repeated. Without it __name__=sonde, node=..." },
	DESTINATION_ROWS(parca, "parca"),
	{ .name = "clickhouse",
	  .metavar = "URL",
	  .kind = OPTION_TEXT,
	  FIELD(clickhouse.address),
	  .help = "insert them into ClickHouse, into the tables of clickhouse.sql: http://HOST:8123, https://HOST. User and password are "
		  "headers: 'X-ClickHouse-User: ...', 'X-ClickHouse-Key: ...'" },
	DESTINATION_ROWS(clickhouse, "clickhouse"),
	{ .group = "SkyWalking",
	  .name = "skywalking",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking.address),
	  .help = "report this machine's processes to an OAP server of Apache SkyWalking, and profile what its tasks ask for: "
		  "grpc://HOST:PORT, grpcs://, or HOST:PORT as above; port 11800" },
	{ .name = "skywalking-period",
	  .metavar = "TIME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_period),
	  .help = "ON_CPU tasks: a sample for so much time of a CPU, a millisecond or more: 9ms, 1500us, 2s; 9ms" },
	{ .name = "skywalking-authentication",
	  .metavar = "TOKEN",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_authentication),
	  .is_secret = true,
	  .help = "the server's token. In the environment other users do not see it" },
	DESTINATION_ROWS(skywalking, "skywalking"),
	{ .name = "skywalking-layer",
	  .metavar = "LAYER",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_layer),
	  .help = "the layer of the services, one that the server knows: OS_LINUX, K8S_SERVICE, GENERAL, MESH; OS_LINUX" },
	{ .name = "skywalking-service",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_service),
	  .help = "a process's service, of {service}, {executable}, {container}, {pod}, {namespace}, {unit}, {host}, {pid}; {service}, "
		  "which is OTEL_SERVICE_NAME, unit, container or executable" },
	{ .name = "skywalking-instance",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_instance),
	  .help = "its instance, likewise; {host}" },
	{ .name = "skywalking-process",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_process),
	  .help = "its name, likewise: unique in its instance; {executable}-{pid}" },
	{ .name = "skywalking-heartbeat",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(skywalking_heartbeat_s),
	  .min = 1,
	  .max = MAX_SKYWALKING_S,
	  .help = "report processes, those that are as old, so often; 20" },
	{ .name = "skywalking-check",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(skywalking_check_s),
	  .min = 1,
	  .max = MAX_SKYWALKING_S,
	  .help = "ask for tasks so often; 10" },
	{ .name = "skywalking-flush",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(skywalking_flush_s),
	  .min = 1,
	  .max = MAX_SKYWALKING_S,
	  .help = "send what a task sampled so often; 5" },
	{ .group = "What it says of itself",
	  .name = "status",
	  .kind = OPTION_FLAG,
	  FIELD(status),
	  .help = "ask the agent that has the store: since when it runs, what it recorded, lost and delivered, what it costs; and "
		  "end" },
	{ .name = "format",
	  .metavar = "FORMAT",
	  .kind = OPTION_TEXT,
	  FIELD(format),
	  .value_name = plain_format_at,
	  .help = "with --status: text or json; text" },
	{ .name = "listen",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(listen),
	  .help = "serve /metrics for Prometheus and /healthz over HTTP: :PORT is 127.0.0.1 alone; [::1]:PORT, unix:PATH; an address "
		  "that others can reach only if it is given in full, as 0.0.0.0:PORT" },
	{ .group = "Settings",
	  .name = "config",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(config),
	  .values = OPTION_VALUES_FILE,
	  .help = "settings from this YAML file, a line each as the long options above: store-max-age: 7d. SONDE_STORE_MAX_AGE in the "
		  "environment goes before it, the command line before both; SONDE_CONFIG there names the file. SIGHUP has it read again" },
	{ .name = "print-config", .kind = OPTION_FLAG, FIELD(print_config), .help = "print the settings as such a file, and end" },
};

const struct agent_arguments agent_defaults = {
	.freq_hz = 19,
	.window_s = 10,
	.measure = "cpu",
	.symbols = "names",
	.store = "/var/lib/sonde",
	.store_max_age = "7d",
	.recorder_after_s = 60,
	.recorder_max_bytes = DEFAULT_MEMORY_BYTES,
	.skywalking_period = "9ms",
	.skywalking_layer = "OS_LINUX",
	.skywalking_service = "{service}",
	.skywalking_instance = "{host}",
	.skywalking_process = "{executable}-{pid}",
	.skywalking_heartbeat_s = 20,
	.skywalking_check_s = 10,
	.skywalking_flush_s = 5,
};

void agent_options_finish(struct agent_arguments *arguments)
{
	if (!arguments->store_max_bytes)
		arguments->store_max_bytes = store_is_in_memory(arguments->store) ? DEFAULT_MEMORY_BYTES : DEFAULT_STORE_BYTES;
}
