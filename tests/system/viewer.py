# SPDX-License-Identifier: Apache-2.0
"""The HTML page in Debian's chromium: viewer_*.mjs use it as a person would and print one line per check."""
import json
import os

from foreign import made, playwright_folder, run
from harness import ROOT, alone, check, find_tool, fresh_folder, need_bpf, run_tests, skip, sonde, test

# Its source is hostile.
PROGRAM = """#include <stdlib.h>
volatile unsigned sink;
__attribute__((noinline)) static void inner(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		/* </script><img src=x onerror=alert(1)> \033[2J \001 */
		sink = sink * 3 + i; /* %s */
	}
}
int main(int nr, char **arguments)
{
	for (int i = 0; i < atoi(arguments[1]); i++)
		inner(1000000);
	return 0;
}
""" % ("x" * (1 << 20))


def page_of(which):
	return os.path.join(made(which), "profile.html")


def drive(script, *pages):
	if not os.path.exists("/usr/bin/chromium") or not find_tool("node"):
		skip("no chromium or no node")
	status, out, err = run(["node", os.path.join(ROOT, "tests", "system", script), *pages], env={**os.environ, "SONDE_NODE_PATH": playwright_folder()})
	check(status == 0, out + err)
	for line in out.splitlines():
		if line.startswith("#"):
			print(line)
	return "%d checks" % sum(line.startswith("ok") for line in out.splitlines())


@test
def what_it_shows():
	return drive("viewer_shows.mjs", *map(page_of, ("small", "empty", "diff", "waits", "wall")))


@test
def what_it_does():
	return drive("viewer_does.mjs", *map(page_of, ("small", "timed", "diff", "waits", "wall")))


def check_rows(page, annotated):
	"""The page's rows of the function are those that show --annotate prints."""
	with open(page, encoding="utf-8") as file:
		data = json.JSONDecoder().raw_decode(file.read().split('id="profile">')[1])[0]
	code = [one for one in data["code"] if data["strings"][data["frames"]["name"][one["frame"]]] == "inner"]
	check(len(code) == 1, "%d functions" % len(code))
	rows = list(zip(code[0]["kind"], code[0]["number"], code[0]["self"], code[0]["text"]))
	ours = ["%s  %s" % ("%x" % number if kind == "instruction" else number, text) for kind, number, _, text in rows if kind in ("line", "instruction")]
	theirs = [line[20:].strip() for line in annotated.splitlines() if line[:20].strip(" 0123456789.%") == "" and "  " in line[20:].strip()]
	check(len(ours) > 10 and [line.strip() for line in ours] == [line for line in theirs if "..." not in line], "%s\n%s" % ("\n".join(ours), annotated))
	for kind in ("line", "instruction"):
		check(sum(row[2] for row in rows if row[0] == kind) == code[0]["all"], "%s: the sum is not the function's" % kind)


def source_pages():
	"""Records a program. Returns pages with its source, without its files, and with a source that only its owner may read."""
	need_bpf()
	folder = fresh_folder("source")
	program, source, pages = [os.path.join(folder, name) for name in ("program", "program.c", "pages")]
	os.mkdir(pages)
	with open(source, "w", encoding="utf-8") as file:
		file.write(PROGRAM)
	check(run(["gcc", "-g", "-O1", source, "-o", program])[0] == 0, "gcc")
	direct, again, missing, secret = [os.path.join(pages, name) for name in ("direct.html", "again.html", "missing.html", "secret.html")]
	profile = os.path.join(pages, "profile.pb.gz")
	sonde("profile", "-F", "199", "--source", "3", "-o", direct, "-o", profile, "--", program, "300", want=0)
	sonde("convert", "--source", "3", profile, again, want=0)
	check_rows(again, sonde("show", "--annotate", "inner", profile, want=0).out)
	os.chmod(source, 0o600)
	if os.getuid() == 0: # whose own files are not everybody's either
		sonde("convert", "--source", "3", profile, secret, want=0)
	for path in (program, source):
		os.rename(path, path + ".gone")
	sonde("convert", "--source", "3", profile, missing, want=0)
	return direct, again, missing, secret


@test
def what_it_reads():
	if os.getuid() != 0:
		skip("root alone has files that it may not show")
	direct, again, missing, secret = source_pages()
	made_up = [page_of("threads"), page_of("diff")]
	with open(missing, encoding="utf-8") as file:
		check("onerror" not in file.read(), "a page has the source of a file that is not here")
	return "%s; of another format %s" % tuple(drive("viewer_reads.mjs", first, missing, secret, *made_up) for first in (direct, again))


@test
@alone
def how_smooth_it_is():
	return drive("viewer_smooth.mjs", page_of("huge"))


if __name__ == "__main__":
	run_tests(seconds=400) # playwright is fetched at the first run
