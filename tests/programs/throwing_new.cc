// SPDX-License-Identifier: Apache-2.0
/* An allocator of its own whose operator new throws: for so many seconds, one call in 20 asks for more than there is. Prints "alloc
 * ask_block COUNT" and how many have thrown. */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>

extern "C" void *__libc_malloc(size_t bytes);
extern "C" void __libc_free(void *block);

extern "C" void *malloc(size_t bytes)
{
	return __libc_malloc(bytes);
}

extern "C" void free(void *block)
{
	__libc_free(block);
}

__attribute__((noinline)) void *operator new(size_t bytes)
{
	void *block = malloc(bytes);

	if (!block)
		throw std::bad_alloc();
	return block;
}

void operator delete(void *block) noexcept
{
	free(block);
}

void operator delete(void *block, size_t) noexcept
{
	free(block);
}

__attribute__((noipa)) static void ask_block(size_t bytes)
{
	void *volatile block = operator new(bytes);

	operator delete(block);
}

static double seconds()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end = seconds() + (argc > 1 ? atof(argv[1]) : 1);
	unsigned long nr = 0, nr_thrown = 0;

	while (seconds() < end) {
		for (int i = 0; i < 20; i++) {
			try {
				ask_block(i ? 100 : (size_t)1 << 60);
				nr++;
			} catch (const std::bad_alloc &) {
				nr_thrown++;
			}
			for (volatile int loop = 0; loop < 3000; loop = loop + 1)
				;
		}
	}
	printf("alloc ask_block %lu\nthrew %lu\n", nr, nr_thrown);
}
