#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# static_library.sh OBJCOPY AR INPUT.a OUTPUT.a CC...: the same code as one object, of which only include/sonde is to be seen, so that no name of ours meets one of a program's.
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
