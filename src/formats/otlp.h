/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: what the two halves of the writer share. otlp.c writes resources, profiles and samples, otlp_dictionary.c the tables that they
 * refer to. */
#pragma once
#include "base/interned.h"
#include "formats/otlp_resource.h"
#include "formats/otlp_sink.h"
#include "frames/inlines.h"
#include "frames/tracks.h"
#include "model/span_label.h"

/* Strings that the profile may lack; they are numbered after the profile's. */
#define OTLP_OF_RUNTIME(id, name, shown, otlp, ...) X(id, otlp)
#define OTLP_STRING_LIST(X) \
	X(THREAD_ID, "thread.id") X(THREAD_NAME, "thread.name") X(CPU, "cpu.logical_number") X(FRAME_TYPE, "profile.frame.type") \
	X(BUILD_ID, "process.executable.build_id.gnu") X(NATIVE, "native") X(KERNEL, "kernel") X(ABORT, "abort-marker") \
	SONDE_RUNTIME_LIST(OTLP_OF_RUNTIME, OTLP_OF_RUNTIME, SONDE_NO_RUNTIME) \
	X(COMMENT, "pprof.profile.comment") X(PERIOD_TYPE, "") X(PERIOD_UNIT, "") X(ACCOUNT, "") /* the last three differ per profile */
#define X(id, text) OTLP_STRING_##id,
enum otlp_string { OTLP_STRING_LIST(X) OTLP_STRING_COUNT };
#undef X

/* Of opentelemetry-proto. The newest is also right for what came since. */
enum otlp_version { OTLP_1_8, OTLP_1_9, OTLP_1_10 };

struct otlp_attribute {
	uint32_t key, unit, text; /* strings */
	uint32_t is_number;
	int64_t number;
};

struct otlp_stack {
	uint32_t user, kernel;
};

struct otlp {
	struct otlp_sink sink;
	const struct profile *profile;
	struct tracks tracks;
	struct otlp_resources resources;
	struct inlines inlines;
	struct buffer account; /* as text */
	const uint8_t *profile_id; /* of the message; NULL: none */
	uint32_t nr_profiles;  /* written so far */
	enum otlp_version version;
	struct interned attributes, stacks, links; /* of struct otlp_attribute, of struct otlp_stack, of struct span_ids */
	int err; /* sticky: no memory for one of the above */
};

uint32_t otlp_string(const struct otlp *otlp, enum otlp_string string);
/* Return indices into the dictionary's tables. 0 means none there, and also no memory. Zero `attribute` before you fill it. */
uint32_t otlp_attribute(struct otlp *otlp, const struct otlp_attribute *attribute);
uint32_t otlp_text_attribute(struct otlp *otlp, uint32_t key, uint32_t text);
uint32_t otlp_stack(struct otlp *otlp, uint32_t user, uint32_t kernel);
/* A set's trace and span. 0: it has none, or they are no ids: then they are attributes. */
uint32_t otlp_link(struct otlp *otlp, uint32_t labels);
bool otlp_is_of_link(const struct profile *profile, const struct profile_label *label);
void otlp_write_dictionary(struct otlp *otlp);
