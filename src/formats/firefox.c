// SPDX-License-Identifier: Apache-2.0
/* Writes the Firefox Profiler's processed format, version 48 (its docs-developer/CHANGELOG-formats.md and src/types/profile.js). It is the
 * last version in which every thread has its own tables; the profiler upgrades it on loading. Without time stamps all samples are at the
 * profile's start, with their weights. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "formats/firefox.h"
#include "formats/formats.h"

#define GECKO_VERSION	  27
#define PROCESSED_VERSION 48

static void write_category(struct json *json, const char *name, const char *color)
{
	json_open(json, '{');
	json_key_text(json, "name", name);
	json_key_text(json, "color", color);
	json_key(json, "subcategories");
	json_open(json, '[');
	json_text(json, "Other");
	json_close(json, ']');
	json_close(json, '}');
}

/* Without any time, one sample stands for the whole run. */
static int64_t interval_ns(const struct firefox *firefox)
{
	const struct account *account = profile_account_of(firefox->profile);

	for (uint32_t i = 0; i < firefox->tracks.nr; i++) {
		if (firefox->tracks.all[i].is_timed)
			return firefox->scale.is_time ? (int64_t)firefox->scale.factor
			       : account->freq_hz     ? (int64_t)(1000000000 / account->freq_hz)
						      : 1000000;
	}
	return account->duration_ns ? (int64_t)account->duration_ns : 1000000;
}

static void write_meta(struct firefox *firefox)
{
	const struct account *account = profile_account_of(firefox->profile);
	struct json *json = &firefox->json;

	json_key(json, "meta");
	json_open(json, '{');
	json_key_u64(json, "version", GECKO_VERSION);
	json_key_u64(json, "preprocessedProfileVersion", PROCESSED_VERSION);
	json_key(json, "interval");
	json_fixed(json, interval_ns(firefox), 6);
	json_key(json, "startTime");
	json_fixed(json, (int64_t)firefox->first_ns, 6);
	json_key_u64(json, "processType", 0);
	json_key_text(json, "product", "sonde");
	json_key_text(json, "importedFrom", "sonde");
	json_key_text(json, "oscpu", account->kernel);
	json_key_text(json, "platform", "Linux");
	json_key_text(json, "arguments", account->command_line);
	json_key_u64(json, "logicalCPUs", account->nr_cpus);
	json_key_u64(json, "stackwalk", 1);
	json_key_u64(json, "debug", 0);
	json_key(json, "symbolicated");
	json_bool(json, true);
	json_key(json, "categories");
	json_open(json, '[');
#define X(id, name, colour) write_category(json, name, colour);
	FIREFOX_CATEGORY_LIST(X)
#undef X
	json_close(json, ']');
	json_key(json, "markerSchema");
	json_open(json, '[');
	json_close(json, ']');
	json_close(json, '}');
}

/* Breakpad's id of an ELF file: the first 16 bytes of the build id as a GUID, with its first three fields little-endian, and an age of
 * 0. */
static void breakpad_id(const char *build_id, char id[34])
{
	static const uint8_t places[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	size_t size = strlen(build_id);

	memset(id, '0', 33);
	id[33] = '\0';
	for (size_t i = 0; i < 32; i++) {
		size_t from = (size_t)places[i / 2] * 2 + i % 2;
		char c = from < size ? build_id[from] : '0';

		id[i] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
	}
}

static void write_lib(struct firefox *firefox, const struct profile_mapping *mapping)
{
	const char *path = profile_string_text(firefox->profile, mapping->path), *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	const char *build_id = profile_string_text(firefox->profile, mapping->build_id);
	struct json *json = &firefox->json;
	char id[34];

	breakpad_id(build_id, id);
	json_line(json);
	json_open(json, '{');
	json_key_text(json, "arch", "");
	json_key_text(json, "name", name);
	json_key_text(json, "path", path);
	json_key_text(json, "debugName", name);
	json_key_text(json, "debugPath", path);
	json_key_text(json, "breakpadId", id);
	json_key(json, "codeId");
	if (*build_id)
		json_text(json, build_id);
	else
		json_null(json);
	json_close(json, '}');
}

static void write_libs(struct firefox *firefox)
{
	json_key(&firefox->json, "libs");
	json_open(&firefox->json, '[');
	for (uint32_t i = 0; i < firefox->nr_libs; i++)
		write_lib(firefox, profile_mapping_at(firefox->profile, firefox->lib_mapping[i]));
	json_close(&firefox->json, ']');
}

/* Mappings of one file are one library. */
static int find_libs(struct firefox *firefox)
{
	CLEANUP(u64_map_done) struct u64_map index = { 0 };
	uint32_t nr_mappings = profile_nr_mappings(firefox->profile);

	firefox->lib_of = calloc((size_t)nr_mappings + 1, sizeof(*firefox->lib_of));
	firefox->lib_mapping = calloc((size_t)nr_mappings + 1, sizeof(*firefox->lib_mapping));
	if (!firefox->lib_of || !firefox->lib_mapping)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		const struct profile_mapping *mapping = profile_mapping_at(firefox->profile, i);
		uint64_t key = (uint64_t)mapping->path << 32 | mapping->build_id;
		uint32_t *found = u64_map_find(&index, key);

		firefox->lib_of[i] = found ? *found : firefox->nr_libs;
		if (found)
			continue;
		if (u64_map_add(&index, key, firefox->nr_libs))
			return -ENOMEM;
		firefox->lib_mapping[firefox->nr_libs++] = i;
	}
	return 0;
}

static int prepare(struct firefox *firefox)
{
	int err = frame_list_find(firefox->profile, false, &firefox->frames);

	if (!err)
		err = tracks_find(firefox->profile, &firefox->tracks);
	if (!err)
		err = inlines_find(firefox->profile, &firefox->inlines);
	if (!err)
		err = find_libs(firefox);
	return err ? err : firefox_thread_prepare(firefox);
}

static void firefox_done(struct firefox *firefox)
{
	frame_list_done(&firefox->frames);
	tracks_done(&firefox->tracks);
	inlines_done(&firefox->inlines);
	free(firefox->lib_of);
	free(firefox->lib_mapping);
	firefox_thread_done(firefox);
}

int write_firefox(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(firefox_done) struct firefox firefox = {
		.json = { .buffer = buffer },
		.profile = profile,
		.scale = value_scale_of(profile, profile_shown_value(profile)),
		.first_ns = first_time_ns(profile),
	};
	int err = prepare(&firefox);

	if (err)
		return err;
	json_open(&firefox.json, '{');
	write_meta(&firefox);
	json_line(&firefox.json);
	write_libs(&firefox);
	json_key(&firefox.json, "threads");
	json_open(&firefox.json, '[');
	for (uint32_t i = 0; i < firefox.tracks.nr && !err; i++)
		err = firefox_write_thread(&firefox, &firefox.tracks.all[i]);
	json_close(&firefox.json, ']');
	json_close(&firefox.json, '}');
	buffer_text(buffer, "\n");
	return err;
}
