#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# static_library.sh OBJCOPY AR INPUT.a OUTPUT.a CC...: links the code into one object that exports only the names of include/sonde, so that no other name of ours collides with a name of the program.
set -eu
objcopy=$1
ar=$2
input=$3
output=$4
shift 4
trap 'rm -f "$output.o"' EXIT
"$@" -r -nostdlib -Wl,--whole-archive -o "$output.o" "$input"
"$objcopy" --localize-hidden "$output.o"
rm -f "$output"
"$ar" rcsD "$output" "$output.o"
