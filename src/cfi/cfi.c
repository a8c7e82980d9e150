// SPDX-License-Identifier: Apache-2.0
#include "cfi/cfi.h"

#include <errno.h>
#include <string.h>

#include "cfi/cfi_program.h"

/* Bytes of a CIE after its id; real ones have 20. Limited because a CIE is read again whenever the cache has lost it. */
#define MAX_CIE_BYTES 1024
#define MAX_PADDING_BYTES 4096u /* in .debug_frame: more zeros than this end the section */
#define CIE_CACHE     16 /* slots; linkers merge equal CIEs, so even large files have few */

struct cie_slot {
	uint64_t key; /* offset in the section + 1; 0: empty */
	struct cfi_cie cie;
};

struct walk {
	const struct cfi_section *section;
	struct cfi_stats stats;
	cfi_row_fn row;
	cfi_range_fn range; /* in place of `row` */
	void *arg;
	struct cie_slot cache[CIE_CACHE];
	struct cfi_run run; /* not on the stack, for its size */
};

struct entry {
	uint64_t cie_off; /* of an FDE's CIE */
	bool is_cie;
	struct reader body; /* after the id */
};

/* 1: an entry; 0: the section's end or a zero word; -EBADMSG. */
static int next_entry(const struct cfi_section *section, struct reader *r, struct entry *ret_entry)
{
	const uint8_t *id_at;
	uint64_t size, id;
	bool is_64 = false, is_eh = section->format == CFI_EH_FRAME;

	if (!reader_left(r))
		return 0;
	size = reader_u32(r);
	if (!size)
		return r->bad ? -EBADMSG : 0; /* the zero terminator */
	if (size == UINT32_MAX) {
		size = reader_u64(r);
		is_64 = true;
	}
	ret_entry->body = reader_sub(r, size);
	id_at = ret_entry->body.pos;
	/* .eh_frame has a four-byte id in the 64-bit form too. */
	id = is_64 && !is_eh ? reader_u64(&ret_entry->body) : reader_u32(&ret_entry->body);
	if (r->bad || ret_entry->body.bad)
		return -EBADMSG;
	if (is_eh) {
		ret_entry->is_cie = !id;
		ret_entry->cie_off = (uint64_t)(id_at - (const uint8_t *)section->bytes) - id; /* a bad id wraps beyond the size */
	} else {
		ret_entry->is_cie = id == (is_64 ? UINT64_MAX : UINT32_MAX);
		ret_entry->cie_off = id;
	}
	return 1;
}

static void skip_personality(struct reader *r)
{
	uint8_t encoding = reader_u8(r);
	struct cfi_section nowhere = { .bytes = r->pos };

	cfi_read_pointer(&nowhere, r, encoding & 0x0f);
}

/* The letters after 'z' and their data. An unknown letter hides all that follow it; the size after 'z' still tells where the program
 * starts. */
static void read_augmentation(struct cfi_cie *cie, const char *letters, struct reader data)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = reader_u8(&data);
			break;
		case 'P':
			skip_personality(&data);
			break;
		case 'L':
			reader_u8(&data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* aarch64: signed with key B */
			break;
		default:
			return;
		}
	}
	if (data.bad)
		cie->is_readable = false;
}

static void run_initial_program(struct walk *walk, struct cfi_cie *cie, struct reader program)
{
	struct cfi_run *run = &walk->run;

	run->section = walk->section;
	run->cie = cie;
	run->program = program;
	run->state = cfi_state_at_start(run->machine);
	run->state.rule.is_signal = cie->is_signal;
	run->row = NULL;
	run->err = 0;
	run->nr_remembered = 0;
	cie->is_usable = !cfi_program_run(run);
	cie->initial = run->state;
}

static void read_cie(struct walk *walk, struct reader body, struct cfi_cie *cie)
{
	const char *augmentation;
	uint64_t ra_column;
	uint8_t version;

	*cie = (struct cfi_cie){ .pointer_encoding = 0 };
	if (reader_left(&body) > MAX_CIE_BYTES)
		return;
	version = reader_u8(&body);
	augmentation = reader_text(&body);
	if (version != 1 && version != 3 && version != 4)
		return;
	if (version == 4 && (reader_u8(&body) != 8 || reader_u8(&body) != 0)) /* address size, segment selector size */
		return;
	cie->code_align = cfi_uleb(&body);
	cie->data_align = reader_sleb(&body);
	ra_column = version == 1 ? reader_u8(&body) : cfi_uleb(&body);
	cie->is_readable = true;
	if (*augmentation != 'z') {
		/* Without 'z', only letters without data can be skipped: GNU as writes a lone S into .debug_frame. */
		cie->is_readable = augmentation[strspn(augmentation, "SB")] == '\0';
		cie->is_signal = strchr(augmentation, 'S');
	} else {
		uint64_t size = cfi_uleb(&body);

		cie->has_augmentation_size = true;
		read_augmentation(cie, augmentation + 1, reader_sub(&body, size));
	}
	if (body.bad)
		cie->is_readable = false;
	cie->is_foreign = ra_column != walk->run.machine->ra_column;
	if (cie->is_readable && !cie->is_foreign)
		run_initial_program(walk, cie, body);
}

static const struct cfi_cie *find_cie(struct walk *walk, uint64_t off)
{
	struct cie_slot *slot = &walk->cache[off / 8 % CIE_CACHE];
	struct reader r;
	struct entry entry;

	if (slot->key == off + 1)
		return &slot->cie;
	if (off >= walk->section->size)
		return NULL;
	r = reader_of((const uint8_t *)walk->section->bytes + off, walk->section->size - off);
	if (next_entry(walk->section, &r, &entry) != 1 || !entry.is_cie)
		return NULL;
	read_cie(walk, entry.body, &slot->cie);
	slot->key = off + 1;
	return &slot->cie;
}

static int give_whole(struct walk *walk, uint64_t start, enum sonde_rule_kind kind)
{
	struct sonde_rule rule = { .kind = (uint8_t)kind };

	walk->stats.nr_rows++;
	walk->stats.nr_unsupported += kind == SONDE_RULE_KIND_UNSUPPORTED;
	return walk->row(walk->arg, start, &rule);
}

static int give_rows(struct walk *walk, const struct cfi_cie *cie, struct reader body, uint64_t start, uint64_t end)
{
	struct cfi_run *run = &walk->run;
	int err = -EBADMSG;

	if (cie->is_foreign)
		return give_whole(walk, start, SONDE_RULE_KIND_UNSUPPORTED);
	if (cie->has_augmentation_size)
		reader_skip(&body, cfi_uleb(&body));
	if (cie->is_usable && !body.bad) {
		run->cie = cie;
		run->program = body;
		run->state = cie->initial;
		run->loc = start;
		run->end = end;
		run->row = walk->row;
		run->has_changed = true;
		run->nr_remembered = 0;
		err = cfi_program_run(run);
		if (!run->program.bad)
			return err;
	}
	walk->stats.nr_bad_fdes++;
	return give_whole(walk, start, SONDE_RULE_KIND_UNSUPPORTED);
}

static int walk_fde(struct walk *walk, struct entry *entry)
{
	const struct cfi_cie *cie = find_cie(walk, entry->cie_off);
	uint64_t start = 0, size = 0, end;
	int err;

	if (cie && cie->is_readable) {
		start = cfi_read_pointer(walk->section, &entry->body, cie->pointer_encoding);
		size = cfi_read_pointer(walk->section, &entry->body, cie->pointer_encoding & 0x0f);
	}
	if (!cie || !cie->is_readable || entry->body.bad) {
		walk->stats.nr_bad_fdes++;
		return 0;
	}
	/* Linkers set what they dropped to 0, or to -1 or -2 (lld in .debug_frame). */
	if (!start || !size || start >= UINT64_MAX - 1)
		return 0;
	if (__builtin_add_overflow(start, size, &end)) {
		walk->stats.nr_bad_fdes++;
		return 0;
	}
	walk->stats.nr_fdes++;
	if (walk->range)
		return walk->range(walk->arg, start, end);
	err = give_rows(walk, cie, entry->body, start, end);
	return err ? err : walk->row(walk->arg, end, NULL);
}

static int walk_section(struct walk *walk, const struct cfi_section *section, struct diag *diag)
{
	struct reader r = reader_of(section->bytes, section->size);
	size_t padding_bytes = 0;
	struct entry entry;
	int err = 0;

	walk->run.machine = cfi_machine_of(section->machine);
	if (!walk->run.machine)
		return -ENODATA;
	walk->section = section;
	walk->run.section = section;
	walk->run.arg = walk->arg;
	walk->run.stats = &walk->stats;
	while (!err && reader_left(&r)) {
		int more = next_entry(section, &r, &entry);

		padding_bytes = more ? 0 : padding_bytes + sizeof(uint32_t);
		if (more < 0 && section->is_open_ended && walk->stats.nr_fdes)
			break;
		if (more < 0)
			err = diag_errno(diag, EBADMSG, "call frame information is cut off or damaged");
		else if (!more && (section->format == CFI_EH_FRAME || padding_bytes > MAX_PADDING_BYTES))
			break; /* in .debug_frame a zero is padding */
		else if (more && !entry.is_cie)
			err = walk_fde(walk, &entry);
	}
	return err;
}

int cfi_walk(const struct cfi_section *section, cfi_row_fn row, void *arg, struct cfi_stats *ret_stats, struct diag *diag)
{
	CLEANUP(freep) struct walk *walk = calloc(1, sizeof(*walk));
	int err;

	if (!walk)
		return -ENOMEM;
	walk->row = row;
	walk->arg = arg;
	err = walk_section(walk, section, diag);
	*ret_stats = walk->stats;
	return err;
}

int cfi_walk_ranges(const struct cfi_section *section, cfi_range_fn range, void *arg, struct diag *diag)
{
	CLEANUP(freep) struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return -ENOMEM;
	walk->range = range;
	walk->arg = arg;
	return walk_section(walk, section, diag);
}
