#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""skywalking_double.py PORT [CERTIFICATE KEY]: as much of SkyWalking's OAP server as an eBPF agent speaks with, by gRPC's own library (Debian: python3-grpcio). Prints "listening PORT", then a JSON
object for each call that came. Lines on stdin are JSON objects: {"commands": {METHOD: [[NAME, {KEY: VALUE}], ...]}}: answers from now on; {"fail": N}: the next N calls are answered
with UNAVAILABLE; {"silent": N}: the next N are not answered for 60 s; {"refuse": {METHOD: CODE}}: that method always ends so; {"refuse_tasks": {TASK: CODE}}: so do streams of that task's records."""
import hashlib
import json
import struct
import sys
import time

import grpc # pylint: disable=import-error
from grpc_double import lock, serve

state = {"commands": {}, "fail": 0, "silent": 0, "refuse": {}, "refuse_tasks": {}}


def varint(data, at):
	value = shift = 0
	while True:
		byte = data[at]
		at += 1
		value |= (byte & 127) << shift
		if byte < 128:
			return value, at
		shift += 7


def fields(data):
	"""{number: [values]} of a message."""
	found, at = {}, 0
	while at < len(data):
		key, at = varint(data, at)
		if key & 7 == 0:
			value, at = varint(data, at)
		elif key & 7 == 1:
			value, at = data[at:at + 8], at + 8
		elif key & 7 == 2:
			size, at = varint(data, at)
			value, at = data[at:at + size], at + size
			assert len(value) == size
		else:
			raise ValueError("wire type %d" % (key & 7))
		found.setdefault(key >> 3, []).append(value)
	return found


def text(found, number):
	return found.get(number, [b""])[-1].decode() # must be UTF-8, as protobuf asks


def entity_of(data):
	found = fields(data)
	return {"layer": text(found, 1), "service": text(found, 2), "instance": text(found, 3), "process": text(found, 4), "labels": [label.decode() for label in found.get(5, [])]}


def properties_of(list_of):
	return {text(fields(pair), 1): text(fields(pair), 2) for pair in list_of}


def report_of(data):
	found, processes = fields(data), []
	for each in found.get(1, []):
		(host,) = fields(each)[1]
		of_host = fields(host)
		processes.append({"entity": entity_of(of_host[1][0]), "pid": of_host[2][0], "properties": properties_of(of_host.get(3, []))})
	return {"agent": text(found, 2), "processes": processes}


def keep_alive_of(data):
	found = fields(data)
	return {"agent": text(found, 2), "processes": [{"entity": entity_of(fields(each)[1][0]), "properties": properties_of(fields(each).get(2, []))} for each in found.get(1, [])]}


def record_of(data):
	found = fields(data)
	assert (2 in found) != (3 in found), "either on or off CPU"
	record = {"task": None, "is_off_cpu": 3 in found}
	if 1 in found:
		task = fields(found[1][0])
		record["task"] = {"task": text(task, 1), "process": text(task, 2), "start_ms": task.get(3, [0])[0], "now_ms": task.get(4, [0])[0]}
	body = fields(found.get(2, found.get(3))[0])
	for stack in body.get(1, []):
		of_stack = fields(stack)
		record["user" if of_stack.get(1, [0])[0] else "kernel"] = {"id": of_stack.get(2, [0])[0], "names": [name.decode() for name in of_stack.get(3, [])]}
	record["count"], record["duration_ns"] = body.get(2, [0])[0], body.get(3, [0])[0]
	return record


def policies_of(data):
	return {text(fields(each), 1): text(fields(each), 2) for each in fields(data).get(1, [])}


def alarm_of(data):
	found = fields(data)
	cause = fields(found[5][0])
	values = fields(cause[2][0])
	return {"service": text(found, 2), "instance": text(found, 3), "process": text(found, 4), "cause": cause.get(1, [0])[0], "threshold": struct.unpack("<d", values[1][0])[0],
		"current": struct.unpack("<d", values[2][0])[0], "duration_s": found[6][0], "is_off_cpu": 8 in found}


def field(number, data):
	data = data.encode() if isinstance(data, str) else data
	size, head = len(data), bytes([number << 3 | 2])
	while size > 127:
		head += bytes([size & 127 | 128])
		size >>= 7
	return head + bytes([size]) + data


def id_of(entity):
	return hashlib.sha256(json.dumps(entity).encode()).hexdigest()


def known(data):
	"""The answer to a report: an id for each process, with its pid and entity as they came."""
	answer = b""
	for each in fields(data).get(1, []):
		(host,) = fields(each)[1]
		of_host = fields(host)
		pid, head = of_host[2][0], b"\x08"
		while pid > 127:
			head += bytes([pid & 127 | 128])
			pid >>= 7
		answer += field(1, field(1, id_of(entity_of(of_host[1][0]))) + field(2, head + bytes([pid]) + field(2, of_host[1][0])))
	return answer


def commands(method):
	with lock:
		return b"".join(field(1, field(1, name) + b"".join(field(2, field(1, key) + field(2, value)) for key, value in arguments.items())) for name, arguments in state["commands"].get(method, []))


def fault(method, context):
	with lock:
		refused = state["refuse"].get(method)
		failed, silent = state["fail"] > 0, state["silent"] > 0
		state["fail"] -= failed
		state["silent"] -= not failed and silent
	if refused:
		context.abort(grpc.StatusCode[refused], "not this")
	if failed:
		context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
	if silent:
		time.sleep(60)


def say(method, context, content):
	with lock:
		print(json.dumps({"method": method, "metadata": dict(context.invocation_metadata()), "content": content, "time": time.time()}), flush=True)


READERS = {"reportProcesses": report_of, "keepAlive": keep_alive_of, "queryTasks": lambda data: {"agent": text(fields(data), 1), "since_ms": fields(data).get(2, [0])[0]},
	"queryPolicies": policies_of, "reportProfilingTask": alarm_of}


def unary(method):
	def answer(data, context):
		fault(method, context)
		say(method, context, READERS[method](data))
		return known(data) if method == "reportProcesses" else commands(method)
	return grpc.unary_unary_rpc_method_handler(answer)


def records(stream, context):
	fault("collectProfilingData", context)
	content = [record_of(data) for data in stream]
	with lock:
		refused = state["refuse_tasks"].get(content[0]["task"]["task"])
	if refused:
		context.abort(grpc.StatusCode[refused], "not this task")
	say("collectProfilingData", context, content)
	return b""


class Handler(grpc.GenericRpcHandler):
	def service(self, handler_call_details):
		service, method = handler_call_details.method.rsplit("/", 1)
		assert service.startswith("/skywalking.v3."), service
		return grpc.stream_unary_rpc_method_handler(records) if method == "collectProfilingData" else unary(method)


serve(Handler(), state, 8, *sys.argv[1:])
