// SPDX-License-Identifier: Apache-2.0
// Functions inlined into each other, with and without linkage names, to test DWARF lines. Built several ways.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace orchard {

struct Tree {
	int height;
	std::string name;
	bool operator<(const Tree &other) const { return height < other.height; }
	static inline int twice(int value) { return value * 2 + value / 3; }
};

namespace {

inline int deep(int value)
{
	auto add = [value](int other) {
		return other * value + Tree::twice(other);
	};

	return add(value) + add(value + 1);
}

__attribute__((noinline)) int grow(std::vector<Tree> &trees, int by)
{
	for (auto &tree : trees)
		tree.height += deep(by) % 7;
	std::sort(trees.begin(), trees.end());
	return trees.empty() ? 0 : trees.back().height;
}

} // namespace

template <typename T> T sum(const std::map<std::string, T> &map)
{
	T total = 0;

	for (const auto &pair : map)
		total += pair.second + static_cast<T>(pair.first.size());
	return total;
}

} // namespace orchard

int main(int argc, char **argv)
{
	std::vector<orchard::Tree> trees;
	std::map<std::string, int> ages;

	for (int i = 0; i < argc; i++) {
		trees.push_back({ i, argv[i] });
		ages[argv[i]] = i;
	}
	printf("%d %d\n", orchard::grow(trees, argc), orchard::sum(ages));
	return 0;
}
