// SPDX-License-Identifier: Apache-2.0
/* What the verifier has to do for our programs with everything switched on: start-up is a feature. Counted in instructions, because time says more
 * about the machine. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>

#include "abi/config.h"
#include "collect/cpus.h"
#include "need_bpf.h"
#include "profile.skel.h"

#define MAX_INSTRUCTIONS 100000u
#define LOG_BYTES 65536

static int no_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return 0;
}

/* The number behind `word` in the verifier's statistics; 0 when it does not stand there. */
static unsigned long number_after(const char *log, const char *word)
{
	const char *at = strstr(log, word);

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

static struct profile_bpf *open_full(uint32_t nr_cpus)
{
	struct profile_bpf *skeleton = profile_bpf__open();

	if (!skeleton)
		return NULL;
	memcpy((void *)&skeleton->rodata->cfg,
	       &(struct sonde_config){ .version = SONDE_ABI_VERSION, .ring_wake_bytes = 1 << 19, .filter_tgid = 1, .filter_comm = 1, .user_stacks = 1,
				       .kernel_stacks = 1, .comm = "test" },
	       sizeof(struct sonde_config));
	if (bpf_map__set_max_entries(skeleton->maps.ring, 1 << 20) || bpf_map__set_max_entries(skeleton->maps.rules, 1024) ||
	    bpf_map__set_max_entries(skeleton->maps.stacks, 1024) || bpf_map__set_max_entries(skeleton->maps.scratches, nr_cpus)) {
		profile_bpf__destroy(skeleton);
		return NULL;
	}
	return skeleton;
}

int main(void)
{
	static char logs[8][LOG_BYTES];
	CLEANUP(cpus_done) struct cpus possible = { 0 };
	struct profile_bpf *skeleton;
	struct bpf_program *program;
	unsigned long sum = 0;
	size_t nr = 0;
	int err;

	need_bpf();
	libbpf_set_print(no_print);
	if (cpus_read("possible", NULL, &possible) || !(skeleton = open_full(possible.ids[possible.nr - 1] + 1)))
		return 1;
	bpf_object__for_each_program(program, skeleton->obj) {
		if (nr == ARRAY_SIZE(logs) || bpf_program__set_log_level(program, 4) || bpf_program__set_log_buf(program, logs[nr++], LOG_BYTES))
			return 1;
	}
	err = profile_bpf__load(skeleton);
	if (err)
		fprintf(stderr, "does not load: %s\n", strerror(-err));
	nr = 0;
	bpf_object__for_each_program(program, skeleton->obj) {
		unsigned long instructions = number_after(logs[nr], "processed ");

		printf("%s: %lu instructions verified in %lu us\n", bpf_program__name(program), instructions, number_after(logs[nr], "verification time "));
		if (err || !instructions)
			fprintf(stderr, "%s\n", logs[nr]);
		err = instructions ? err : -ENODATA;
		sum += instructions;
		nr++;
	}
	profile_bpf__destroy(skeleton);
	if (sum > MAX_INSTRUCTIONS)
		fprintf(stderr, "%lu instructions to verify, more than %u\n", sum, MAX_INSTRUCTIONS);
	return err || sum > MAX_INSTRUCTIONS;
}
