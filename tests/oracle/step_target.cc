// SPDX-License-Identifier: Apache-2.0
/* What step_oracle steps through of C++, between two int3: virtual calls, exceptions through several frames with destructors, a rethrow. */
#include <stdexcept>
#include <string>
#include <vector>

static volatile int keep;

struct guard {
	~guard() { keep = keep + 1; }
};

struct shape {
	virtual ~shape() = default;
	virtual int area() const = 0;
};

struct square : shape {
	int side = 3;
	int area() const override { return side * side + keep; }
};

__attribute__((noinline)) static int thrower(int depth)
{
	guard here;

	if (!depth)
		throw std::runtime_error("depth");
	return thrower(depth - 1) + 1;
}

__attribute__((noinline)) static int catcher()
{
	try {
		try {
			return thrower(3);
		} catch (const std::exception &) {
			throw;
		}
	} catch (...) {
		return 2;
	}
}

int main()
{
	std::vector<std::string> list;

	__asm__ volatile("int3");
	square one;
	const shape *any = &one;
	for (int i = 0; i < 3; i++)
		list.push_back(std::string("a text that is too long for the small place ") + std::to_string(any->area()));
	keep = keep + catcher() + (int)list.size();
	__asm__ volatile("int3");
	return 0;
}
