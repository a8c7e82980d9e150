// SPDX-License-Identifier: Apache-2.0
/* A program that profiles itself for two seconds: profile FILE. cc profile.c $(pkg-config --cflags --libs sonde) -pthread */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <sonde/sonde.h>

static void *work(void *arg)
{
	for (volatile unsigned long steps = 0;;)
		steps = steps + 1;
	return arg;
}

int main(int argc, char **argv)
{
	unsigned int self = (unsigned int)getpid();
	const struct sonde_sampling_options sampling = { .size = sizeof(sampling), .freq_hz = 99 };
	struct sonde_session_options options = {
		.size = sizeof(options), .sampling = &sampling, .duration_ns = 2000000000, .tgids = &self, .nr_tgids = 1
	};
	struct sonde_session *session = NULL;
	pthread_t worker;
	int code;

	if (sonde_is_worker(argc, argv, &code)) /* must be first: sonde starts this program once more, to read files without rights */
		return code;
	if (argc != 2 || pthread_create(&worker, NULL, work, NULL))
		return SONDE_EXIT_USAGE;
	if (sonde_session_new(&options, &session) || sonde_session_add_output(session, argv[1], NULL) || sonde_session_run(session) ||
	    sonde_session_write(session))
		fprintf(stderr, "profile: %s\n", sonde_session_error(session));
	else
		fputs(sonde_session_account(session), stderr);
	code = sonde_session_exit_code(session);
	sonde_session_free(session);
	return code;
}
