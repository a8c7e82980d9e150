-- SPDX-License-Identifier: Apache-2.0
-- The tables of `sonde agent --clickhouse`. What arrives is a JSON object for each sample (docs/formats.md, jsonl), with its window and
-- host; two views make of it stacks, each once, and samples. A window that is delivered twice replaces itself (FINAL, or when parts merge).
CREATE DATABASE IF NOT EXISTS sonde;

CREATE TABLE IF NOT EXISTS sonde.lines (line String) ENGINE = Null;

CREATE TABLE IF NOT EXISTS sonde.stacks (
	hash UInt64,                               -- of what follows
	names Array(String),                       -- leaf first, the kernel's before the user's
	kinds Array(LowCardinality(String)),       -- native, kernel, python, java, ..., mark
	files Array(String)                        -- source file of an interpreted frame, else the mapped file
) ENGINE = ReplacingMergeTree ORDER BY hash;

CREATE TABLE IF NOT EXISTS sonde.samples (
	time DateTime64(9, 'UTC'),                 -- of the sample, or when its window began
	window_ns UInt64,
	host LowCardinality(String),
	pid UInt32,
	tid UInt32,
	comm LowCardinality(String),
	cpu Int32,                                 -- -1: not known
	stack UInt64,                              -- stacks.hash
	labels Map(LowCardinality(String), String),
	type LowCardinality(String),               -- samples, blocked, ...
	unit LowCardinality(String),
	value Int64,
	id UInt64                                  -- of the line: stacks of one name may have several addresses
) ENGINE = ReplacingMergeTree PARTITION BY toYYYYMMDD(time) ORDER BY (host, type, time, pid, tid, comm, cpu, stack, id)
TTL toDateTime(time) + INTERVAL 30 DAY;

CREATE MATERIALIZED VIEW IF NOT EXISTS sonde.lines_to_stacks TO sonde.stacks AS
SELECT sipHash64(names, kinds, files) AS hash, names, kinds, files
FROM (
	SELECT JSONExtractArrayRaw(line, 'stack') AS frames,
		arrayMap(frame -> JSONExtractString(frame, 'name'), frames) AS names,
		arrayMap(frame -> JSONExtractString(frame, 'kind'), frames) AS kinds,
		arrayMap(frame -> if(JSONHas(frame, 'path'), JSONExtractString(frame, 'path'), JSONExtractString(frame, 'file')), frames) AS files
	FROM sonde.lines
	WHERE JSONExtractString(line, 'record') = 'sample'
)
GROUP BY hash, names, kinds, files;

CREATE MATERIALIZED VIEW IF NOT EXISTS sonde.lines_to_samples TO sonde.samples AS
WITH
	JSONExtractArrayRaw(line, 'stack') AS frames,
	JSONExtractArrayRaw(line, 'labels') AS pairs
SELECT
	fromUnixTimestamp64Nano(toInt64OrZero(trim(BOTH '"' FROM if(JSONHas(line, 'time_unix_ns'), JSONExtractRaw(line, 'time_unix_ns'), JSONExtractRaw(line, 'start_unix_ns'))))) AS time,
	JSONExtractUInt(line, 'window_ns') AS window_ns,
	JSONExtractString(line, 'host') AS host,
	JSONExtractUInt(line, 'pid') AS pid,
	JSONExtractUInt(line, 'tid') AS tid,
	JSONExtractString(line, 'comm') AS comm,
	if(JSONHas(line, 'cpu'), JSONExtractInt(line, 'cpu'), -1) AS cpu,
	sipHash64(
		arrayMap(frame -> JSONExtractString(frame, 'name'), frames),
		arrayMap(frame -> JSONExtractString(frame, 'kind'), frames),
		arrayMap(frame -> if(JSONHas(frame, 'path'), JSONExtractString(frame, 'path'), JSONExtractString(frame, 'file')), frames)) AS stack,
	mapFromArrays(arrayMap(pair -> JSONExtractString(pair, 'key'), pairs),
		arrayMap(pair -> if(JSONHas(pair, 'text'), JSONExtractString(pair, 'text'), JSONExtractRaw(pair, 'number')), pairs)) AS labels,
	JSONExtractString(each, 'type') AS type,
	JSONExtractString(each, 'unit') AS unit,
	JSONExtractInt(each, 'value') AS value,
	sipHash64(line) AS id
FROM sonde.lines
ARRAY JOIN JSONExtractArrayRaw(line, 'values') AS each
WHERE JSONExtractString(line, 'record') = 'sample';
