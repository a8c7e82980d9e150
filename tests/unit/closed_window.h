/* SPDX-License-Identifier: Apache-2.0 */
/* A book's window, closed: what its profile is made of. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stacks/stack_book.h"
#include "stacks/stack_maker.h"
#include "engine/window.h"

struct closed {
	struct window window;
	struct kernel_names *kernel;
	struct naming naming;
	struct namer *namer; /* these two by closed_maker */
	struct stack_maker *maker;
};

static inline void close_book(struct closed *closed, struct stack_book *book, const struct process_table *processes, const struct account *account)
{
	const struct place_files_parts parts = { .processes = processes };
	struct closed_window window;

	assert_int_equal(stack_book_give_up(book, processes), 0);
	assert_int_equal(stack_book_cut(book, UINT64_MAX), 0);
	assert_int_equal(stack_book_close(book, processes, &window), 0);
	*closed = (struct closed){ .window = { .store = window.store, .samples = window.samples, .account = *account } };
	closed->window.files = place_files_new(&parts, stack_table_places(window.store->stacks));
	closed->kernel = kernel_names_new();
	assert_non_null(closed->window.files);
	assert_non_null(closed->kernel);
	closed->naming.kernel = closed->kernel;
}

/* Puts stacks into a profile. */
static inline struct stack_maker *closed_maker(struct closed *closed, struct profile *profile)
{
	closed->namer = namer_new(stack_table_places(closed->window.store->stacks), closed->window.files, &closed->naming, profile);
	assert_non_null(closed->namer);
	assert_int_equal(namer_read_files(closed->namer), 0);
	closed->maker = stack_maker_new(closed->window.store, closed->namer, profile);
	assert_non_null(closed->maker);
	return closed->maker;
}

static inline void closed_done(struct closed *closed)
{
	stack_maker_free(closed->maker);
	namer_free(closed->namer);
	place_files_free(closed->window.files);
	samples_free(closed->window.samples);
	kernel_names_free(closed->kernel);
	*closed = (struct closed){ 0 };
}
