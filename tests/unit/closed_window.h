/* SPDX-License-Identifier: Apache-2.0 */
/* closed_window: a recorder's window, closed, as the input of a profile. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stacks/stack_recorder.h"
#include "stacks/stack_builder.h"
#include "engine/window.h"

struct closed {
	struct window window;
	struct kernel_names *kernel;
	struct naming naming;
	struct resolver *resolver; /* this and builder are set by closed_builder */
	struct stack_builder *builder;
};

static inline void close_recorder(struct closed *closed, struct stack_recorder *recorder, const struct process_table *processes,
				  const struct account *account)
{
	const struct location_files_parts parts = { .processes = processes };
	struct closed_window window;

	assert_int_equal(stack_recorder_give_up(recorder, processes), 0);
	assert_int_equal(stack_recorder_cut(recorder, UINT64_MAX), 0);
	assert_int_equal(stack_recorder_close(recorder, processes, &window), 0);
	*closed = (struct closed){ .window = { .store = window.store, .samples = window.samples, .account = *account } };
	closed->window.files = location_files_new(&parts, stack_table_locations(window.store->stacks));
	closed->kernel = kernel_names_new();
	assert_non_null(closed->window.files);
	assert_non_null(closed->kernel);
	closed->naming.kernel = closed->kernel;
}

/* Returns the builder that puts the window's stacks into a profile. */
static inline struct stack_builder *closed_builder(struct closed *closed, struct profile *profile)
{
	closed->resolver =
	    resolver_new(stack_table_locations(closed->window.store->stacks), closed->window.files, &closed->naming, profile);
	assert_non_null(closed->resolver);
	assert_int_equal(resolver_read_files(closed->resolver), 0);
	closed->builder = stack_builder_new(closed->window.store, closed->resolver, profile);
	assert_non_null(closed->builder);
	return closed->builder;
}

static inline void closed_done(struct closed *closed)
{
	stack_builder_free(closed->builder);
	resolver_free(closed->resolver);
	location_files_free(closed->window.files);
	samples_free(closed->window.samples);
	kernel_names_free(closed->kernel);
	*closed = (struct closed){ 0 };
}
