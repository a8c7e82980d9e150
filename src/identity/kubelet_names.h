/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet_names: what Kubernetes calls a container, by the kubelet's links to containers' logs. Their names are
 * POD_NAMESPACE_CONTAINER-ID.log: logSymlink in Kubernetes' pkg/kubelet/kuberuntime/legacy.go. So nobody needs to ask the API,
 * and no right to do so. A link's name is cut after 255 bytes; such a container has no names here. Any thread. */
#pragma once

#define KUBELET_LOGS "/var/log/containers"

struct kubelet_names {
	char pod[128], namespace[64], container[64]; /* plain text (base/plain_text.h), of which what does not fit ends with "..." */
};

/* `container_id`: 64 hexadecimal digits. "": not known. */
void kubelet_names_find(const char *directory, const char *container_id, struct kubelet_names *ret_names);
