// SPDX-License-Identifier: Apache-2.0
/* show: shows a profile as text for a terminal, and makes the difference of two profiles. */
#include <errno.h>
#include <string.h>

#include "base/sized.h"
#include "output/annotate.h"
#include "output/profile_file.h"
#include "show/focus.h"

#define TEXT_BYTES_MAX ((size_t)4 << 30)

static int usage(struct sonde_profile *profile, int err, const char *text)
{
	profile->exit_code = SONDE_EXIT_USAGE;
	return diag_errno(&profile->diag, err, "%s", text);
}

static int show_view(struct sonde_profile *profile, const struct sonde_show_options *options, const struct show_options *show)
{
	const struct profile *shown = profile->profile;
	struct buffer *text = &profile->text;
	enum show_by by;
	int err;

	switch (options->view) {
	case SONDE_VIEW_SUMMARY:
		return show_summary(shown, show, text);
	case SONDE_VIEW_TOP:
		return show_top(shown, show, text);
	case SONDE_VIEW_TREE:
		return show_tree(shown, show, text);
	case SONDE_VIEW_CALLERS:
		return show_callers(shown, options->what, show, text, &profile->diag);
	case SONDE_VIEW_CALLEES:
		return show_callees(shown, options->what, show, text, &profile->diag);
	case SONDE_VIEW_PEEK:
		err = show_callers(shown, options->what, show, text, &profile->diag);
		buffer_text(text, "\n");
		return err ? err : show_callees(shown, options->what, show, text, &profile->diag);
	case SONDE_VIEW_BY:
		err = show_by_name(options->what, &profile->diag, &by);
		return err ? err : show_table(shown, by, show, text);
	case SONDE_VIEW_CODE:
		return annotate_function(shown, options->what, show, &profile->diag, text);
	case SONDE_VIEW_CHANGES:
		show_diff(&profile->diff, show, text);
		return 0;
	}
	return -EINVAL;
}

static int check_options(struct sonde_profile *profile, const struct sonde_show_options *options)
{
	bool wants_what = (options->view >= SONDE_VIEW_CALLERS && options->view <= SONDE_VIEW_CODE) || options->view == SONDE_VIEW_PEEK;

	if (!profile->profile)
		return usage(profile, EINVAL, "nothing was read that could be shown");
	if (wants_what && !options->what)
		return usage(profile, EINVAL, "what is to be shown is not said");
	if (options->view == SONDE_VIEW_CHANGES && !profile->diff.rows)
		return usage(profile, EINVAL, "the profile is no difference of two");
	return 0;
}

static int focus(struct sonde_profile *profile, const struct sonde_show_options *options)
{
	int err = focus_samples(profile->profile, options->focus, options->ignore, &profile->diag);

	if (err)
		profile->exit_code = err == -EINVAL ? SONDE_EXIT_USAGE : SONDE_EXIT_FAILED;
	return err;
}

int sonde_profile_show(struct sonde_profile *profile, const struct sonde_show_options *options, const char **ret_text)
{
	struct sonde_show_options known;
	struct show_options show;
	int err;

	if (!profile)
		return -EINVAL;
	profile->diag.err = 0;
	err = sized_options(&known, sizeof(known), options, &profile->diag);
	if (err)
		profile->exit_code = SONDE_EXIT_USAGE;
	else
		err = check_options(profile, &known);
	if (!err && known.value)
		err = profile_file_show_value(profile, known.value);
	if (!err && (known.focus || known.ignore))
		err = focus(profile, &known);
	if (err)
		return err;
	buffer_done(&profile->text);
	profile->text = BUFFER_INIT(TEXT_BYTES_MAX);
	show = (struct show_options){
		.width = known.width, .max_lines = known.max_lines, .min_percent = known.min_percent, .colour = known.colour,
		.sort_total = known.sort_total
	};
	err = show_view(profile, &known, &show);
	if (!err)
		err = profile->text.err;
	if (err) {
		profile->exit_code = err == -EINVAL ? SONDE_EXIT_USAGE : SONDE_EXIT_FAILED;
		return diag_errno(&profile->diag, -err, "no memory for what is to be shown");
	}
	*ret_text = profile->text.data ? profile->text.data : "";
	return 0;
}

static void name_sides(struct account *account, const char *before, const char *after)
{
	snprintf(account->sides[0].name, sizeof(account->sides[0].name), "%s", before);
	snprintf(account->sides[1].name, sizeof(account->sides[1].name), "%s", after);
}

int sonde_profile_diff(struct sonde_profile *after, const struct sonde_profile *before, const char *value)
{
	struct diff diff;
	int err;

	if (!after)
		return -EINVAL;
	after->diag.err = 0;
	if (!after->profile || !before || !before->profile)
		return usage(after, EINVAL, "a difference is of two profiles");
	err = diff_make(before->profile, after->profile, value, &after->diag, &diff);
	if (err) {
		after->exit_code = err == -EINVAL ? SONDE_EXIT_USAGE : SONDE_EXIT_FAILED;
		return diag_errno(&after->diag, -err, "no memory for the difference");
	}
	profile_file_forget(after);
	name_sides(profile_account(diff.profile), before->name, after->name);
	profile_close(diff.profile);
	after->profile = diff.profile;
	after->nr_bytes += before->nr_bytes;
	after->diff = diff; /* with the same profile */
	after->nr_reported_notes = profile_account(diff.profile)->nr_notes; /* its own note is only for its files */
	return 0;
}
