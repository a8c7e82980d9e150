/* SPDX-License-Identifier: Apache-2.0 */
/* go_offsets: the Go version of a program's file, and where its runtime keeps a goroutine's labels. The offsets are read from the program's
 * own code, so they are right for every version whose code is understood. Formats: Go's src/debug/buildinfo, src/runtime/proflabel.go. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "pclntab/go_pclntab.h"

#define GO_VERSION_BYTES 64

struct go_version {
	uint32_t major, minor, patch; /* all 0: `text` is not a release */
	char text[GO_VERSION_BYTES];  /* "go1.22.12", "devel go1.28-0123456"; cut to this size; "": not known */
};

/* 0; -ENOENT: the file is not a Go program. */
MUST_CHECK int go_version_read(const struct elf_file *elf, struct go_version *ret_version);
/* Parses `text`. "go1.22", "go1.22.3 X:boringcrypto" and "devel go1.23-0123456" have version numbers, other texts do not. */
void go_version_parse(struct go_version *version);

struct go_label_offsets {
	int32_t tls_off;   /* g is at the thread pointer + this */
	uint32_t m_curg, g_labels;
};

/* 0; -ENOENT: the program has no code that sets labels (it does not use runtime/pprof); -EOPNOTSUPP: its code is not known. */
MUST_CHECK int go_label_offsets_read(const struct elf_file *elf, const struct go_pclntab *table, struct go_label_offsets *ret_offsets);
/* Returns the offset in g that the code of runtime/pprof.runtime_setProfLabel writes to. 0: not understood. */
uint32_t go_labels_written(const uint8_t *code, uint32_t nr);
