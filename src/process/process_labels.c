// SPDX-License-Identifier: Apache-2.0
#include "process/process_labels.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/process_label.h"

#define KEY_BYTES (sizeof(PROCESS_LABEL_ENVIRONMENT) + ENVIRONMENT_NAME_BYTES)

struct draft {
	char keys[PROCESS_LABELS_MAX][KEY_BYTES];
	struct process_label list[PROCESS_LABELS_MAX];
	uint32_t nr;
};

static void add(struct draft *draft, const char *prefix, const char *name, const char *text)
{
	char *key = draft->keys[draft->nr];

	if (!*text)
		return;
	snprintf(key, KEY_BYTES, "%s%s", prefix, name);
	draft->list[draft->nr++] = (struct process_label){ key, text };
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct process_label *)a)->key, ((const struct process_label *)b)->key);
}

static const char *pack(char **to, const char *text)
{
	size_t size = strlen(text) + 1;
	const char *packed = memcpy(*to, text, size);

	*to += size;
	return packed;
}

static struct process_labels *make(const struct draft *draft)
{
	size_t size = sizeof(struct process_labels) + draft->nr * sizeof(struct process_label), bytes = size;
	struct process_labels *labels;
	char *to;

	for (uint32_t i = 0; i < draft->nr; i++)
		bytes += strlen(draft->list[i].key) + strlen(draft->list[i].text) + 2;
	labels = malloc(bytes);
	if (!labels)
		return NULL;
	*labels = (struct process_labels){ .nr_refs = 1, .nr = draft->nr, .bytes = (uint32_t)bytes };
	to = (char *)labels + size;
	for (uint32_t i = 0; i < draft->nr; i++) {
		labels->list[i].key = pack(&to, draft->list[i].key);
		labels->list[i].text = pack(&to, draft->list[i].text);
	}
	return labels;
}

struct process_labels *process_labels_new(const struct process_identity *identity, const struct environment_names *names,
					  const struct environment_values *values)
{
	struct draft draft = { .nr = 0 };

	add(&draft, PROCESS_LABEL_SERVICE, "", identity->service);
	add(&draft, PROCESS_LABEL_EXECUTABLE, "", identity->executable);
	add(&draft, PROCESS_LABEL_CONTAINER, "", identity->container_id);
	add(&draft, PROCESS_LABEL_POD, "", identity->pod_uid);
	add(&draft, PROCESS_LABEL_POD_NAME, "", identity->kubernetes.pod);
	add(&draft, PROCESS_LABEL_NAMESPACE, "", identity->kubernetes.namespace);
	add(&draft, PROCESS_LABEL_CONTAINER_NAME, "", identity->kubernetes.container);
	add(&draft, PROCESS_LABEL_CGROUP, "", strcmp(identity->cgroup, "/") != 0 ? identity->cgroup : ""); /* the root says nothing */
	for (uint32_t i = 0; i < names->nr; i++)
		add(&draft, PROCESS_LABEL_ENVIRONMENT, names->names[i], values->values[i]);
	qsort(draft.list, draft.nr, sizeof(*draft.list), by_key);
	return make(&draft);
}

static bool is_published(const char *key)
{
	static const char *const keys[] = { PROCESS_LABEL_SERVICE,  PROCESS_LABEL_SERVICE_SPACE, PROCESS_LABEL_VERSION,
					    PROCESS_LABEL_INSTANCE, PROCESS_LABEL_DEPLOYMENT,	 PROCESS_LABEL_DEPLOYMENT_OLD };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!strcmp(key, keys[i]))
			return true;
	}
	return false;
}

static bool has_key(const struct draft *draft, const char *key)
{
	for (uint32_t i = 0; i < draft->nr; i++) {
		if (!strcmp(draft->list[i].key, key))
			return true;
	}
	return false;
}

struct process_labels *process_labels_join(const struct process_labels *own, const struct process_context *context)
{
	struct draft draft = { .nr = 0 };

	for (uint32_t i = 0; i < context->nr_attributes; i++) {
		if (is_published(context->attributes[i].key))
			add(&draft, context->attributes[i].key, "", context->attributes[i].text);
	}
	for (uint32_t i = 0; i < own->nr; i++) {
		if (!has_key(&draft, own->list[i].key))
			add(&draft, own->list[i].key, "", own->list[i].text);
	}
	qsort(draft.list, draft.nr, sizeof(*draft.list), by_key);
	return make(&draft);
}

struct process_labels *process_labels_ref(struct process_labels *labels)
{
	if (labels)
		__atomic_add_fetch(&labels->nr_refs, 1, __ATOMIC_RELAXED);
	return labels;
}

void process_labels_unref(struct process_labels *labels)
{
	if (labels && !__atomic_sub_fetch(&labels->nr_refs, 1, __ATOMIC_ACQ_REL))
		free(labels);
}
