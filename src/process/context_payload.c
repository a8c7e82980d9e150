// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/plain_text.h"
#include "base/reader.h"
#include "codec/protobuf_read.h"
#include "process/process_context.h"

#define KEY_MAP "threadlocal.attribute_key_map"

/* Of opentelemetry-proto: common.proto, resource.proto, and processcontext.proto of the OpenTelemetry profiler. */
enum { CONTEXT_RESOURCE = 1, CONTEXT_ATTRIBUTES };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE };
enum { ANY_STRING = 1, ANY_ARRAY = 5 };
enum { ARRAY_VALUES = 1 };

/* The last field of that number that holds bytes, as protocol buffers have it. */
static bool find_bytes(struct reader message, uint32_t number, struct reader *ret_bytes)
{
	struct protobuf_field field;
	bool is_found = false;

	while (protobuf_next(&message, &field)) {
		if (field.number != number || field.type != PROTOBUF_BYTES)
			continue;
		*ret_bytes = field.bytes;
		is_found = true;
	}
	return is_found && !message.bad;
}

static bool is_text(struct reader bytes, const char *text)
{
	return reader_left(&bytes) == strlen(text) && !memcmp(bytes.pos, text, strlen(text));
}

static int take_keys(struct reader values, struct process_context *context)
{
	struct protobuf_field field;

	context->nr_keys = 0;
	while (protobuf_next(&values, &field)) {
		struct reader text = { 0 };
		struct context_key *key = &context->keys[context->nr_keys];

		if (field.number != ARRAY_VALUES || field.type != PROTOBUF_BYTES)
			continue;
		if (context->nr_keys == PROCESS_CONTEXT_KEYS) /* none can refer to it */
			break;
		*key = (struct context_key){ 0 };
		if (find_bytes(field.bytes, ANY_STRING, &text)) {
			key->bytes = (uint32_t)reader_left(&text);
			memcpy(key->key, text.pos, key->bytes < sizeof(key->key) ? key->bytes : sizeof(key->key));
		}
		context->nr_keys++;
	}
	return values.bad ? -EBADMSG : 0;
}

/* Of two with one key the last one counts, as in other readers' maps. */
static struct process_attribute *attribute_of(struct process_context *context, const char *key)
{
	for (uint32_t i = 0; i < context->nr_attributes; i++) {
		if (!strcmp(context->attributes[i].key, key))
			return &context->attributes[i];
	}
	return context->nr_attributes == PROCESS_CONTEXT_ATTRIBUTES ? NULL : &context->attributes[context->nr_attributes++];
}

static void take_attribute(struct process_context *context, struct reader key, struct reader text)
{
	struct process_attribute made = { 0 }, *attribute;

	if (!reader_left(&key) || !reader_left(&text))
		return;
	plain_copy(made.key, sizeof(made.key), (const char *)key.pos, reader_left(&key));
	plain_copy(made.text, sizeof(made.text), (const char *)text.pos, reader_left(&text));
	attribute = made.key[0] && made.text[0] ? attribute_of(context, made.key) : NULL;
	if (attribute)
		*attribute = made;
}

/* An attribute of the resource, or of the context itself: of the latter, what is for readers such as we. */
static int take_key_value(struct reader message, bool is_resource, struct process_context *context)
{
	struct reader key = { 0 }, value = { 0 }, bytes;

	if (!find_bytes(message, KEY_VALUE_KEY, &key) || !find_bytes(message, KEY_VALUE_VALUE, &value))
		return 0;
	if (is_text(key, KEY_MAP) && find_bytes(value, ANY_ARRAY, &bytes))
		return take_keys(bytes, context);
	if (is_resource && find_bytes(value, ANY_STRING, &bytes))
		take_attribute(context, key, bytes);
	return 0;
}

static int each_key_value(struct reader message, uint32_t number, bool is_resource, struct process_context *context)
{
	struct protobuf_field field;
	int err = 0;

	while (!err && protobuf_next(&message, &field)) {
		if (field.number == number && field.type == PROTOBUF_BYTES)
			err = take_key_value(field.bytes, is_resource, context);
	}
	return err ? err : message.bad ? -EBADMSG : 0;
}

/* Earlier drafts publish the Resource itself, later ones a message with a Resource as its first field. Both begin with field 1, of a
 * KeyValue or of a Resource, whose field 1 in turn is a key or a KeyValue: a key is text, while a KeyValue begins with a tag, which is a
 * control character. */
static bool is_resource_itself(struct reader message)
{
	struct reader first, key;

	return find_bytes(message, CONTEXT_RESOURCE, &first) && find_bytes(first, KEY_VALUE_KEY, &key) && reader_left(&key) &&
	       *key.pos >= ' ';
}

int process_context_parse(const void *bytes, size_t size, struct process_context *ret_context)
{
	struct reader message = reader_of(bytes, size), resource;
	int err;

	ret_context->nr_attributes = ret_context->nr_keys = 0;
	if (is_resource_itself(message))
		return each_key_value(message, RESOURCE_ATTRIBUTES, true, ret_context);
	err = each_key_value(message, CONTEXT_ATTRIBUTES, false, ret_context);
	if (!err && find_bytes(message, CONTEXT_RESOURCE, &resource))
		err = each_key_value(resource, RESOURCE_ATTRIBUTES, true, ret_context);
	return err;
}
