// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "store/sqlite_api.h"

#define MEMORY	"file:/sonde-store?vfs=memdb" /* the slash: shared by the handles of this process */
#define BUSY_MS 5000 /* another handle's transaction is one window long */

struct store {
	struct sqlite_api sqlite;
	sqlite3 *db;
	int lock_fd; /* -1: not the owner */
};

/* What was frozen was delivered before, as windows: a destination would count it twice. */
#define IS_SENT "type NOT IN ('" STORE_INCIDENT "', '" STORE_CRASH "')"

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS window(id INTEGER PRIMARY KEY AUTOINCREMENT, profile_id BLOB NOT NULL, type TEXT NOT NULL,"
	" start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, body BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS destination(name TEXT PRIMARY KEY, delivered INTEGER NOT NULL DEFAULT 0,"
	" evicted INTEGER NOT NULL DEFAULT 0);";

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return EUCLEAN;
	case SQLITE_CANTOPEN:
		return ENOENT;
	case SQLITE_READONLY:
		return EROFS;
	default:
		return EIO;
	}
}

static int fail(struct store *store, int code, struct diag *diag)
{
	return diag_errno(diag, errno_of(code), "the store: %s", store->sqlite.errmsg(store->db));
}

struct statement {
	const struct sqlite_api *sqlite;
	sqlite3_stmt *handle;
};

static void statement_done(struct statement *statement)
{
	if (statement->handle)
		statement->sqlite->finalize(statement->handle);
}

static int run(struct store *store, const char *sql, struct diag *diag)
{
	int code = store->sqlite.exec(store->db, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : fail(store, code, diag);
}

static int prepare(struct store *store, const char *sql, struct diag *diag, struct statement *statement)
{
	int code;

	statement->sqlite = &store->sqlite;
	code = store->sqlite.prepare_v2(store->db, sql, -1, &statement->handle, NULL);

	return code == SQLITE_OK ? 0 : fail(store, code, diag);
}

/* 1: a row; 0: the end. */
static int step(struct store *store, const struct statement *statement, struct diag *diag)
{
	int code = store->sqlite.step(statement->handle);

	return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : fail(store, code, diag);
}

/* SQLite's integers are signed; no time or id of ours reaches the sign. */
static sqlite3_int64 clamp(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value;
}

/* In a directory that another user may write, the files of the store may be links to anywhere. */
static int check_owner(const char *directory, struct diag *diag)
{
	struct stat status;

	if (stat(directory, &status) < 0)
		return diag_errno(diag, errno, "%s: %s", directory, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return diag_errno(diag, ENOTDIR, "%s is no directory", directory);
	if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH))
		return diag_errno(diag, EPERM, "other users may write %s: the store needs a directory of its own", directory);
	return 0;
}

static int lock(struct store *store, const char *directory, struct diag *diag)
{
	char path[PATH_MAX], holder[16] = "";
	int length = snprintf(path, sizeof(path), "%s/lock", directory);

	if (length < 0 || (size_t)length >= sizeof(path))
		return diag_errno(diag, ENAMETOOLONG, "the store's path is too long");
	store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (store->lock_fd < 0)
		return diag_errno(diag, errno, "open %s: %s", path, strerror(errno));
	if (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		ssize_t size = pread(store->lock_fd, holder, sizeof(holder) - 1, 0);

		holder[size < 0 ? 0 : strspn(holder, "0123456789")] = '\0';
		return diag_errno(diag, EBUSY, "another agent has the store %s: process %s", directory, *holder ? holder : "unknown");
	}
	length = snprintf(holder, sizeof(holder), "%d\n", getpid());
	/* A full disk only takes the name from the message of the next agent. */
	if (ftruncate(store->lock_fd, 0) < 0 || pwrite(store->lock_fd, holder, (size_t)length, 0) < 0)
		return 0;
	return 0;
}

static int check(struct store *store, struct diag *diag)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, "PRAGMA quick_check(1)", diag, &statement);

	err = err ? err : step(store, &statement, diag);
	if (err < 0)
		return err;
	if (!err || strcmp((const char *)store->sqlite.column_text(statement.handle, 0) ?: "", "ok"))
		return diag_errno(diag, EUCLEAN, "the store is corrupt");
	return 0;
}

/* A reader without write permission cannot make the log's index. Without a log there is nothing to index. `path` NULL: in memory. */
static int open_db(struct store *store, const char *path, enum store_mode mode)
{
	static const int flags[] = { [STORE_OWN] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
				     [STORE_DELIVER] = SQLITE_OPEN_READWRITE,
				     [STORE_READ] = SQLITE_OPEN_READONLY };
	CLEANUP(freep) char *log = NULL, *uri = NULL;
	CLEANUP(closep) int fd = -1;

	if (!path)
		return store->sqlite.open_v2(MEMORY, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL);
	if (mode == STORE_OWN) /* SQLite makes it readable for all, and its log like it */
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (asprintf(&log, "%s-wal", path) < 0 || asprintf(&uri, "file:%s?immutable=1", path) < 0)
		return SQLITE_NOMEM;
	if (mode == STORE_READ && access(log, F_OK) && !strpbrk(path, "?#%"))
		return store->sqlite.open_v2(uri, &store->db, flags[mode] | SQLITE_OPEN_URI, NULL);
	return store->sqlite.open_v2(path, &store->db, flags[mode], NULL);
}

static int connect_db(struct store *store, const char *path, enum store_mode mode, struct diag *diag)
{
	int code = open_db(store, path, mode), err;

	if (code != SQLITE_OK)
		return fail(store, code, diag);
	store->sqlite.busy_timeout(store->db, BUSY_MS);
	/* the last one reads the file */
	err = run(store, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA schema_version", diag);
	if (!err && mode != STORE_READ)
		err = run(store, "PRAGMA synchronous=NORMAL", diag);
	if (!err && mode == STORE_OWN)
		err = run(store, path ? "PRAGMA journal_mode=WAL; PRAGMA journal_size_limit=4194304" : "PRAGMA journal_mode=MEMORY", diag);
	if (!err && mode == STORE_OWN)
		err = check(store, diag);
	return err || mode != STORE_OWN ? err : run(store, schema, diag);
}

/* The log goes along: SQLite would apply it to the new database. */
static int move_aside(const char *path, struct diag *diag, char **ret_aside)
{
	CLEANUP(freep) char *aside = NULL, *log = NULL, *log_aside = NULL, *index = NULL;

	if (asprintf(&aside, "%s.corrupt-%llu", path, (unsigned long long)time(NULL)) < 0 || asprintf(&log, "%s-wal", path) < 0 ||
	    asprintf(&log_aside, "%s-wal", aside) < 0 || asprintf(&index, "%s-shm", path) < 0)
		return -ENOMEM;
	if ((rename(log, log_aside) < 0 && errno != ENOENT) || (unlink(index) < 0 && errno != ENOENT) || rename(path, aside) < 0)
		return diag_errno(diag, errno, "move the corrupt store %s aside: %s", path, strerror(errno));
	*ret_aside = MOVE(aside);
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	if (store->db)
		store->sqlite.close(store->db);
	closep(&store->lock_fd);
	free(store);
}

/* The owner's check, which others' directories do not pass, and its lock. */
static int take_directory(struct store *store, const char *directory, struct diag *diag)
{
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return diag_errno(diag, errno, "create %s: %s", directory, strerror(errno));
	return check_owner(directory, diag) ?: lock(store, directory, diag);
}

int store_open(const char *directory, enum store_mode mode, struct diag *diag, char **ret_aside, struct store **ret_store)
{
	CLEANUP(store_closep) struct store *store = calloc(1, sizeof(*store));
	CLEANUP(freep) char *path = NULL, *aside = NULL;
	struct diag first = { 0 };
	bool in_memory = store_is_in_memory(directory);
	int err = 0;

	if (!store)
		return -ENOMEM;
	store->lock_fd = -1;
	err = sqlite_api_load(&store->sqlite, diag);
	if (err)
		return err;
	if (!in_memory && asprintf(&path, "%s/profiles.db", directory) < 0)
		return -ENOMEM;
	err = mode == STORE_OWN && !in_memory ? take_directory(store, directory, diag) : 0;
	if (err)
		return err;
	err = connect_db(store, path, mode, &first);
	if (err == -EUCLEAN && mode == STORE_OWN && path) {
		store->sqlite.close(MOVE(store->db));
		err = move_aside(path, diag, &aside);
		err = err ? err : connect_db(store, path, mode, diag);
	} else if (err) {
		diag_errno(diag, -err, "%s", first.text);
	}
	if (err)
		return err;
	if (mode == STORE_OWN)
		*ret_aside = MOVE(aside);
	*ret_store = MOVE(store);
	return 0;
}

int store_draw_id(struct store_row *row, struct diag *diag)
{
	if (getrandom(row->profile_id, sizeof(row->profile_id), 0) == sizeof(row->profile_id))
		return 0;
	return diag_errno(diag, errno, "no random numbers: %s", strerror(errno));
}

int store_add(struct store *store, const struct store_row *row, struct diag *diag)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	CLEANUP(freep) void *packed = NULL;
	size_t size = 0;
	int err;

	err = packed_body_make(row->body, row->body_bytes, diag, &packed, &size);
	if (!err)
		err = prepare(store, "INSERT INTO window(profile_id, type, start_ns, end_ns, body) VALUES(?, ?, ?, ?, ?)", diag,
			      &statement);
	if (err)
		return err;
	store->sqlite.bind_blob(statement.handle, 1, row->profile_id, sizeof(row->profile_id), SQLITE_STATIC);
	store->sqlite.bind_text(statement.handle, 2, row->type, -1, SQLITE_STATIC);
	store->sqlite.bind_int64(statement.handle, 3, clamp(row->start_ns));
	store->sqlite.bind_int64(statement.handle, 4, clamp(row->end_ns));
	store->sqlite.bind_blob64(statement.handle, 5, packed, size, SQLITE_STATIC);
	return step(store, &statement, diag);
}

static int find_cut(struct store *store, uint64_t oldest_ns, uint64_t max_bytes, struct diag *diag, sqlite3_int64 *ret_id)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, "SELECT max(coalesce((SELECT max(id) FROM window WHERE end_ns < ?), 0), coalesce((SELECT max(id) FROM"
		" (SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS held FROM window) WHERE held > ?), 0))", diag, &statement);

	if (err)
		return err;
	store->sqlite.bind_int64(statement.handle, 1, clamp(oldest_ns));
	store->sqlite.bind_int64(statement.handle, 2, clamp(max_bytes));
	err = step(store, &statement, diag);
	if (err < 0)
		return err;
	*ret_id = store->sqlite.column_int64(statement.handle, 0);
	return 0;
}

static int run_with_id(struct store *store, const char *sql, sqlite3_int64 id, struct diag *diag)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, sql, diag, &statement);

	if (err)
		return err;
	store->sqlite.bind_int64(statement.handle, 1, id);
	return step(store, &statement, diag);
}

static int count_unsent(struct store *store, sqlite3_int64 cut, struct diag *diag, uint64_t *ret_nr)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, "SELECT coalesce(sum((SELECT count(*) FROM window WHERE id <= ? AND id > delivered AND " IS_SENT
		")), 0) FROM destination", diag, &statement);

	if (err)
		return err;
	store->sqlite.bind_int64(statement.handle, 1, cut);
	err = step(store, &statement, diag);
	if (err < 0)
		return err;
	*ret_nr = (uint64_t)store->sqlite.column_int64(statement.handle, 0);
	return 0;
}

int store_evict(struct store *store, uint64_t oldest_ns, uint64_t max_bytes, struct diag *diag, struct store_evicted *ret_evicted)
{
	struct store_evicted evicted = { 0 };
	sqlite3_int64 cut = 0;
	int err = run(store, "BEGIN IMMEDIATE", diag);

	if (err)
		return err;
	err = find_cut(store, oldest_ns, max_bytes, diag, &cut);
	if (!err)
		err = count_unsent(store, cut, diag, &evicted.nr_unsent);
	if (!err)
		err = run_with_id(store, "UPDATE destination SET evicted = evicted +"
			" (SELECT count(*) FROM window WHERE id <= ? AND id > delivered AND " IS_SENT ")", cut, diag);
	if (!err)
		err = run_with_id(store, "DELETE FROM window WHERE id <= ?", cut, diag);
	if (!err)
		evicted.nr = (uint64_t)store->sqlite.changes(store->db);
	if (!err)
		err = run(store, "COMMIT", diag);
	if (!err)
		*ret_evicted = evicted;
	if (err)
		store->sqlite.exec(store->db, "ROLLBACK", NULL, NULL, NULL); /* fails where SQLite has rolled back by itself */
	return err;
}

int store_forget_delivered(struct store *store, struct diag *diag)
{
	return run(store, "DELETE FROM window WHERE id <= (SELECT min(delivered) FROM destination)", diag);
}

int store_size(struct store *store, struct diag *diag, uint64_t *ret_nr, uint64_t *ret_bytes)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, "SELECT count(*), coalesce(sum(length(body)), 0) FROM window", diag, &statement);

	err = err ? err : step(store, &statement, diag);
	if (err < 0)
		return err;
	*ret_nr = (uint64_t)store->sqlite.column_int64(statement.handle, 0);
	*ret_bytes = (uint64_t)store->sqlite.column_int64(statement.handle, 1);
	return 0;
}

void store_row_done(struct store_row *row)
{
	free(row->body);
	free(row->type);
	*row = (struct store_row){ 0 };
}

#define ROW_COLUMNS "id, profile_id, type, start_ns, end_ns, body"

/* Takes the row that the statement finds. */
static int take_row(struct store *store, const struct statement *statement, struct diag *diag, struct store_row *ret_row)
{
	CLEANUP(store_row_done) struct store_row row = { 0 };
	size_t size;
	int err;

	*ret_row = (struct store_row){ 0 };
	err = step(store, statement, diag);
	if (err <= 0)
		return err;
	row.id = ret_row->id = (uint64_t)store->sqlite.column_int64(statement->handle, 0);
	if (store->sqlite.column_bytes(statement->handle, 1) != STORE_PROFILE_ID_BYTES)
		return diag_errno(diag, EUCLEAN, "the store has a row that sonde did not write");
	memcpy(row.profile_id, store->sqlite.column_blob(statement->handle, 1), STORE_PROFILE_ID_BYTES);
	row.start_ns = (uint64_t)store->sqlite.column_int64(statement->handle, 3);
	row.end_ns = (uint64_t)store->sqlite.column_int64(statement->handle, 4);
	row.type = strdup((const char *)store->sqlite.column_text(statement->handle, 2) ?: "");
	size = (size_t)store->sqlite.column_bytes(statement->handle, 5);
	err = row.type ? 0 : -ENOMEM;
	if (!err)
		err = packed_body_open(store->sqlite.column_blob(statement->handle, 5), size, diag, &row.body, &row.body_bytes);
	if (err)
		return err;
	*ret_row = row;
	row = (struct store_row){ 0 };
	return 1;
}

static bool is_type(const char *text)
{
	size_t size = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz") : 0;

	return size && !text[size] && size < STORE_TYPE_BYTES;
}

int store_types(struct store *store, uint64_t from_ns, uint64_t to_ns, struct diag *diag, char ret_types[STORE_MAX_TYPES][STORE_TYPE_BYTES])
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int nr = 0, err = prepare(store, "SELECT type FROM window WHERE end_ns > ? AND start_ns < ? GROUP BY type ORDER BY min(id)", diag,
				  &statement);

	if (err)
		return err;
	store->sqlite.bind_int64(statement.handle, 1, clamp(from_ns));
	store->sqlite.bind_int64(statement.handle, 2, clamp(to_ns));
	while (nr < STORE_MAX_TYPES && (err = step(store, &statement, diag)) > 0) {
		const char *type = (const char *)store->sqlite.column_text(statement.handle, 0);

		if (is_type(type))
			snprintf(ret_types[nr++], STORE_TYPE_BYTES, "%s", type);
	}
	return err < 0 ? err : nr;
}

int store_next(struct store *store, const char *type, uint64_t after_id, uint64_t from_ns, uint64_t to_ns, struct diag *diag,
	       struct store_row *ret_row)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, "SELECT " ROW_COLUMNS " FROM window WHERE id > ? AND end_ns > ? AND start_ns < ? AND type = ?"
		" ORDER BY id LIMIT 1", diag, &statement);

	if (err)
		return err;
	store->sqlite.bind_int64(statement.handle, 1, clamp(after_id));
	store->sqlite.bind_int64(statement.handle, 2, clamp(from_ns));
	store->sqlite.bind_int64(statement.handle, 3, clamp(to_ns));
	store->sqlite.bind_text(statement.handle, 4, type, -1, SQLITE_STATIC);
	return take_row(store, &statement, diag, ret_row);
}

static int run_for(struct store *store, const char *sql, const char *destination, uint64_t id, struct diag *diag)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, sql, diag, &statement);

	if (err)
		return err;
	store->sqlite.bind_text(statement.handle, 1, destination, -1, SQLITE_STATIC);
	store->sqlite.bind_int64(statement.handle, 2, clamp(id));
	return step(store, &statement, diag);
}

int store_mark_delivered(struct store *store, const char *destination, uint64_t id, struct diag *diag)
{
	return run_for(store, "INSERT INTO destination(name, delivered) VALUES(?, ?)"
		" ON CONFLICT(name) DO UPDATE SET delivered = max(delivered, excluded.delivered)", destination, id, diag);
}

int store_next_undelivered(struct store *store, const char *destination, struct diag *diag, struct store_row *ret_row)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = store_mark_delivered(store, destination, 0, diag);

	err = err ? err : prepare(store, "SELECT " ROW_COLUMNS " FROM window WHERE id > (SELECT delivered FROM destination WHERE name = ?)"
		" AND " IS_SENT " ORDER BY id LIMIT 1", diag, &statement);
	if (err)
		return err;
	store->sqlite.bind_text(statement.handle, 1, destination, -1, SQLITE_STATIC);
	return take_row(store, &statement, diag, ret_row);
}

static int read_number(struct store *store, const char *sql, const char *destination, struct diag *diag, uint64_t *ret_nr)
{
	CLEANUP(statement_done) struct statement statement = { 0 };
	int err = prepare(store, sql, diag, &statement);

	if (err)
		return err;
	store->sqlite.bind_text(statement.handle, 1, destination, -1, SQLITE_STATIC);
	err = step(store, &statement, diag);
	if (err < 0)
		return err;
	*ret_nr = err ? (uint64_t)store->sqlite.column_int64(statement.handle, 0) : 0;
	return 0;
}

int store_waiting(struct store *store, const char *destination, struct diag *diag, uint64_t *ret_nr)
{
	return read_number(store,
			   "SELECT count(*) FROM window WHERE id > coalesce((SELECT delivered FROM destination WHERE name = ?), 0)"
			   " AND " IS_SENT,
			   destination, diag, ret_nr);
}

int store_evicted(struct store *store, const char *destination, struct diag *diag, uint64_t *ret_nr)
{
	return read_number(store, "SELECT evicted FROM destination WHERE name = ?", destination, diag, ret_nr);
}
