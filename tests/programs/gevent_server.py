# SPDX-License-Identifier: Apache-2.0
"""A server and its clients by gevent in one thread, over real sockets, for ever. Prints a line of JSON as greenlets.py does, of the functions that spin, as the interpreter itself tells their stacks; other
stacks are gevent's."""
import ctypes
import functools
import json
import os
import sys

import gevent
from gevent import socket
from gevent.server import StreamServer

SYS_GETTID = {"x86_64": 186, "aarch64": 178}[os.uname().machine]
ROUNDS = 200
libc = ctypes.CDLL(None)
stacks = set()
nr_answers = 0


def tell(frame):
	stack = []
	while frame:
		stack.append(frame.f_code.co_name)
		frame = frame.f_back
	stacks.add(tuple(reversed(stack)))


def spin_handler():
	if nr_answers < ROUNDS:
		tell(sys._getframe())
	count = 0
	while count < 5000:
		count += 1


def spin_client():
	if nr_answers < ROUNDS:
		tell(sys._getframe())
	count = 0
	while count < 5000:
		count += 1


def spin_main():
	if nr_answers < ROUNDS:
		tell(sys._getframe())
	count = 0
	while count < 5000:
		count += 1


def key_of_handler(item):
	spin_handler()
	return item


def answer(line):
	return sorted([line], key=key_of_handler)[0]


def handle(connection, _):
	with connection.makefile("rwb") as file:
		for line in file:
			file.write(answer(line))
			file.flush()


def add_of_client(left, right):
	spin_client()
	gevent.sleep(0)
	return left + right


def client(address):
	global nr_answers
	connection = socket.create_connection(address)
	with connection.makefile("rwb") as file:
		while True:
			file.write(b"%d\n" % functools.reduce(add_of_client, [1, 2]))
			file.flush()
			file.readline()
			nr_answers += 1


def main():
	server = StreamServer(("127.0.0.1", 0), handle)
	server.start()
	for _ in range(4):
		gevent.spawn(client, server.address)
	is_told = False
	while True:
		spin_main()
		gevent.sleep(0.001)
		if nr_answers >= ROUNDS and not is_told:
			is_told = True
			through_c = {"spin_main": False, "spin_client": False, "spin_handler": False, "key_of_handler": True, "add_of_client": True, "answer": False}
			print(json.dumps({"tid": libc.syscall(SYS_GETTID), "stacks": sorted(stacks), "through_c": through_c}), flush=True)


main()
