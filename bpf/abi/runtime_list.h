/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The runtimes, one line each: docs/internals/adding-a-runtime.md. All else follows from this list and from the names of folders and files:
 * the numbers, BPF objects and kinds of
 * frames, what formats call them, and what is built. bpf/meson.build and tools/runtimes_list.py read it, too, so each
 * begins on a line of its own, of constants alone.
 *
 *   X        one whose frames stand among the native ones (enum frame_kind, FRAME_id)
 *   LABELS   one whose frames are native; its program tells what the thread's work is labelled with. Has id and name alone
 *
 *   id       SONDE_RUNTIME_id. The list grows at its end: its order gives the numbers
 *   name     of src/runtime/NAME/, struct runtime runtime_NAME, bpf/NAME.bpf.c, and of the kind of frame in our JSON
 *   shown    where people read it
 *   otlp     OpenTelemetry's profile.frame.type
 *   files    what its sources are called, where a file that is read has no kinds of frames: "*END", "BEGIN*" (* is a letter at least) or
 *            the whole name, between spaces
 *   firefox  one of the Firefox Profiler's colours
 *   svg      red, green and blue where they are least, each with how far it varies with the function's name
 *   page     hue, saturation and lightness when light and when dark, how far hue and lightness vary
 */
#pragma once

/*	  id      name    shown     otlp       files                              firefox   svg                          page */
#define SONDE_RUNTIME_LIST(X, LABELS) \
	X(PYTHON, python, "Python", "cpython", "*.py <frozen* <string> <stdin>", "green", (90, 50, 180, 45, 80, 40), \
	  (120, 42, 72, 130, 30, 32, 10, 4)) \
	X(PHP, php, "PHP", "php", "*.php", "purple", (180, 30, 130, 40, 210, 35), (265, 60, 83, 265, 34, 42, 8, 4)) \
	X(PERL, perl, "Perl", "perl", "*.pl *.pm", "blue", (40, 50, 175, 40, 170, 40), (178, 46, 70, 180, 40, 30, 8, 4)) \
	LABELS(GO, go)

#define SONDE_NO_RUNTIME(...) /* instead of X or LABELS: those are left out */
