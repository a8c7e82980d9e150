// SPDX-License-Identifier: Apache-2.0
/* resolver_files: resolves names in files: of programs and libraries, of JIT code, and the kernel's lines. Sends one request for each file
 * or process, and one for the kernel, to the worker that reads untrusted files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "naming/debug_roots.h"
#include "naming/kernel_lines.h"
#include "naming/resolver_private.h"
#include "proxy/credentials.h"
#include "symbolize/name_answers.h"

#define ANSWERS_BYTES_MAX ((size_t)1 << 30)

/* One address of a request: in a file, in a process's JIT code, or in the kernel. */
struct asked {
	uint64_t address; /* of the instruction, or in the call */
	uint32_t source;  /* object or tgid; 0: the kernel */
	uint32_t where;
	bool in_elf;
};

static int by_source(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	if (x->in_elf != y->in_elf)
		return x->in_elf ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* key: under which to cache the names for later windows; NULL: do not cache, the addresses may have other names then. */
static int take_answers(struct resolver *resolver, const struct asked *asked, struct name_cache_key *key, struct name_answers *answers)
{
	for (uint32_t i = 0; i < answers->nr_addresses; i++) {
		struct symbol_name names[NAME_ANSWERS_MAX];
		struct symbol_extent extent;
		uint32_t nr = name_answers_next(answers, &extent, names, NAME_ANSWERS_MAX);

		if (nr && resolver_add(resolver, asked[i].where, names, nr))
			return -ENOMEM;
		if (!key || !resolver->naming->cache)
			continue;
		key->address = asked[i].address;
		name_cache_add(resolver->naming->cache, key, &extent, names, nr);
	}
	return 0;
}

/* Finds names that were looked up in the root of a process with the same rank or a higher one. A process of lower rank may have no debug
 * files, or forged ones; its names do not count for the others. */
static bool find_known(struct name_cache *cache, struct name_cache_key key, struct symbol_name *names, uint32_t *ret_nr)
{
	uint64_t rank = key.rank;

	for (key.rank = CREDENTIALS_OUR_RANK; key.rank > rank; key.rank--) {
		if (name_cache_find(cache, &key, names, NAME_ANSWERS_MAX, ret_nr))
			return true;
	}
	return name_cache_find(cache, &key, names, NAME_ANSWERS_MAX, ret_nr);
}

/* Takes the names known from earlier windows. Moves the addresses still to be looked up to the front; *ret_nr is their number. */
static int take_known(struct resolver *resolver, struct name_cache_key key, struct asked *asked, uint32_t nr, uint32_t *ret_nr)
{
	struct symbol_name names[NAME_ANSWERS_MAX];
	uint32_t nr_names, nr_left = 0;

	for (uint32_t i = 0; i < nr; i++) {
		key.address = asked[i].address;
		if (!resolver->naming->cache || !find_known(resolver->naming->cache, key, names, &nr_names))
			asked[nr_left++] = asked[i];
		else if (nr_names && resolver_add(resolver, asked[i].where, names, nr_names))
			return -ENOMEM;
	}
	*ret_nr = nr_left;
	return 0;
}

static int ask_names(const struct resolver *resolver, const struct parser_names *request, struct diag *diag, struct buffer *bytes,
		     struct name_answers *ret_answers)
{
	int err = parser_names(resolver->naming->parser, request, diag, bytes);

	return err ? err : name_answers_open(bytes->data, bytes->size, request->nr, ret_answers);
}

/* Uses the fetched debug file, if there is one. If the request fails with it, repeats the request without. */
static int ask_with_fetched(struct resolver *resolver, struct location_file *file, struct parser_names *request, struct diag *diag,
			    struct buffer *bytes, struct name_answers *ret_answers)
{
	struct diag refusal = { 0 };
	int err;

	request->fetched_fd = file->fetched_fd;
	request->has_fetched = request->fetched_fd >= 0;
	if (!request->has_fetched)
		return ask_names(resolver, request, diag, bytes, ret_answers);
	err = ask_names(resolver, request, &refusal, bytes, ret_answers);
	if (!err && !ret_answers->nr_refused)
		return 0;
	file->is_refused = true;
	account_note(profile_account(resolver->profile), "the debug file that debuginfod gave for %s is not used: %s", request->path,
		     refusal.text[0] ? refusal.text : "it is damaged, or another file's");
	if (!err)
		return 0;
	request->has_fetched = false;
	buffer_done(bytes);
	return ask_names(resolver, request, diag, bytes, ret_answers);
}

static uint64_t *addresses_of(const struct asked *asked, uint32_t nr)
{
	uint64_t *addresses = calloc(nr, sizeof(*addresses));

	for (uint32_t i = 0; addresses && i < nr; i++)
		addresses[i] = asked[i].address;
	return addresses;
}

/* Is there no time left to read files? Counts the file as skipped. */
static bool is_skipped(struct resolver *resolver)
{
	bool is_in_haste = clock_is_past(resolver->naming->haste_ns);

	resolver->nr_skipped += is_in_haste;
	return is_in_haste;
}

/* Returns the time of the last change that the kernel knows without a request to the file system's server; 0: not known. Not the
 * modification time, which whoever writes the file may set. */
static int64_t written_ns(const struct elf_file *elf)
{
	struct statx status;

	if (!elf || elf_file_fd(elf) < 0 || statx(elf_file_fd(elf), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_CTIME, &status))
		return 0;
	return status.stx_ctime.tv_sec * (int64_t)NS_PER_S + status.stx_ctime.tv_nsec;
}

/* May the names be cached for later windows? Not if they are from a process of the lowest rank, which counts for no other. Nor if the
 * process has ended meanwhile: its debug files may not have been reachable. */
static bool is_kept(const struct location_file *file)
{
	if (!file->asker)
		return true;
	return file->asker_rank > CREDENTIALS_OWN_RANK &&
	       credentials_rank(file->asker, elf_file_owner(file->object.elf)) == file->asker_rank;
}

/* Resolves `nr` locations in one file. Notes in the account what cannot be read; those locations get no names. */
static int read_file(struct resolver *resolver, struct asked *asked, uint32_t nr)
{
	struct location_file *file = location_files_file(resolver->files, asked->source);
	struct account *account = profile_account(resolver->profile);
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	CLEANUP(freep) uint64_t *addresses = NULL;
	struct name_cache_key key = { .file = file->object.serial,
				      .written_ns = written_ns(file->object.elf),
				      .fetched = file->fetched_fd >= 0,
				      .rank = file->asker_rank };
	struct parser_names request = {
		.elf = file->object.elf, .path = file->object.path, .lines = resolver->naming->lines, .open = debug_asker_open
	};
	struct debug_asker asker;
	struct name_answers answers;
	struct diag diag = { 0 };
	int err = take_known(resolver, key, asked, nr, &request.nr);

	if (err || !request.nr || !request.elf || is_skipped(resolver)) /* no elf: it was closed and could not be reopened */
		return err;
	request.elf_vaddrs = addresses = addresses_of(asked, request.nr);
	if (!addresses)
		return -ENOMEM;
	request.open_arg = &asker;
	debug_asker_init(&asker, resolver->naming->proxy, file->asker ? file->asker : location_at(resolver->table, asked->where)->tgid,
			 &file->object);
	err = ask_with_fetched(resolver, file, &request, &diag, &bytes, &answers);
	if (err == -ECANCELED)
		resolver->nr_skipped++;
	else if (err && (err != -EDQUOT || diag.text[0]))
		account_note(account, "names of %s refused: %s", file->object.path, diag.text[0] ? diag.text : strerror(-err));
	if (err)
		return 0;
	if (answers.nr_missing)
		account_note(account, "%u .dwo files with the inlined functions of %s are missing", answers.nr_missing,
			     file->object.path);
	if (answers.nr_packed)
		account_note(account, "no lines of %s: they are not compressed by zlib, or need too much memory", file->object.path);
	if (answers.nr_cut)
		account_note(account, "lines of %s are not complete: %u units are damaged or too large", file->object.path, answers.nr_cut);
	return take_answers(resolver, asked, is_kept(file) ? &key : NULL, &answers);
}

/* Does the same for the JIT code of one process. */
static int read_jit(struct resolver *resolver, const struct asked *asked, uint32_t nr)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	CLEANUP(freep) uint64_t *addresses = addresses_of(asked, nr);
	const struct jit_files *files = location_files_jit(resolver->files, asked->source);
	struct account *account = profile_account(resolver->profile);
	struct name_answers answers;
	struct diag diag = { 0 };
	int err;

	if (!addresses)
		return -ENOMEM;
	if (files->nr_refused)
		account_note(account, "%u files with names of the JIT code of process %u are not read: %s", files->nr_refused,
			     asked->source, strerror(-files->refusal));
	if (!files->nr || is_skipped(resolver))
		return 0;
	err = parser_jit(resolver->naming->parser, files->fds, files->nr, addresses, nr, &diag, &bytes);
	if (!err)
		err = name_answers_open(bytes.data, bytes.size, nr, &answers);
	resolver->nr_skipped += err == -ECANCELED;
	if (err == -ECANCELED || (err == -EDQUOT && !diag.text[0]))
		return 0;
	if (err) {
		account_note(account, "names of the JIT code of process %u refused: %s", asked->source,
			     diag.text[0] ? diag.text : strerror(-err));
		return 0;
	}
	if (answers.nr_refused)
		account_note(account, "%u names of the JIT code of process %u make no sense, or are too many", answers.nr_refused,
			     asked->source);
	return take_answers(resolver, asked, NULL, &answers);
}

/* The function that the code belongs to keeps its name in the running kernel. Ignores the file's answer for code of a module, and where the
 * running kernel has another function: such code is not in this file. 0 or -ENOMEM. */
static int take_kernel_answers(struct resolver *resolver, const struct kernel_lines *lines, const struct asked *asked,
			       struct name_answers *answers)
{
	for (uint32_t i = 0; i < answers->nr_addresses; i++) {
		struct symbol_name names[NAME_ANSWERS_MAX], outermost;
		const struct symbol_extent alone = { 0 };
		struct symbol_extent in_file; /* the running kernel may have another function at a part of it */
		uint32_t nr = name_answers_next(answers, &in_file, names, NAME_ANSWERS_MAX);

		if (!nr || resolver_kernel_name(resolver, location_at(resolver->table, asked[i].where), &outermost) ||
		    strchr(outermost.name, '[') || outermost.start != kernel_lines_kaddr(lines, names[nr - 1].start))
			continue;
		outermost.file = names[nr - 1].file;
		outermost.line = names[nr - 1].line;
		outermost.start_line = names[nr - 1].start_line;
		names[nr - 1] = outermost;
		if (resolver_add(resolver, asked[i].where, names, nr))
			return -ENOMEM;
		if (resolver->naming->cache)
			name_cache_add(resolver->naming->cache, &(struct name_cache_key){ .address = asked[i].address }, &alone, names, nr);
	}
	return 0;
}

/* Looks up source lines and inlined functions of the kernel, if there is a vmlinux for it. */
static int read_kernel(struct resolver *resolver, struct asked *asked, uint32_t nr)
{
	CLEANUP(freep) uint64_t *addresses = NULL;
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(ANSWERS_BYTES_MAX);
	CLEANUP(kernel_lines_freep) struct kernel_lines *lines = NULL;
	struct account *account = profile_account(resolver->profile);
	struct debug_asker asker = { .proxy = resolver->naming->proxy };
	struct name_answers answers;
	struct diag diag = { 0 };
	int err = take_known(resolver, (struct name_cache_key){ 0 }, asked, nr, &nr);

	if (err || !nr || is_skipped(resolver))
		return err;
	addresses = addresses_of(asked, nr);
	if (!addresses)
		return -ENOMEM;
	err = kernel_lines_open(resolver->naming->vmlinux, &diag, &lines);
	if (err) {
		if (diag.text[0])
			account_note(account, "no source lines of the kernel: %s", diag.text);
		return err == -ENOMEM ? err : 0;
	}
	err = kernel_lines_ask(lines, resolver->naming->parser, addresses, nr, debug_asker_open, &asker, &diag, &bytes);
	if (!err)
		err = name_answers_open(bytes.data, bytes.size, nr, &answers);
	resolver->nr_skipped += err == -ECANCELED;
	if (err == -ECANCELED)
		return 0;
	if (err) {
		account_note(account, "no source lines of the kernel: %s refused: %s", kernel_lines_path(lines),
			     diag.text[0] ? diag.text : strerror(-err));
		return 0;
	}
	return take_kernel_answers(resolver, lines, asked, &answers);
}

static int read_source(struct resolver *resolver, struct asked *asked, uint32_t nr)
{
	if (asked->in_elf)
		return read_file(resolver, asked, nr);
	return asked->source ? read_jit(resolver, asked, nr) : read_kernel(resolver, asked, nr);
}

int resolver_read_files(struct resolver *resolver)
{
	uint32_t nr_locations = location_nr(resolver->table), nr = 0, next;
	CLEANUP(freep) struct asked *asked = calloc(nr_locations + 1, sizeof(*asked));

	if (!asked)
		return -ENOMEM;
	for (uint32_t i = 0; resolver->naming->parser && i < nr_locations; i++) {
		const struct location *where = location_at(resolver->table, i);

		if (where->in_elf && resolver->naming->addresses)
			continue;
		if (where->tgid || resolver->naming->lines) /* JIT code may be in a file, too: .NET's /memfd:doublemapper */
			asked[nr++] = (struct asked){ .in_elf = where->in_elf,
						      .source = where->in_elf ? where->object : where->tgid,
						      .where = i,
						      .address = resolver_code(resolver, where) };
	}
	qsort(asked, nr, sizeof(*asked), by_source);
	for (uint32_t first = 0; first < nr; first = next) {
		for (next = first; next < nr && asked[next].in_elf == asked[first].in_elf && asked[next].source == asked[first].source;
		     next++)
			;
		if (read_source(resolver, asked + first, next - first))
			return -ENOMEM;
	}
	return 0;
}
