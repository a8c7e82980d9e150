// SPDX-License-Identifier: Apache-2.0
/* otel: the contexts that threads publish by OpenTelemetry's OTEP 4947 "Thread Context". It is no language: a program of any language loads
 * a library that has the variable. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/otel.h"
#include "runtime/runtime.h"
#include "runtime/tls_access.h"

#define VARIABLE "otel_thread_ctx_v1"

static int examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image = { .runtime = SONDE_RUNTIME_OTEL };
	struct sonde_otel *otel = RUNTIME_OWN(struct sonde_otel, image.known);
	int err = tls_access_symbol(elf, VARIABLE, &otel->process.root);

	if (err == -ENOENT || err == -ENOMEM)
		return err;
	if (err)
		snprintf(image.reason, sizeof(image.reason), "no code of the file that has " VARIABLE " reaches it");
	image.is_supported = !err;
	*ret_image = image;
	return 0;
}

static bool is_sound(const struct runtime_image *image)
{
	const struct sonde_otel *otel = RUNTIME_OWN(const struct sonde_otel, image->known);

	return otel->process.root.kind == SONDE_TLS_STATIC || otel->process.root.kind == SONDE_TLS_OFFSET ||
	       otel->process.root.kind == SONDE_TLS_MODULE;
}

static int place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc, const struct runtime_memory *memory,
		 struct diag *diag, void *ret_process)
{
	const struct sonde_otel *known = RUNTIME_OWN(const struct sonde_otel, image->known);
	struct sonde_otel otel = { .process.load_bias = load_bias };

	if (tls_access_place(&known->process.root, load_bias, libc, &otel.process.root))
		return diag_errno(diag, EOPNOTSUPP, "the thread's variables of its C library are not known");
	memcpy(ret_process, &otel, sizeof(otel));
	return 0;
}

const struct runtime runtime_otel = {
	.examine = examine,
	.is_sound = is_sound,
	.place = place,
	.called = "thread context",
	.layout = "OpenTelemetry's specification: a variable of the thread, " VARIABLE,
};
