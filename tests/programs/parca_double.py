#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""parca_double.py PORT: as much of Parca's server as takes profiles, by gRPC's own library (Debian: python3-grpcio). Prints "listening PORT", then a JSON object for each request that it
took: labels, and the pprof in base64. Lines on stdin are JSON objects: {"refuse": [CODE, ...]}: the next calls end so."""
import base64
import json
import sys

import grpc # pylint: disable=import-error
from grpc_double import lock, serve

state = {"refuse": []}


def fields(data):
	"""(number, bytes) of each field; those of a WriteRawRequest that are used are all of bytes."""
	at = 0
	while at < len(data):
		assert data[at] & 7 == 2, "type of a field"
		number, at, size, shift = data[at] >> 3, at + 1, 0, 0
		while True:
			size |= (data[at] & 127) << shift
			shift, at = shift + 7, at + 1
			if data[at - 1] < 128:
				break
		yield number, data[at:at + size]
		assert at + size <= len(data)
		at += size


def write_raw(data, context):
	with lock:
		code = state["refuse"].pop(0) if state["refuse"] else None
	if code:
		context.abort(grpc.StatusCode[code], "it is " + code)
	((number, series),) = fields(data)
	(labels, samples) = fields(series)
	((_, profile),) = fields(samples[1])
	assert (number, labels[0], samples[0]) == (2, 1, 2)
	pairs = [dict(fields(label)) for _, label in fields(labels[1])]
	with lock:
		print(json.dumps({"method": "WriteRaw", "labels": [[pair[1].decode(), pair[2].decode()] for pair in pairs], "profile": base64.b64encode(profile).decode(),
			"metadata": dict(context.invocation_metadata())}), flush=True)
	return b""


class Handler(grpc.GenericRpcHandler):
	def service(self, handler_call_details):
		return grpc.unary_unary_rpc_method_handler(write_raw) if handler_call_details.method == "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw" else None


serve(Handler(), state, 4, sys.argv[1])
