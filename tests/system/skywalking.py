# SPDX-License-Identifier: Apache-2.0
"""A double of SkyWalking's server (tests/programs/skywalking_double.py), tasks for it to give, and an agent that asks it for them."""
import hashlib
import json
import re
import signal
import time

from collectors import GrpcDouble
from harness import Background, check, fresh_folder


class Server(GrpcDouble):
	def __init__(self, port=0, *files):
		super().__init__("skywalking_double.py", port, *files)

	def process_id(self, pid):
		"""Waits until the process is reported and kept alive; returns its id, which is made of its entity."""
		def entity():
			return next((each["entity"] for call in self.of("reportProcesses") for each in call["content"]["processes"] if each["pid"] == pid), None)
		found = self.wait_for("report of process %d" % pid, entity)
		self.wait_for("keep-alive", lambda: any(each["entity"] == found for call in self.of("keepAlive") for each in call["content"]["processes"]))
		return id_of(found)

	def streams(self, task):
		"""The records of a task, by stream; the first record of each stream says what task it is."""
		return [call["content"] for call in self.of("collectProfilingData") if call["content"][0]["task"]["task"] == task]

	def records(self, task):
		"""Each record once: the server's key are the ids and the time."""
		return {(record["kernel"]["id"] if "kernel" in record else 0, record["user"]["id"] if "user" in record else 0, stream[0]["task"]["now_ms"]): record
			for stream in self.streams(task) for record in stream}.values()


def id_of(entity):
	return hashlib.sha256(json.dumps(entity).encode()).hexdigest()


def command(task, process, target="ON_CPU", seconds=5, start_in_s=0.0, **more):
	now_ms = int((time.time() + start_in_s) * 1000)
	return ["EBPFProfilingTaskQuery", {"SerialNumber": "1", "TaskId": task, "ProcessId": process, "TaskUpdateTime": str(int(time.time() * 1000)), "TriggerType": "FIXED_TIME", "TargetType": target,
		"TaskStartTime": str(now_ms), "ExtensionConfigJSON": "null", "FixedTriggerDuration": str(seconds), **more}]


def agent(server, *args, folder=None, address=None, **kwargs):
	return Background("agent", "--store", folder or fresh_folder("skywalking"), "--window", 2, "--skywalking", address or server.address, "--skywalking-heartbeat", 1, "--skywalking-check", 1, "--skywalking-flush", 1,
		*args, **kwargs)


def finish(running):
	running.send(signal.SIGTERM)
	return running.finish()


def sent(text, task):
	"""The numbers of a task's last line: sent, without a stack, lost, lost windows."""
	match = re.search(r"task %s, \w+ of process \d+: (\d+) \w+ sent; without a stack: (\d+), lost: (\d+), lost windows: (\d+)" % task, text)
	check(match, lambda: "no end of %s in: %s" % (task, text))
	return tuple(int(number) for number in match.groups())


def names(record, side):
	return record.get(side, {"names": []})["names"]
