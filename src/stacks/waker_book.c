// SPDX-License-Identifier: Apache-2.0
#include "stacks/waker_book.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"

#define WAKERS_BYTES_MAX ((size_t)1 << 30)

struct waker_book {
	struct buffer wakers; /* struct waker each */
	struct u64_map by_hash;
};

struct waker_book *waker_book_new(void)
{
	struct waker_book *book = calloc(1, sizeof(*book));

	if (book)
		book->wakers = BUFFER_INIT(WAKERS_BYTES_MAX);
	return book;
}

void waker_book_free(struct waker_book *book)
{
	if (!book)
		return;
	buffer_done(&book->wakers);
	u64_map_done(&book->by_hash);
	free(book);
}

static struct waker *find(const struct waker_book *book, uint64_t hash)
{
	const uint32_t *number = u64_map_find(&book->by_hash, hash);

	return number ? (struct waker *)book->wakers.data + *number : NULL;
}

int waker_book_copy(struct waker_book *book, uint64_t hash, const struct waker *waker)
{
	uint32_t number = (uint32_t)(book->wakers.size / sizeof(*waker));

	buffer_append(&book->wakers, waker, sizeof(*waker));
	return book->wakers.err ? -ENOMEM : u64_map_add(&book->by_hash, hash, number);
}

int waker_book_record(struct waker_book *book, const struct sonde_waker_record *record)
{
	struct waker *known = find(book, record->hash);

	if (!known)
		return waker_book_copy(book, record->hash, &(struct waker){ .key = record->waker });
	known->is_disputed |= memcmp(&known->key, &record->waker, sizeof(known->key)) != 0; /* sent again: the same */
	return 0;
}

size_t waker_book_bytes(const struct waker_book *book)
{
	return book->wakers.size;
}

const struct waker *waker_book_find(const struct waker_book *book, uint64_t hash)
{
	return find(book, hash);
}
