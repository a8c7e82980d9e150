// SPDX-License-Identifier: Apache-2.0
#include "frames/language.h"

#include <string.h>

static const char c[] = "C", cxx[] = "C++", rust[] = "Rust", go[] = "Go", fortran[] = "Fortran", assembly[] = "assembly",
		  native[] = "native", kernel[] = "kernel", jit[] = "JIT or anonymous", unknown[] = "not known";

static const struct {
	const char *suffix, *language;
} suffixes[] = {
	{ ".c", c },	    { ".h", c },	{ ".cc", cxx },	      { ".cpp", cxx },	   { ".cxx", cxx },
	{ ".hpp", cxx },    { ".hh", cxx },	{ ".C", cxx },	      { ".rs", rust },	   { ".go", go },
	{ ".s", assembly }, { ".S", assembly }, { ".asm", assembly }, { ".f90", fortran }, { ".f", fortran },
};

/* The Itanium C++ ABI begins with "_Z". So does Rust's old mangling, which ends in a hash of 16 digits. Its new one begins with "_R". */
static const char *by_mangling(const char *name)
{
	size_t size = strlen(name);

	if (name[0] == '_' && name[1] == 'R')
		return rust;
	if (name[0] != '_' || name[1] != 'Z')
		return native;
	return size > 20 && !memcmp(name + size - 20, "17h", 3) && name[size - 1] == 'E' &&
		       strspn(name + size - 17, "0123456789abcdef") == 16
		   ? rust
		   : cxx;
}

static const char *of_native(const struct profile *profile, const struct profile_function *function)
{
	const char *dot = strrchr(profile_string_text(profile, function->file), '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(suffixes); i++) {
		if (!strcmp(dot, suffixes[i].suffix))
			return suffixes[i].language;
	}
	return by_mangling(profile_string_text(profile, function->system_name));
}

const char *language_of(const struct profile *profile, uint32_t number)
{
	const struct profile_location *location = profile_location_at(profile, number);

	switch (location->kind) {
	case FRAME_KERNEL:
		return kernel;
#define X(id, name, shown, ...) \
	case FRAME_##id: \
		return shown;
	SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	case FRAME_NATIVE:
		break;
	default:
		return unknown;
	}
	if (location->mapping == PROFILE_NONE && location->pc &&
	    *profile_string_text(profile, profile_function_at(profile, location->function)->file) == '\0')
		return jit;
	return of_native(profile, profile_function_at(profile, location->function));
}
