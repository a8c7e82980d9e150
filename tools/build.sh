#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh DIRECTORY [MESON OPTION...]: sets the build directory up once and builds; one line on stderr when it takes a while, the
# whole log when it fails.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
directory=$1
shift

build() {
	[ -f "$directory/build.ninja" ] || meson setup "$directory" "$source" "$@"
	ninja -C "$directory"
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
