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
case $program in
*fuzz_import_*|*fuzz_perf_data) memory=512 ;; # of profiles: what they grow to is bounded by their size
*) memory=1024 ;;
esac
exec "$program" -max_total_time="${SONDE_FUZZ_SECONDS:-3}" -seed=1 -timeout=10 -rss_limit_mb="$memory" -print_final_stats=1 \
	-artifact_prefix="$program." "$@"
