#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --clickhouse and ClickHouse itself, in a process (chdb from PyPI, kept in ~/.cache/sonde-tests): its tables are packaging/clickhouse.sql's, and have what the store has, also
when windows are delivered twice. The queries are those of docs/internals/agent.md."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from collectors import HttpCollector # noqa: E402
from harness import ROOT, Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run, run_tests, scratch, skip, test # noqa: E402

PLACE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde-tests", "chdb")
ASK = """import json, sys
from chdb import session
with open(sys.argv[2]) as file:
	steps = json.load(file)
data = session.Session(sys.argv[1])
for step in steps:
	print(json.dumps(str(data.query(step, "JSONEachRow"))))
"""


def clickhouse():
	"""The interpreter that has it."""
	python = os.path.join(PLACE, "bin", "python3")
	if not os.path.exists(os.path.join(PLACE, "whole")):
		made = run([sys.executable, "-m", "venv", PLACE], timeout=120)
		fetched = run([python, "-m", "pip", "install", "-q", "chdb"], timeout=900) if made.code == 0 else made
		if fetched.code:
			skip("pip does not give chdb: %s" % fetched.err[-200:])
		with open(os.path.join(PLACE, "whole"), "w", encoding="ascii"):
			pass
	return python


def ask(data, steps):
	"""Runs the statements; returns the rows of each."""
	path = scratch("steps.json")
	with open(path, "w", encoding="utf-8") as file:
		json.dump(steps, file)
	done = subprocess.run([clickhouse(), "-c", ASK, data, path], capture_output=True, text=True, check=False, timeout=300)
	check(done.returncode == 0, lambda: done.stderr[-1500:])
	return [[json.loads(row) for row in json.loads(line).splitlines()] for line in done.stdout.splitlines()]


def tables():
	"""The statements that make them."""
	with open(os.path.join(ROOT, "packaging", "clickhouse.sql"), encoding="utf-8") as file:
		return [step for step in re.sub(r"--[^\n]*", "", file.read()).split(";") if step.strip()]


def documented_queries():
	with open(os.path.join(ROOT, "docs", "internals", "agent.md"), encoding="utf-8") as file:
		return re.findall(r"```sql\n(.*?)```", file.read(), re.DOTALL)


@test
def tables_have_what_the_store_has():
	need_bpf()
	clickhouse()
	folder, data = fresh_folder("store"), fresh_folder("clickhouse")
	with HttpCollector() as server, Program("chain"):
		with Background("agent", "--store", folder, "--window", 1, "-F", 97, "--env", "HOME", "--clickhouse", "http://%s" % server.address, 6) as running:
			result = running.finish()
	report = converted(folder)
	inserts = ["INSERT INTO sonde.lines FORMAT LineAsString\n" + message.decode() for _, message in server.taken]
	check(len(inserts) >= 4, lambda: str(result))
	sums = "SELECT toInt64(sum(value)) AS samples, toInt64(uniqExact(stack)) AS stacks FROM sonde.samples FINAL"
	missing = "SELECT toInt64(count()) AS nr FROM sonde.samples FINAL WHERE stack NOT IN (SELECT hash FROM sonde.stacks)"
	labels = "SELECT toInt64(count()) AS nr FROM sonde.samples FINAL WHERE labels['service.name'] = 'chain'"
	leaf = "SELECT toInt64(sum(value)) AS samples FROM sonde.samples FINAL INNER JOIN (SELECT * FROM sonde.stacks FINAL) AS s ON s.hash = stack WHERE comm = 'chain' AND s.names[1] = 'leaf'"
	made = tables()
	answers = ask(data, made + inserts + [sums] + inserts + [sums, missing, labels, leaf] + documented_queries())
	once, twice, missing_rows, label_rows, leaf_rows = answers[len(made) + len(inserts)], *answers[len(made) + 2 * len(inserts) + 1:len(made) + 2 * len(inserts) + 5]
	check_equal(int(once[0]["samples"]), nr_samples(report), "samples in the table, and stored ones")
	check_equal(twice, once, "sums after all came twice, and before")
	check_equal(int(missing_rows[0]["nr"]), 0, "samples without their stack")
	check(int(label_rows[0]["nr"]) > 0 and int(leaf_rows[0]["samples"]) > 100, lambda: "labels %s, leaf %s" % (label_rows, leaf_rows))
	queries = answers[len(made) + 2 * len(inserts) + 5:]
	check(len(queries) == 3 and queries[0] and queries[1], lambda: str(queries))
	check(queries[0][0]["function"] == "leaf", lambda: str(queries[0][:3]))
	return "%d samples, %d stacks" % (nr_samples(report), int(once[0]["stacks"]))


if __name__ == "__main__":
	run_tests(seconds=900)
