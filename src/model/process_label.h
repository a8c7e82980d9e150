/* SPDX-License-Identifier: Apache-2.0 */
/* process_label: keys of the labels that say what a process belongs to. A sample has them beside those that the program itself gives it.
 * The keys are OpenTelemetry's (semantic conventions: service, container, k8s, process). */
#pragma once
#include <stdbool.h>
#include <string.h>

#define PROCESS_LABEL_SERVICE        "service.name"
#define PROCESS_LABEL_SERVICE_SPACE  "service.namespace"
#define PROCESS_LABEL_VERSION        "service.version"
#define PROCESS_LABEL_INSTANCE       "service.instance.id"
#define PROCESS_LABEL_DEPLOYMENT     "deployment.environment.name"
#define PROCESS_LABEL_DEPLOYMENT_OLD "deployment.environment" /* until 2024 */
#define PROCESS_LABEL_EXECUTABLE     "process.executable.name"
#define PROCESS_LABEL_CONTAINER      "container.id"
#define PROCESS_LABEL_POD            "k8s.pod.uid"
#define PROCESS_LABEL_POD_NAME       "k8s.pod.name"
#define PROCESS_LABEL_NAMESPACE      "k8s.namespace.name"
#define PROCESS_LABEL_CONTAINER_NAME "k8s.container.name"
#define PROCESS_LABEL_CGROUP         "process.linux.cgroup"
#define PROCESS_LABEL_ENVIRONMENT    "process.environment_variable." /* and the variable's name */

/* Is it the key of such a label? */
static inline bool process_label_is(const char *key)
{
	static const char *const keys[] = { PROCESS_LABEL_SERVICE, PROCESS_LABEL_EXECUTABLE, PROCESS_LABEL_CONTAINER,
					    PROCESS_LABEL_POD, PROCESS_LABEL_POD_NAME, PROCESS_LABEL_NAMESPACE,
					    PROCESS_LABEL_CONTAINER_NAME, PROCESS_LABEL_CGROUP, PROCESS_LABEL_SERVICE_SPACE,
					    PROCESS_LABEL_VERSION, PROCESS_LABEL_INSTANCE, PROCESS_LABEL_DEPLOYMENT,
					    PROCESS_LABEL_DEPLOYMENT_OLD };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!strcmp(key, keys[i]))
			return true;
	}
	return !strncmp(key, PROCESS_LABEL_ENVIRONMENT, strlen(PROCESS_LABEL_ENVIRONMENT));
}
