#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --symbols address: code in files leaves as build id and address alone; whoever has the file finds the same functions in it that the agent finds. Read by opentelemetry-proto's own classes."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import HttpCollector # noqa: E402
from foreign import python_packages # noqa: E402
from harness import Background, Program, build, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run, run_tests, sonde, test # noqa: E402

SECONDS = 4


class Functions:
	"""Of a file, by nm; and where its segments are, by readelf."""

	def __init__(self, path):
		self.symbols = sorted((int(addr, 16), name) for addr, name in re.findall(r"^([0-9a-f]+) [tT] (\S+)$", run(["nm", path]).out, re.M))
		self.segments = [tuple(int(number, 16) for number in row) for row in re.findall(r"^ +LOAD +(\S+) +(\S+) +\S+ +(\S+)", run(["readelf", "-lW", path]).out, re.M)]
		self.build_id = re.search(r"Build ID: (\S+)", run(["readelf", "-n", path]).out).group(1)

	def name(self, file_off):
		vaddr = next(file_off - off + addr for off, addr, size in self.segments if off <= file_off < off + size)
		return [name for addr, name in self.symbols if addr <= vaddr][-1]


def attributes(tables, indices):
	return {tables.string_table[tables.attribute_table[i].key_strindex]: tables.attribute_table[i].value.string_value for i in indices}


def recorded(pid, *options):
	"""(messages, folder) of an agent beside the program."""
	from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 # pylint: disable=import-outside-toplevel
	folder = fresh_folder("store-" + "-".join(options))
	with HttpCollector() as collector, Background("agent", "--store", folder, "--window", 1, "-F", 97, *options, "--otlp", "http://" + collector.address, SECONDS) as running:
		running.finish()
	requests = []
	for message in dict.fromkeys(message for _, message in collector.taken):
		requests.append(profiles_service_pb2.ExportProfilesServiceRequest())
		requests[-1].ParseFromString(message)
	check(requests and pid, "nothing arrived")
	return requests, folder


def profiles_of(request):
	return [profile for resource in request.resource_profiles for scope in resource.scope_profiles for profile in scope.profiles]


def chains(requests, path, functions):
	"""Samples by the names of the file's functions in their stacks, leaf first."""
	found = collections.Counter()
	for request in requests:
		tables = request.dictionary
		for profile in profiles_of(request):
			for sample in profile.samples:
				names = []
				for is_caller, place in enumerate(tables.location_table[n] for n in tables.stack_table[sample.stack_index].location_indices):
					mapping = tables.mapping_table[place.mapping_index]
					if tables.string_table[mapping.filename_strindex] != path:
						continue
					check_equal(attributes(tables, mapping.attribute_indices).get("process.executable.build_id.gnu"), functions.build_id, "build id")
					names.append(functions.name(place.address - bool(is_caller) - mapping.memory_start + mapping.file_offset))
				if names:
					found[tuple(names)] += len(sample.timestamps_unix_nano) or sum(sample.values)
	return found


def nr_arrived(requests):
	return sum(sum(sample.values) for request in requests for profile in profiles_of(request) for sample in profile.samples)


def named_places(requests):
	"""Names of functions of native code in files."""
	names = set()
	for request in requests:
		tables = request.dictionary
		for place in tables.location_table:
			if place.mapping_index and attributes(tables, place.attribute_indices).get("profile.frame.type") == "native":
				names |= {tables.string_table[tables.function_table[line.function_index].name_strindex] for line in place.lines}
	return names


@test
def addresses_arrive_alone():
	need_bpf()
	python_packages()
	path = os.path.realpath(build("chain"))
	functions = Functions(path)
	with Program("chain", 12) as program:
		by_address, folder = recorded(program.pid, "--symbols", "address")
		by_name, other = recorded(program.pid)
	check_equal((nr_arrived(by_address), nr_arrived(by_name)), (nr_samples(converted(folder)), nr_samples(converted(other))), "samples that arrived, and stored ones, by address and by name")
	check_equal(named_places(by_address), set(), "names of native code")
	check({"leaf", "f3", "main"} <= named_places(by_name), lambda: str(named_places(by_name)))
	found, known = chains(by_address, path, functions), chains(by_name, path, functions)
	check_equal(found.most_common(1)[0][0], known.most_common(1)[0][0], "the commonest stack")
	check("leaf" in found.most_common(1)[0][0] and len(found.most_common(1)[0][0]) >= 14, lambda: str(found))
	check(sum(found.values()) > 50, lambda: str(found))
	kernel = {frame["kind"] for frame in converted(folder)["frames"]}
	check("native" in kernel and all(frame.get("nameless") for frame in converted(folder)["frames"] if frame["kind"] == "native" and frame["mapping"] is not None), "frames of the store say that their names are left to the reader")


@test
def words():
	check("symbols is names or address, not 'both'" in sonde("agent", "--symbols", "both", "--print-config", want=2).err, "a wrong word")
	check("symbols: address" in sonde("agent", "--symbols", "address", "--print-config", want=0).out.replace("'", ""), "the setting")


run_tests()
