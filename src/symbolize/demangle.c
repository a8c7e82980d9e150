// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/buffer.h"
#include "symbolize/rust_walk.h"

#define MAX_RETRIES 8 /* each doubles the time */

/* libiberty's own limit on nesting stays on. It has no limit on its output, and cannot be told to stop. But its printing code has nothing
 * on the heap for C++ (for Rust, a name being decoded from punycode), so a jump out of it is clean. */
struct output {
	struct buffer text;
	jmp_buf give_up;
};

static void append(const char *text, size_t size, void *arg)
{
	struct output *output = arg;

	buffer_append(&output->text, text, size);
	if (output->text.err)
		longjmp(output->give_up, 1);
}

static bool is_hex_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Returns the length of a legacy Rust name, _ZN...17h<16 hex digits>E; 0 for any other name. */
static size_t legacy_rust_size(const char *name)
{
	for (const char *hash = strstr(name, "17h"); hash; hash = strstr(hash + 1, "17h")) {
		const char *digit = hash + 3;

		while (digit < hash + 19 && is_hex_digit(*digit))
			digit++;
		if (digit == hash + 19 && *digit == 'E' && (digit[1] == '\0' || digit[1] == '.'))
			return (size_t)(digit + 1 - name);
	}
	return 0;
}

static size_t word(const char *text)
{
	size_t size = 0;

	while ((text[size] >= 'a' && text[size] <= 'z') || (text[size] >= 'A' && text[size] <= 'Z') || text[size] == '_')
		size++;
	return size;
}

/* ".constprop.0.isra.0" as c++filt shows it for C++: " [clone .constprop.0] [clone .isra.0]". ".llvm.NUMBER" is dropped: like the hash, it
 * only distinguishes equal names of different files. */
static void append_clones(struct output *output, const char *suffix)
{
	while (*suffix == '.') {
		size_t size = 1 + word(suffix + 1);

		while (suffix[size] == '.' && suffix[size + 1] >= '0' && suffix[size + 1] <= '9')
			size += 1 + strspn(suffix + size + 1, "0123456789");
		if (strncmp(suffix, ".llvm.", 6) != 0)
			buffer_printf(&output->text, " [clone %.*s]", (int)size, suffix);
		suffix += size;
	}
	buffer_text(&output->text, suffix);
}

static int print_rust(struct output *output, const char *name)
{
	size_t size = name[1] == 'R' ? strcspn(name, ".") : legacy_rust_size(name);
	char stem[DEMANGLE_MAX_NAME + 1];

	if (size == 0 || (name[1] == 'R' && !rust_walk_is_short(name, size)))
		return 0;
	memcpy(stem, name, size);
	stem[size] = '\0';
	if (!rust_demangle_callback(stem, DMGL_PARAMS | DMGL_ANSI, append, output))
		return 0;
	append_clones(output, name + size);
	return 1;
}

/* In a conversion operator's type, libiberty reads the arguments of a template parameter ("T_I...") once to see what follows them, and then
 * again. So nested ones take time 2^depth before anything is printed. Real names have a few at most. */
static bool is_long_cxx(const char *name)
{
	uint32_t nr = 0;

	for (const char *parameter = strstr(name, "cv"); parameter && (parameter = strchr(parameter, 'T')); parameter++) {
		const char *behind = parameter + 1 + strspn(parameter + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		nr += behind[0] == '_' && behind[1] == 'I';
	}
	return nr > MAX_RETRIES;
}

static int print(struct output *output, const char *name)
{
	if (setjmp(output->give_up))
		return 0;
	if (print_rust(output, name))
		return 1;
	output->text.size = 0; /* the Rust printer failed midway: not a Rust name */
	return !is_long_cxx(name) && cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, append, output);
}

bool demangle_is_candidate(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

char *demangle(const char *name)
{
	struct output output = { .text = BUFFER_INIT(DEMANGLE_MAX_TEXT) };
	size_t size = strcspn(name, " @"); /* "[module]" or "@plt" */
	char linked[DEMANGLE_MAX_NAME + 1];

	if (!demangle_is_candidate(name) || size > DEMANGLE_MAX_NAME)
		return NULL;
	memcpy(linked, name, size);
	linked[size] = '\0';
	if (print(&output, linked) && output.text.size)
		buffer_text(&output.text, name + size);
	else
		output.text.err = output.text.err ? output.text.err : -EINVAL;
	if (output.text.err) {
		buffer_done(&output.text);
		return NULL;
	}
	return output.text.data;
}
