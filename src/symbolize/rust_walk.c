// SPDX-License-Identifier: Apache-2.0
/* Grammar: RFC 2603. Walks the same parts as libiberty, and as often (rust-demangle.c of binutils 2.40): follows back references only where
 * text is printed. */
#include "symbolize/rust_walk.h"

#include <stdint.h>
#include <string.h>

#define MAX_DEPTH  1024u /* libiberty's own */
#define BASIC_TYPES "abcdefhijlmnopstuvxyz"
#define INTEGER_TYPES "htmyojaslxni"

struct walk {
	const char *at, *start, *end;
	uint32_t steps, depth;
	bool is_silent; /* nothing is printed */
	bool is_bad;
};

typedef void (*part_fn)(struct walk *walk);

static void walk_path(struct walk *walk);
static void walk_type(struct walk *walk);
static void walk_constant(struct walk *walk);
static void walk_trait_path(struct walk *walk);

static bool fail(struct walk *walk)
{
	walk->is_bad = true;
	return false;
}

static bool take_steps(struct walk *walk, uint64_t nr)
{
	if (walk->is_bad || nr > RUST_WALK_MAX_STEPS - walk->steps)
		return fail(walk);
	walk->steps += (uint32_t)nr;
	return true;
}

static char next(struct walk *walk)
{
	if (walk->at == walk->end)
		fail(walk);
	return take_steps(walk, 1) ? *walk->at++ : '\0';
}

static bool eat(struct walk *walk, char c)
{
	if (walk->is_bad || walk->at == walk->end || *walk->at != c)
		return false;
	walk->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* "_" is 0, "0_" 1; wraps as libiberty's does. */
static uint64_t base_62(struct walk *walk)
{
	uint64_t value = 0;

	if (eat(walk, '_'))
		return 0;
	while (!walk->is_bad && !eat(walk, '_')) {
		char c = next(walk);

		value *= 62;
		if (is_digit(c))
			value += (uint64_t)(c - '0');
		else if (is_lower(c))
			value += 10 + (uint64_t)(c - 'a');
		else if (is_upper(c))
			value += 36 + (uint64_t)(c - 'A');
		else
			fail(walk);
	}
	return value + 1;
}

static uint64_t optional_base_62(struct walk *walk, char tag)
{
	return eat(walk, tag) ? 1 + base_62(walk) : 0;
}

static void walk_identifier(struct walk *walk)
{
	size_t size;
	char c;

	eat(walk, 'u');
	c = next(walk);
	if (!is_digit(c)) {
		fail(walk);
		return;
	}
	size = (size_t)(c - '0');
	while (c != '0' && !walk->is_bad && walk->at < walk->end && is_digit(*walk->at) && size <= (size_t)(walk->end - walk->start))
		size = size * 10 + (size_t)(next(walk) - '0');
	eat(walk, '_');
	if (walk->is_bad || size > (size_t)(walk->end - walk->at))
		fail(walk);
	else
		walk->at += size;
}

static void walk_named(struct walk *walk)
{
	optional_base_62(walk, 's');
	walk_identifier(walk);
}

/* The lifetimes of `for<...>`. */
static void walk_binder(struct walk *walk)
{
	take_steps(walk, optional_base_62(walk, 'G'));
}

/* The tag is already consumed. */
static void walk_back_reference(struct walk *walk, part_fn part)
{
	uint64_t to = base_62(walk);
	const char *behind = walk->at;

	if (walk->is_silent || walk->is_bad)
		return;
	if (to >= (uint64_t)(walk->end - walk->start)) {
		fail(walk);
		return;
	}
	walk->at = walk->start + to;
	part(walk);
	walk->at = behind;
}

static void walk_until_end(struct walk *walk, part_fn part)
{
	while (!walk->is_bad && !eat(walk, 'E'))
		part(walk);
}

static void walk_constant_inside(struct walk *walk)
{
	char type;

	if (eat(walk, 'B')) {
		walk_back_reference(walk, walk_constant);
		return;
	}
	type = next(walk);
	if (type == 'p' || walk->is_bad)
		return;
	if (!strchr(INTEGER_TYPES "bc", type)) {
		fail(walk);
		return;
	}
	eat(walk, 'n');
	while (!walk->is_bad && !eat(walk, '_'))
		next(walk);
}

/* A part that contains others: limits the depth. */
static void walk_nested(struct walk *walk, part_fn part)
{
	if (walk->depth == MAX_DEPTH || !take_steps(walk, 1)) {
		fail(walk);
		return;
	}
	walk->depth++;
	part(walk);
	walk->depth--;
}

static void walk_constant(struct walk *walk)
{
	walk_nested(walk, walk_constant_inside);
}

static void walk_generic(struct walk *walk)
{
	if (eat(walk, 'L'))
		base_62(walk);
	else if (eat(walk, 'K'))
		walk_constant(walk);
	else
		walk_type(walk);
}

/* The path of an impl itself, which is not shown. */
static void walk_silently(struct walk *walk)
{
	bool was_silent = walk->is_silent;

	optional_base_62(walk, 's');
	walk->is_silent = true;
	walk_path(walk);
	walk->is_silent = was_silent;
}

static void walk_path_inside(struct walk *walk)
{
	char tag = next(walk), kind;

	switch (tag) {
	case 'C':
		walk_named(walk);
		break;
	case 'N':
		kind = next(walk);
		if (!is_lower(kind) && !is_upper(kind))
			fail(walk);
		walk_path(walk);
		walk_named(walk);
		break;
	case 'M':
	case 'X':
		walk_silently(walk);
		walk_type(walk);
		if (tag == 'X')
			walk_path(walk);
		break;
	case 'Y':
		walk_type(walk);
		walk_path(walk);
		break;
	case 'I':
		walk_path(walk);
		walk_until_end(walk, walk_generic);
		break;
	case 'B':
		walk_back_reference(walk, walk_path);
		break;
	default:
		fail(walk);
	}
}

static void walk_path(struct walk *walk)
{
	if (!walk->is_bad)
		walk_nested(walk, walk_path_inside);
}

static void walk_function(struct walk *walk)
{
	walk_binder(walk);
	eat(walk, 'U');
	if (eat(walk, 'K') && !eat(walk, 'C'))
		walk_identifier(walk);
	walk_until_end(walk, walk_type);
	walk_type(walk); /* 'u', no type, is a type, too */
}

/* A path whose generic arguments are followed by what they equal: Iterator<Item = T>. */
static void walk_trait_path_inside(struct walk *walk)
{
	if (eat(walk, 'B'))
		walk_back_reference(walk, walk_trait_path);
	else
		walk_path(walk);
}

static void walk_trait_path(struct walk *walk)
{
	walk_nested(walk, walk_trait_path_inside);
}

static void walk_trait(struct walk *walk)
{
	walk_trait_path(walk);
	while (eat(walk, 'p')) {
		walk_identifier(walk);
		walk_type(walk);
	}
}

static void walk_dyn(struct walk *walk)
{
	walk_binder(walk);
	walk_until_end(walk, walk_trait);
	if (!eat(walk, 'L'))
		fail(walk);
	base_62(walk);
}

static void walk_type_inside(struct walk *walk)
{
	char tag = next(walk);

	switch (tag) {
	case 'R':
	case 'Q':
		if (eat(walk, 'L'))
			base_62(walk);
		walk_type(walk);
		break;
	case 'P':
	case 'O':
	case 'S':
		walk_type(walk);
		break;
	case 'A':
		walk_type(walk);
		walk_constant(walk);
		break;
	case 'T':
		walk_until_end(walk, walk_type);
		break;
	case 'F':
		walk_function(walk);
		break;
	case 'D':
		walk_dyn(walk);
		break;
	case 'B':
		walk_back_reference(walk, walk_type);
		break;
	default:
		if (walk->is_bad || strchr(BASIC_TYPES, tag))
			return;
		walk->at--;
		walk_path(walk);
	}
}

static void walk_type(struct walk *walk)
{
	if (!walk->is_bad)
		walk_nested(walk, walk_type_inside);
}

bool rust_walk_is_short(const char *name, size_t size)
{
	struct walk walk;

	if (size < 2)
		return false;
	walk = (struct walk){ .at = name + 2, .start = name + 2, .end = name + size };
	walk_path(&walk);
	if (!walk.is_bad && walk.at < walk.end) { /* the crate that instantiated the function */
		walk.is_silent = true;
		walk_path(&walk);
	}
	return !walk.is_bad && walk.at == walk.end;
}
