/* SPDX-License-Identifier: Apache-2.0 */
/* store: the agent's windows in a directory, as an SQLite database in WAL mode, and how far each destination has received them. A handle
 * belongs to one thread; a deliverer opens its own, with STORE_DELIVER. kill -9 loses at most the window that was being added.
 * With STORE_IN_MEMORY as the directory there is no file: the process's handles share one database, until the last one is closed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "store/packed_body.h"

struct store;

enum store_mode {
	STORE_OWN,     /* the agent: creates and locks the store, moves a corrupt one aside, adds and evicts */
	STORE_DELIVER, /* marks what was delivered; the store exists */
	STORE_READ,    /* also while an agent writes; the store exists */
};

#define STORE_PROFILE_ID_BYTES 16
#define STORE_IN_MEMORY "none"
/* Types of rows that stay in the store: no destination receives them. */
#define STORE_INCIDENT "incident"
#define STORE_CRASH "crash"
#define STORE_MAX_MEMORY ((uint64_t)512 << 20) /* SQLite's own limit for such a database is a GiB, with its indexes and free pages */

struct store_row {
	uint64_t id;               /* ascending: the order of delivery. Ignored by store_add */
	uint8_t profile_id[STORE_PROFILE_ID_BYTES]; /* the same at each delivery */
	uint64_t start_ns, end_ns; /* CLOCK_REALTIME */
	char *type;                /* "cpu", "offcpu", ... */
	void *body;                /* the profile in sonde's own JSON: the format that holds all of it. Stored with zstd */
	size_t body_bytes;
};

/* Gives the row a profile_id, at random. 0; or a negative errno with a line. */
MUST_CHECK int store_draw_id(struct store_row *row, struct diag *diag);
static inline bool store_is_in_memory(const char *directory)
{
	return !strcmp(directory, STORE_IN_MEMORY);
}

void store_row_done(struct store_row *row); /* frees what a function of this header has put into it, and clears it */

/* -EBUSY: another agent has the store; `diag` names its process. -EUCLEAN: corrupt (not with STORE_OWN). *ret_aside gets the name of the
 * file to which a corrupt database was moved, for the caller to free, or NULL; only STORE_OWN sets it. */
MUST_CHECK int store_open(const char *directory, enum store_mode mode, struct diag *diag, char **ret_aside, struct store **ret_store);
void store_close(struct store *store); /* takes NULL */
static inline void store_closep(struct store **store)
{
	store_close(*store);
}
/* -ENOSPC: the disk is full; the store is as before. -EFBIG: the body is larger than its limit. */
MUST_CHECK int store_add(struct store *store, const struct store_row *row, struct diag *diag);
struct store_evicted {
	uint64_t nr;
	uint64_t nr_unsent; /* of these, added up over the destinations that had not received them */
};
/* Removes the oldest rows: up to the last one that ended before `oldest_ns`, and until the bodies have at most `max_bytes`. Each
 * destination counts those that it had not received. */
MUST_CHECK int store_evict(struct store *store, uint64_t oldest_ns, uint64_t max_bytes, struct diag *diag,
			   struct store_evicted *ret_evicted);
/* Removes what all destinations have received. */
MUST_CHECK int store_forget_delivered(struct store *store, struct diag *diag);
/* How many rows there are, and the bytes of their bodies as they are stored: what max_bytes limits. Reads a part of each row. */
MUST_CHECK int store_size(struct store *store, struct diag *diag, uint64_t *ret_nr, uint64_t *ret_bytes);
#define STORE_TYPE_BYTES 16
#define STORE_MAX_TYPES	 8
/* The types of the rows that overlap from_ns..to_ns, each once, in the order of their first rows. The store may be another's: others than
 * words of small letters are left out. Their number, or a negative errno. */
MUST_CHECK int store_types(struct store *store, uint64_t from_ns, uint64_t to_ns, struct diag *diag,
			   char ret_types[STORE_MAX_TYPES][STORE_TYPE_BYTES]);
/* The first row of the type after `after_id` that overlaps from_ns..to_ns. 1: *ret_row is the caller's; 0: none; -EUCLEAN: it is damaged,
 * and ret_row->id is its number, or 0 where the store is. */
MUST_CHECK int store_next(struct store *store, const char *type, uint64_t after_id, uint64_t from_ns, uint64_t to_ns, struct diag *diag,
			  struct store_row *ret_row);
/* The oldest row that the destination has not received. A new name becomes a destination, and receives all rows. 1: *ret_row is the
 * caller's; 0: none; -EUCLEAN: as above. */
MUST_CHECK int store_next_undelivered(struct store *store, const char *destination, struct diag *diag, struct store_row *ret_row);
/* The destination has received the row `id`, and with it all before. */
MUST_CHECK int store_mark_delivered(struct store *store, const char *destination, uint64_t id, struct diag *diag);
/* How many rows the destination has not received. */
MUST_CHECK int store_waiting(struct store *store, const char *destination, struct diag *diag, uint64_t *ret_nr);
/* How many rows were evicted before the destination received them. 0 for an unknown name. */
MUST_CHECK int store_evicted(struct store *store, const char *destination, struct diag *diag, uint64_t *ret_nr);
