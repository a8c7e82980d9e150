# SPDX-License-Identifier: Apache-2.0
"""What the doubles of servers have in common that are made with gRPC's own library (Debian: python3-grpcio)."""
import json
import sys
import threading
from concurrent import futures

import grpc # pylint: disable=import-error

lock = threading.Lock() # for the state, and for whole lines on stdout


def serve(handler, state, nr_threads, port, *files):
	"""Prints "listening PORT". Lines on stdin are JSON objects that go into the state. `files`: certificate and key; none: without TLS."""
	server = grpc.server(futures.ThreadPoolExecutor(nr_threads), handlers=[handler], options=[("grpc.so_reuseport", 0)])
	address = "127.0.0.1:" + port
	if files:
		with open(files[0], "rb") as certificate, open(files[1], "rb") as key:
			number = server.add_secure_port(address, grpc.ssl_server_credentials([(key.read(), certificate.read())]))
	else:
		number = server.add_insecure_port(address)
	server.start()
	print("listening %d" % number, flush=True)
	for line in sys.stdin:
		with lock:
			state.update(json.loads(line))
