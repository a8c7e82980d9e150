// SPDX-License-Identifier: Apache-2.0
/* go: Go's frames are native (pclntab/go_pclntab.h); only the labels of runtime/pprof are read from its runtime. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/go.h"
#include "runtime/go/go_offsets.h"
#include "runtime/runtime.h"

#define GO_OLDEST 16 /* 1.16: older versions have another .gopclntab */
#define GO_LIST 24   /* 1.24: labels are a sorted list; before, a map */
#define GO_NEWEST 27
#define GO_MAX_OFF 65535u /* in structs m and g, which have about 450 bytes */

static bool is_known(const struct go_version *version)
{
	return version->major == 1 && version->minor >= GO_OLDEST && version->minor <= GO_NEWEST;
}

static void set_go(struct runtime_image *image, const struct go_version *version, const struct go_label_offsets *offsets)
{
	struct sonde_go *go = RUNTIME_OWN(struct sonde_go, image->known);

	image->is_supported = 1;
	go->process.root.kind = SONDE_TLS_STATIC;
	go->process.root.off = offsets->tls_off;
	go->m_curg = offsets->m_curg;
	go->g_labels = offsets->g_labels;
	go->labels = version->minor < GO_LIST ? SONDE_GO_LABELS_MAP : SONDE_GO_LABELS_LIST;
}

static uint8_t byte_of(uint32_t number)
{
	return number > UINT8_MAX ? 0 : (uint8_t)number;
}

static int examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	CLEANUP(go_pclntab_freep) struct go_pclntab *table = NULL;
	struct runtime_image image = { .runtime = SONDE_RUNTIME_GO };
	struct go_label_offsets offsets;
	struct go_version version;
	int err;

	if (go_version_read(elf, &version))
		return -ENOENT;
	image.version[0] = byte_of(version.major);
	image.version[1] = byte_of(version.minor);
	image.version[2] = byte_of(version.patch);
	err = go_pclntab_read(elf, NULL, &table);
	if (err == -ENOMEM)
		return err;
	if (err) {
		snprintf(image.reason, sizeof(image.reason), "labels of %s: its table of functions is not readable", version.text);
	} else {
		err = go_label_offsets_read(elf, table, &offsets);
		if (err == -ENOENT) /* the program has no labels */
			return err;
		if (err)
			snprintf(image.reason, sizeof(image.reason), "labels of %s: unknown code sets them", version.text);
		else if (!is_known(&version))
			snprintf(image.reason, sizeof(image.reason), "labels of %.*s: known are Go 1.%d to 1.%d", GO_VERSION_BYTES,
				 version.text[0] ? version.text : "an unknown Go", GO_OLDEST, GO_NEWEST);
		else
			set_go(&image, &version, &offsets);
	}
	*ret_image = image;
	return 0;
}

static bool is_sound(const struct runtime_image *image)
{
	const struct go_version version = { .major = image->version[0], .minor = image->version[1] };
	const struct sonde_go *go = RUNTIME_OWN(const struct sonde_go, image->known);
	struct runtime_image made = { 0 };

	if (!is_known(&version) || go->m_curg > GO_MAX_OFF || go->g_labels > GO_MAX_OFF ||
	    go->process.root.off != (int32_t)go->process.root.off)
		return false;
	set_go(&made, &version,
	       &(struct go_label_offsets){ .tls_off = (int32_t)go->process.root.off, .m_curg = go->m_curg, .g_labels = go->g_labels });
	return !memcmp(go, &made.known, sizeof(*go));
}

static int place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc, const struct runtime_memory *memory,
		 struct diag *diag, void *ret_process)
{
	if (!image->is_supported)
		return diag_errno(diag, EOPNOTSUPP, "%s", image->reason);
	memcpy(ret_process, &image->known, sizeof(struct sonde_go)); /* all offsets are relative to the thread pointer or to a struct */
	return 0;
}

const struct runtime runtime_go = {
	.examine = examine,
	.is_sound = is_sound,
	.place = place,
	.own_heap = "Go's own heap does not use malloc, so only its C code is seen; net/http/pprof has a heap profile",
	.tracer = "labels",
	.layout = "its own table of functions (.gopclntab), and what its runtime's code shows",
};
