#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh FUZZER SEEDS: runs a libFuzzer program over its seeds for SONDE_FUZZ_SECONDS (3). New inputs are left in
# FUZZER.corpus, one that fails is named in the output.
set -eu
corpus=$1.corpus
mkdir -p "$corpus"
set -- "$1" "$corpus" ${2:+"$2"}
program=$1
shift
exec "$program" -max_total_time="${SONDE_FUZZ_SECONDS:-3}" -seed=1 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
	-artifact_prefix="$program." "$@"
