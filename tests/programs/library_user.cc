// SPDX-License-Identifier: Apache-2.0
// Uses the library from C++17: library_user FOLDED OUT. Reads stacks, shows and writes them, and counts what that needs.
#include <cstdio>
#include <cstring>
#include <memory>

#include <sonde/counter.h>
#include <sonde/sonde.h>

struct Free {
	void operator()(sonde_profile *profile) const { sonde_profile_free(profile); }
};

struct Task {
	std::unique_ptr<sonde_profile, Free> profile{sonde_profile_new()};
	const char *in, *out;
};

static int read_and_write(void *arg)
{
	auto *task = static_cast<Task *>(arg);
	int err = sonde_profile_read(task->profile.get(), task->in, nullptr);

	return err ? err : sonde_profile_write(task->profile.get(), task->out, nullptr);
}

int main(int argc, char **argv)
{
	int code;
	sonde_show_options show = {};
	sonde_count count = {};
	const char *text = nullptr;

	if (sonde_is_worker(argc, argv, &code))
		return code;
	if (argc != 3)
		return 2;
	Task task;
	task.in = argv[1];
	task.out = argv[2];
	show.size = sizeof(show);
	show.view = SONDE_VIEW_TOP;
	int err = sonde_count_function("task-clock", read_and_write, &task, &count, NULL, 0);
	if (!err)
		err = sonde_profile_show(task.profile.get(), &show, &text);
	if (err) {
		std::printf("%s: %s\n", std::strerror(-err), sonde_profile_error(task.profile.get()));
		return 1;
	}
	std::printf("sonde %s: %llu samples in %s\n%s", sonde_version(),
		    static_cast<unsigned long long>(sonde_profile_nr_samples(task.profile.get())), count.value ? "some time" : "no time",
		    text);
	return 0;
}
