// SPDX-License-Identifier: Apache-2.0
#include "runtime/perl/perl_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/perl/perl_tables.h"

#define MAX_KEY_BYTES 4096

struct names {
	const struct runtime_image *image;
	const struct runtime_memory *memory;
	const struct sonde_perl *perl;
};

static int read_at(const struct names *names, uint64_t from, void *to, size_t size)
{
	return names->memory->read(names->memory->arg, from, to, size);
}

static int read_u64(const struct names *names, uint64_t from, uint64_t *ret)
{
	return read_at(names, from, ret, sizeof(*ret));
}

static void append_latin1(char *to, size_t size, const char *bytes, size_t nr)
{
	size_t used = strlen(to);

	for (size_t i = 0; i < nr && utf8_append(to, size, &used, (unsigned char)bytes[i]); i++)
		;
}

/* Appends a HEK: {hash, length, key, NUL, flags}. */
static int append_hek(const struct names *names, uint64_t hek, char *to, size_t size)
{
	char key[MAX_KEY_BYTES + 2];
	int32_t len;
	int err = read_at(names, hek + PERL_HEK_LEN, &len, sizeof(len));

	if (err)
		return err;
	if (len <= 0 || len > MAX_KEY_BYTES)
		return -EBADMSG;
	err = read_at(names, hek + PERL_HEK_KEY, key, (size_t)len + 2);
	if (err)
		return err;
	if (key[len])
		return -EBADMSG;
	if (key[len + 1] & PERL_HEK_UTF8)
		utf8_append_text(to, size, key, (size_t)len);
	else
		append_latin1(to, size, key, (size_t)len);
	return 0;
}

struct sv {
	uint64_t any;
	uint32_t refs, flags;
	uint64_t u;
};

static int read_sv(const struct names *names, uint64_t at, uint32_t type, struct sv *ret_sv)
{
	int err = read_at(names, at, ret_sv, sizeof(*ret_sv));

	if (err)
		return err;
	return (ret_sv->flags & SONDE_PERL_SV_TYPE_MASK) == type ? 0 : -ESTALE;
}

/* Finds the struct xpvhv_aux of a package. */
static int aux_of(const struct names *names, const struct sv *stash, uint64_t *ret_aux)
{
	uint64_t max;
	int err;

	if (!(stash->flags & PERL_SV_HV_HAS_AUX))
		return -EBADMSG;
	if (names->image->version[1] >= PERL_FIRST_AUX_IN_BODY) {
		*ret_aux = stash->any + PERL_XPVHV_BYTES;
		return 0;
	}
	err = read_u64(names, stash->any + PERL_XPVHV_MAX, &max);
	*ret_aux = stash->u + 8 * (max + 1);
	return err;
}

/* Appends "Package::". A deleted package (NULL, or without a name) is __ANON__, as in Perl itself. */
static int append_package(const struct names *names, uint64_t at, char *to, size_t size)
{
	uint64_t aux, name = 0;
	struct sv stash;
	int32_t count;
	int err = 0;

	if (at) {
		err = read_sv(names, at, SONDE_PERL_SVT_HV, &stash);
		if (!err)
			err = aux_of(names, &stash, &aux);
		if (!err)
			err = read_u64(names, aux + PERL_AUX_NAME, &name);
		if (!err)
			err = read_at(names, aux + PERL_AUX_NAME_COUNT, &count, sizeof(count));
		if (!err && count && name)
			err = read_u64(names, name, &name);
	}
	if (!err && name)
		err = append_hek(names, name, to, size);
	else if (!err)
		utf8_append_text(to, size, "__ANON__", 8);
	utf8_append_text(to, size, "::", 2);
	return err;
}

/* The line of a sub's first statement; 0: not known. */
static uint32_t first_line(const struct names *names, uint64_t cv_at)
{
	uint32_t words[2], flags, op = names->perl->op_nextstate;
	struct sv cv;
	uint64_t start;

	if (!op || read_sv(names, cv_at, SONDE_PERL_SVT_CV, &cv) ||
	    read_at(names, cv.any + SONDE_PERL_XPVCV_FLAGS, &flags, sizeof(flags)) || flags & SONDE_PERL_CV_ISXSUB ||
	    read_u64(names, cv.any + SONDE_PERL_XPVCV_START, &start) || read_at(names, start + SONDE_PERL_OP_TYPE, words, sizeof(words)))
		return 0;
	return (words[0] & SONDE_PERL_OP_TYPE_MASK) - op <= 1 && words[1] <= SONDE_PERL_MAX_LINE ? words[1] : 0;
}

/* Resolves a sub that contains its own name. */
static int name_by_cv(const struct names *names, uint64_t at, struct runtime_function *ret)
{
	struct sv cv;
	uint64_t hek, stash;
	uint32_t flags;
	int err = read_sv(names, at, SONDE_PERL_SVT_CV, &cv);

	if (!err)
		err = read_at(names, cv.any + SONDE_PERL_XPVCV_FLAGS, &flags, sizeof(flags));
	if (!err && !(flags & SONDE_PERL_CV_NAMED))
		err = -ESTALE;
	if (!err)
		err = read_u64(names, cv.any + SONDE_PERL_XPVCV_GV, &hek);
	if (!err)
		err = read_u64(names, cv.any + SONDE_PERL_XPVCV_STASH, &stash);
	if (!err && !(flags & SONDE_PERL_CV_LEXICAL))
		err = append_package(names, stash, ret->name, sizeof(ret->name));
	if (!err)
		err = append_hek(names, hek, ret->name, sizeof(ret->name));
	if (!err)
		ret->start_line = first_line(names, at);
	return err;
}

/* Reads a glob's {name, package}. */
static int read_gv(const struct names *names, uint64_t at, struct sv *ret_gv, uint64_t ret_name[2])
{
	int err = read_sv(names, at, SONDE_PERL_SVT_GV, ret_gv);

	if (!err && !(ret_gv->flags & PERL_SV_GV_HAS_GP))
		err = -ESTALE;
	return err ? err : read_at(names, ret_gv->any + PERL_XPVGV_NAME, ret_name, 16);
}

/* Resolves a sub by its glob, or by the glob of which this one is an alias by now. */
static int name_by_gv(const struct names *names, uint64_t at, struct runtime_function *ret)
{
	uint64_t name[2], egv = 0, cv = 0;
	struct sv gv, other;
	int err = read_gv(names, at, &gv, name);

	if (!err && gv.u) {
		err = read_u64(names, gv.u + PERL_GP_EGV, &egv);
		if (!err)
			err = read_u64(names, gv.u + PERL_GP_CV, &cv);
	}
	if (!err && egv && egv != at)
		err = read_gv(names, egv, &other, name);
	if (!err)
		err = append_package(names, name[1], ret->name, sizeof(ret->name));
	if (!err)
		err = append_hek(names, name[0], ret->name, sizeof(ret->name));
	if (!err && cv)
		ret->start_line = first_line(names, cv);
	return err;
}

static int name_of(const struct names *names, uint64_t code, struct runtime_function *ret)
{
	switch (code) {
	case SONDE_PERL_CODE_MAIN:
		snprintf(ret->name, sizeof(ret->name), "<main>");
		return 0;
	case SONDE_PERL_CODE_EVAL:
		snprintf(ret->name, sizeof(ret->name), "(eval)");
		return 0;
	case SONDE_PERL_CODE_FILE:
		snprintf(ret->name, sizeof(ret->name), "(require)");
		return 0;
	}
	if (code & SONDE_PERL_CODE_CV)
		return name_by_cv(names, code & ~(uint64_t)SONDE_PERL_CODE_CV, ret);
	return name_by_gv(names, code, ret);
}

/* Takes "(eval 12)" as "(eval)": see abi/perl.h. */
static void take_file(struct runtime_function *ret, const char *bytes, size_t nr)
{
	if (nr > 6 && !memcmp(bytes, "(eval ", 6))
		nr = (bytes = "(eval)", 6);
	utf8_append_text(ret->file, sizeof(ret->file), bytes, nr);
}

/* Without threads: the name of the glob, after "_<". */
static int file_by_gv(const struct names *names, uint64_t at, struct runtime_function *ret)
{
	char key[RUNTIME_FILE_BYTES] = "";
	uint64_t name[2];
	struct sv gv;
	int err = read_gv(names, at, &gv, name);

	if (!err)
		err = append_hek(names, name[0], key, sizeof(key));
	if (!err && !memcmp(key, "_<", 2))
		take_file(ret, key + 2, strlen(key + 2));
	return err;
}

static int file_by_text(const struct names *names, uint64_t at, uint32_t check, struct runtime_function *ret)
{
	char text[RUNTIME_FILE_BYTES];
	uint64_t begin = 0;
	size_t nr = 0, piece;
	int err = 0;

	while (nr < sizeof(text)) { /* only to the end of the page: the next one may not be mapped */
		piece = 4096 - ((at + nr) & 4095);
		if (piece > sizeof(text) - nr)
			piece = sizeof(text) - nr;
		err = read_at(names, at + nr, text + nr, piece);
		if (err || memchr(text + nr, '\0', piece))
			break;
		nr += piece;
	}
	if (err)
		return err;
	nr = strnlen(text, sizeof(text));
	memcpy(&begin, text, nr < sizeof(begin) ? nr : sizeof(begin));
	if (SONDE_PERL_CHECK(begin) == check)
		take_file(ret, text, nr);
	return 0;
}

/* If the file's name was freed, the file is unknown. */
static int file_of(const struct names *names, const struct sonde_runtime_frame *frame, struct runtime_function *ret)
{
	uint64_t file = frame->where & SONDE_PERL_FILE_MASK;
	int err = 0;

	if (file == SONDE_PERL_FILE_EVAL)
		snprintf(ret->file, sizeof(ret->file), "(eval)");
	else if (file != SONDE_PERL_FILE_UNKNOWN && names->perl->process.root.kind == SONDE_TLS_NONE)
		err = file_by_gv(names, file, ret);
	else if (file != SONDE_PERL_FILE_UNKNOWN)
		err = file_by_text(names, file, frame->cookie >> 24, ret);
	return err == -ESRCH ? err : 0;
}

int perl_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		  const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct names names = { .image = image, .memory = memory, .perl = process };
	struct runtime_function function;
	uint32_t anonymous_line = frame->cookie >> 4 & SONDE_PERL_MAX_LINE;
	int err;

	memset(&function, 0, sizeof(function));
	err = name_of(&names, frame->code, &function);
	if (!err)
		err = file_of(&names, frame, &function);
	if (err)
		return err;
	function.line = (uint32_t)(frame->where >> 48) | (frame->cookie & 15) << 16;
	if (anonymous_line)
		function.start_line = anonymous_line;
	*ret_function = function;
	return 0;
}
