/* SPDX-License-Identifier: Apache-2.0 */
/* go_offsets: what a Go program's file tells of the version it was built by and of where its runtime keeps a goroutine's labels. The
 * offsets are read in the program's own code, so they are right for every version whose code is understood. Formats: Go's
 * src/debug/buildinfo, src/runtime/proflabel.go. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "pclntab/go_pclntab.h"

#define GO_VERSION_BYTES 64

struct go_version {
	uint32_t major, minor, patch; /* all 0: `text` names no release */
	char text[GO_VERSION_BYTES];  /* "go1.22.12", "devel go1.28-0123456"; cut there; "": not known */
};

/* 0; -ENOENT: the file is not Go's. */
MUST_CHECK int go_version_read(const struct elf_file *elf, struct go_version *ret_version);
/* "go1.22", "go1.22.3 X:boringcrypto" and "devel go1.23-0123456" have numbers, others not. */
void go_version_parse(struct go_version *version);

struct go_label_offsets {
	int32_t tls_off;   /* g is at the thread pointer + this */
	uint32_t m_curg, g_labels;
};

/* 0; -ENOENT: the program has nothing that sets labels (it does not use runtime/pprof); -EOPNOTSUPP: its code is none that is known. */
MUST_CHECK int go_label_offsets_read(const struct elf_file *elf, const struct go_pclntab *table, struct go_label_offsets *ret_offsets);
/* Of the code of runtime/pprof.runtime_setProfLabel: where it writes to in g. 0: not understood. */
uint32_t go_labels_written(const uint8_t *code, uint32_t nr);
