/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_list: the runtimes, one line each: docs/internals/adding-a-runtime.md. Everything else follows from this list and from the names
 * of folders and files: the numbers, BPF objects, kinds of frames, their names in the formats, and what is built. bpf/meson.build and
 * tools/runtimes_list.py read it too, so each entry begins on a line of its own and has constants only.
 *
 *   X        an interpreter: its runs of frames are placed at the native frames of its loop (enum frame_kind, FRAME_id)
 *   OWNER    a runtime that owns code whose frames are on the native stack: its step is part of the walk. Otherwise as X
 *   LABELS   no frames of its own: native ones only (Go), or no language at all (OpenTelemetry's thread context). Its program sends the
 *            labels of the thread's work. Has only id and name
 *
 *   id       SONDE_RUNTIME_id. Append only: the order gives the numbers
 *   name     of src/runtime/NAME/, struct runtime runtime_NAME, bpf/NAME.bpf.c, and of the kind of frame in our JSON
 *   shown    the name shown to people
 *   otlp     OpenTelemetry's profile.frame.type
 *   files    names of its source files, for inputs without kinds of frames: "*END", "BEGIN*" (* is at least one letter) or the whole name,
 *            separated by spaces
 *   firefox  one of the Firefox Profiler's colours
 *   svg      lowest red, green and blue, each with how far it varies with the function's name
 *   page     hue, saturation and lightness in the light theme and in the dark theme, then how far hue and lightness vary */
#pragma once

/*	  id      name    shown     otlp       files                              firefox   svg                          page */
#define SONDE_RUNTIME_LIST(X, OWNER, LABELS) \
	X(PYTHON, python, "Python", "cpython", "*.py <frozen* <string> <stdin>", "green", (90, 50, 180, 45, 80, 40), \
	  (120, 42, 72, 130, 30, 32, 10, 4)) \
	X(PHP, php, "PHP", "php", "*.php", "purple", (180, 30, 130, 40, 210, 35), (265, 60, 83, 265, 34, 42, 8, 4)) \
	X(PERL, perl, "Perl", "perl", "*.pl *.pm", "blue", (40, 50, 175, 40, 170, 40), (178, 46, 70, 180, 40, 30, 8, 4)) \
	LABELS(GO, go) \
	OWNER(JAVA, java, "Java", "jvm", "*.java", "orange", (200, 50, 90, 40, 20, 30), (30, 75, 72, 30, 45, 34, 8, 4)) \
	OWNER(V8, v8, "JavaScript", "v8js", "*.js *.mjs *.cjs *.ts node:*", "yellow", (200, 40, 190, 40, 60, 40), \
	  (55, 80, 68, 55, 45, 30, 8, 4)) \
	X(RUBY, ruby, "Ruby", "ruby", "*.rb *.rake *.gemspec <internal:*", "red", (190, 45, 60, 30, 110, 30), \
	  (340, 62, 80, 340, 34, 40, 8, 4)) \
	OWNER(BEAM, beam, "Erlang", "beam", "*.erl *.ex *.exs *.hrl", "magenta", (190, 45, 50, 30, 150, 30), \
	  (310, 55, 80, 310, 32, 42, 8, 4)) \
	LABELS(OTEL, otel) \
	OWNER(LUAJIT, luajit, "LuaJIT", "luajit", "*.lua", "lightblue", (60, 50, 130, 40, 190, 45), \
	  (222, 60, 80, 222, 34, 46, 8, 4))

#define SONDE_NO_RUNTIME(...) /* instead of X, OWNER or LABELS: leaves those out */

/* The owner that may know where the stack goes on above native frames whose callers are not found. */
#define SONDE_RUNTIME_BRIDGE SONDE_RUNTIME_JAVA
