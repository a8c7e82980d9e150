# SPDX-License-Identifier: Apache-2.0
"""The files that the style tests look at."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read_tree():
	"""What is in git or untracked and not ignored: {path: text}. Without git: every file outside build directories."""
	listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
		stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
	paths = listed.stdout.decode().split("\0") if listed.returncode == 0 else [
		os.path.relpath(os.path.join(folder, name), ROOT)
		for folder, _, names in os.walk(ROOT) for name in names if not re.search(r"/(build[^/]*|\.git)(/|$)", folder)]
	tree = {}
	for path in filter(None, paths):
		try:
			with open(os.path.join(ROOT, path), encoding="utf-8") as file:
				tree[path] = file.read()
		except UnicodeDecodeError:
			tree[path] = "" # a picture, a binary test input
		except (FileNotFoundError, IsADirectoryError):
			pass # a file just removed
	return tree
