// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_scopes.h"

#include "abi/java.h"
#include "runtime/java/java_paths.h"

#define MAX_POLLS 8 /* loops around an instruction that are looked at */

/* Keeps what both have in common. The innermost method that they share may be at another bytecode in each. */
static void scopes_share(struct java_scopes *scopes, const struct java_scopes *others)
{
	uint32_t nr = 0;
	bool is_same = true;

	while (is_same && nr < scopes->nr && nr < others->nr && scopes->scopes[nr].method == others->scopes[nr].method) {
		is_same = scopes->scopes[nr].bci == others->scopes[nr].bci;
		nr++;
	}
	if (!is_same && (nr < scopes->nr || nr < others->nr))
		scopes->scopes[nr - 1].bci = SONDE_JAVA_NO_BCI; /* else it is that of the safepoint that comes next */
	scopes->nr = nr;
}

/* Keeps the nmethod's own method. */
static void scopes_cut(struct java_scopes *scopes)
{
	if (scopes->nr > 1)
		scopes->scopes[0].bci = SONDE_JAVA_NO_BCI;
	scopes->nr = scopes->nr ? 1 : 0;
}

static int scopes_share_desc(struct java_text *text, const struct java_desc *desc, struct java_scopes *scopes)
{
	struct java_scopes others;
	int err;

	if (!desc->scope) {
		scopes_cut(scopes);
		return 0;
	}
	err = java_scopes_read(text->info, &text->descs, (uint32_t)desc->scope, &others);
	if (!err)
		scopes_share(scopes, &others);
	return err;
}

/* What the safepoints on all paths have in common: control comes there. */
static int scopes_ahead(struct java_text *text, const struct java_paths *paths, struct java_scopes *scopes)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < paths->nr_reached; i++) {
		if (!i && paths->reached[i].desc.scope)
			err = java_scopes_read(text->info, &text->descs, (uint32_t)paths->reached[i].desc.scope, scopes);
		else
			err = scopes_share_desc(text, &paths->reached[i].desc, scopes);
	}
	if (!err && (paths->is_open || !paths->nr_reached))
		scopes_cut(scopes);
	return err;
}

/* Of the innermost loop around the instruction that has a poll of its own, by that poll. What is inlined there is so in the whole loop. */
static int scopes_of_loop(struct java_text *text, uint32_t off, const struct java_paths *paths, struct java_scopes *scopes,
			  bool *ret_is_found)
{
	*ret_is_found = false;
	for (uint32_t i = 0, nr_polls = 0; i < paths->nr_reached && nr_polls < MAX_POLLS; i++) {
		const struct java_safepoint *safepoint = &paths->reached[i];
		struct java_scopes others;
		struct java_paths after;
		int err;

		if (!safepoint->is_poll || !safepoint->desc.scope)
			continue;
		nr_polls++;
		err = java_paths_follow(text, safepoint->next, off, &after);
		if (!err && after.is_cyclic)
			err = java_scopes_read(text->info, &text->descs, (uint32_t)safepoint->desc.scope, &others);
		if (err)
			return err;
		if (after.is_cyclic && (!*ret_is_found || others.nr > scopes->nr)) {
			*scopes = others;
			*ret_is_found = true;
		}
	}
	return 0;
}

/* At an instruction that is no safepoint. Where several methods are possible, those of the paths ahead and of what comes before it agree
 * on those that are certain. */
static int scopes_between(struct java_text *text, const struct java_before *before, struct java_scopes *ahead, struct java_scopes *scopes)
{
	struct java_paths paths;
	bool is_loop = false;
	int err = java_paths_follow(text, before->off, UINT32_MAX, &paths);

	if (!err)
		err = scopes_ahead(text, &paths, ahead);
	*scopes = *ahead;
	if (!err)
		err = scopes_of_loop(text, before->off, &paths, scopes, &is_loop);
	if (err || is_loop)
		return err;
	if (before->is_connected && before->desc.pc >= 0)
		return scopes_share_desc(text, &before->desc, scopes);
	scopes_cut(scopes); /* the method's entry, or code that is only jumped to */
	return 0;
}

int java_scopes_find(const struct java_debug_info *info, uint32_t where, struct java_scopes *ret_scopes)
{
	struct java_text text = { .info = info };
	struct java_scopes said = { 0 }, ahead, scopes;
	struct java_before before;
	bool is_safepoint = false;
	struct java_desc desc;
	uint32_t number;
	int err;

	*ret_scopes = said;
	if (!info->nr_descs)
		return 0;
	err = java_descs_find(info, &text.descs, where, &number);
	if (!err)
		err = java_descs_at(info, &text.descs, number, &desc);
	if (err || number + 1 == info->nr_descs || !desc.scope) /* the last one is behind all code */
		return err;
	err = java_scopes_read(info, &text.descs, (uint32_t)desc.scope, &said);
	if (!err && said.nr > 1)
		err = java_paths_is_safepoint(&text, number, &is_safepoint);
	*ret_scopes = said;
	if (err || said.nr <= 1 || (is_safepoint && desc.pc == (int64_t)where))
		return err;
	scopes_cut(ret_scopes);
	err = java_paths_before(&text, where, number, &before);
	if (err || !before.is_known)
		return err;
	ahead = *ret_scopes;
	err = scopes_between(&text, &before, &ahead, &scopes);
	if (err)
		return err;
	if (!is_safepoint) { /* what a PcDesc says that proves nothing is right as far as all paths lead there */
		scopes_share(&said, &ahead);
		if (said.nr > scopes.nr)
			scopes = said;
	}
	*ret_scopes = scopes;
	return 0;
}
