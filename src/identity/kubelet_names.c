// SPDX-License-Identifier: Apache-2.0
#include "identity/kubelet_names.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/dir.h"
#include "base/plain_text.h"
#include "base/suffix.h"

/* Names in Kubernetes have no underscore (RFC 1123). */
static void take(const char *pod, size_t size, struct kubelet_names *names)
{
	const char *end = pod + size, *namespace = memchr(pod, '_', size),
		   *container = namespace ? memchr(namespace + 1, '_', (size_t)(end - namespace - 1)) : NULL;

	if (!container)
		return;
	plain_copy(names->pod, sizeof(names->pod), pod, (size_t)(namespace - pod));
	plain_copy(names->namespace, sizeof(names->namespace), namespace + 1, (size_t)(container - namespace - 1));
	plain_copy(names->container, sizeof(names->container), container + 1, (size_t)(end - container - 1));
}

void kubelet_names_find(const char *directory, const char *container_id, struct kubelet_names *ret_names)
{
	CLEANUP(closedirp) DIR *logs = opendir(directory);
	const struct dirent *entry;
	char end[80];
	int err, size = snprintf(end, sizeof(end), "-%s.log", container_id);

	*ret_names = (struct kubelet_names){ 0 };
	while (logs && (entry = dir_next(logs, &err))) {
		size_t length = strlen(entry->d_name);

		if (!has_suffix(entry->d_name, length, end))
			continue;
		take(entry->d_name, length - (size_t)size, ret_names);
		return;
	}
}
