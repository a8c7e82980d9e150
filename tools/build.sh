#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh [--again] [--for WHAT] DIRECTORY [MESON OPTION...]: sets the build directory up once (or again, when packages may have come since) and builds, all or
# what tests/targets.py knows by these words; one line on stderr when it takes a while, the whole log when it fails.
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
