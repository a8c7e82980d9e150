#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""otlp_double.py PORT FOLDER: an OTLP receiver for profiles by gRPC's own library (Debian: python3-grpcio), with that library's limit of a message, 4 MiB. Prints "listening PORT", then a JSON
object for each request that it saw: its time, the code of the answer, and the file in FOLDER that has the message. Lines on stdin are JSON objects: {"answers": [...]}: the next calls end so:
"OK", a code, [code, seconds], which has a google.rpc.RetryInfo, or a number: that many profiles are rejected."""
import json
import os
import sys
import time

import grpc # pylint: disable=import-error
from google.protobuf import any_pb2, duration_pb2 # pylint: disable=import-error
from grpc_double import lock, serve

METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
state = {"answers": []}


def message(*fields):
	"""Fields of bytes, by number, each shorter than 128."""
	return b"".join(bytes([number << 3 | 2, len(data)]) + data for number, data in fields)


def retry_info(seconds):
	delay = duration_pb2.Duration()
	delay.FromMilliseconds(int(seconds * 1000))
	other = any_pb2.Any(type_url="type.googleapis.com/google.rpc.DebugInfo", value=b"x")
	info = any_pb2.Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=message((1, delay.SerializeToString())))
	return message((2, b"later"), (3, other.SerializeToString()), (3, info.SerializeToString()))


def export(data, context):
	with lock:
		answer = state["answers"].pop(0) if state["answers"] else "OK"
		number = state["number"] = state.get("number", 0) + 1
		path = os.path.join(sys.argv[2], "message-%03d" % number)
		with open(path, "wb") as file:
			file.write(data)
		print(json.dumps({"method": "Export", "time": time.time(), "answer": answer, "path": path, "metadata": dict(context.invocation_metadata())}), flush=True)
	if isinstance(answer, int):
		return message((1, bytes([8, answer]) + message((2, b"not these"))))
	code, *seconds = answer if isinstance(answer, list) else [answer]
	if seconds:
		context.set_trailing_metadata([("grpc-status-details-bin", retry_info(seconds[0]))])
	if code != "OK":
		context.abort(grpc.StatusCode[code], "it is " + code)
	return b""


class Handler(grpc.GenericRpcHandler):
	def service(self, handler_call_details):
		return grpc.unary_unary_rpc_method_handler(export) if handler_call_details.method == METHOD else None


serve(Handler(), state, 4, sys.argv[1])
