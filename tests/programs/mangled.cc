// SPDX-License-Identifier: Apache-2.0
// mangled SECONDS: C++ names, without frame pointers: a template, an overloaded member, a lambda, an anonymous namespace. The
// names that are printed are those that c++filt gives for them.
extern "C" {
#include "known.h"
}
#include <vector>

static volatile unsigned long sink;

namespace garden {

template <typename T> struct Bed {
	std::vector<T> plants;
	KNOWN unsigned long grow(unsigned n) const;
	KNOWN unsigned long grow(const char *name, T value) const;
};

namespace {
KNOWN unsigned long root()
{
	known_enter("garden::(anonymous namespace)::root()");
	known_print();
	known_ready();
	return known_spin();
}
}

template <typename T> unsigned long Bed<T>::grow(const char *name, T value) const
{
	volatile char room[90];

	known_enter("garden::Bed<int>::grow(char const*, int) const");
	room[3] = *name;
	return root() + static_cast<unsigned long>(value) + static_cast<unsigned long>(room[3]);
}

template <typename T> unsigned long Bed<T>::grow(unsigned n) const
{
	known_enter("garden::Bed<int>::grow(unsigned int) const");
	return grow("rose", static_cast<T>(n)) + plants.size();
}

template struct Bed<int>;

}

KNOWN static unsigned long visit(const garden::Bed<int> &bed)
{
	known_enter("visit(garden::Bed<int> const&)");
	auto water = [&bed](unsigned n) KNOWN {
		known_enter("visit(garden::Bed<int> const&)::{lambda(unsigned int)#1}::operator()(unsigned int) const");
		return bed.grow(n) + 1;
	};
	return water(3) * 2;
}

int main(int argc, char **argv)
{
	garden::Bed<int> bed;

	ENTER();
	known_start(argv[1]);
	bed.plants.push_back(argc);
	sink = visit(bed);
	return 0;
}
