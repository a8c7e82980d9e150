#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh [--again] [--for WHAT] DIRECTORY [MESON OPTION...]: sets up the build directory once (--again: once more, for packages installed since)
# and builds all, or the targets that tests/targets.py lists for these words. Prints one line on stderr when it takes a while, warnings, and the whole log when it fails.
set -eu
again=
wanted=
[ "$1" != --again ] || { again=--reconfigure; shift; }
[ "$1" != --for ] || { wanted=$2; shift 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
directory=$1
shift

build() {
	if [ ! -f "$directory/build.ninja" ]; then
		meson setup "$directory" "$source" "$@"
	elif [ -n "$again" ]; then
		meson setup --reconfigure "$directory" "$source" "$@"
	fi
	# shellcheck disable=SC2046,SC2086
	ninja -C "$directory" ${wanted:+$(python3 "$source/tests/targets.py" "$directory" $wanted)}
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
first=$([ -f "$directory/build.ninja" ] || echo yes)
[ -z "$first" ] || printf 'building %s ... ' "${directory##*/}" >&2
if ! build "$@" >"$log" 2>&1; then
	echo 'the build failed:' >&2
	cat "$log" >&2
	exit 1
fi
[ -z "$first" ] || echo done >&2
! grep -q 'src/.*: warning: ' "$log" || grep -A 3 'src/.*: warning: ' "$log" >&2
