// SPDX-License-Identifier: Apache-2.0
/* The function and the line that a pc is in, as erts_lookup_function_info and lookup_loc (beam_ranges.c) find them. */
#include <errno.h>

#include "runtime/beam/beam_private.h"

#define MAX_ENTRIES (1u << 20)
#define RANGE_BYTES 16
/* BeamCodeLineTab_: const Eterm *fname_ptr; int loc_size; a table of loc_size bytes each; then for each function where its part begins in a
 * table of pcs. */
#define LINES_SIZE 8
#define LINES_LOCATIONS 16
#define LINES_FUNCTIONS 24
#define LOCATION_LINE 0xffffff
#define LOCATION_FILE_SHIFT 24

int beam_read(const struct beam_memory *of, uint64_t from, void *to, size_t size)
{
	return of->memory->read(of->memory->arg, from, to, size);
}

/* Searches a sorted table of entries whose first words are starts and whose next words are ends. */
static int search(const struct beam_memory *of, uint64_t table, uint64_t nr, uint32_t stride, uint64_t pc, uint64_t *ret_number,
		  uint64_t ret_range[2])
{
	uint64_t low = 0, high = nr, range[2];

	if (nr > MAX_ENTRIES)
		return -EBADMSG;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int err = beam_read(of, table + middle * stride, range, sizeof(range));

		if (err)
			return err;
		if (pc < range[0]) {
			high = middle;
		} else if (pc >= range[1]) {
			low = middle + 1;
		} else {
			*ret_number = middle;
			ret_range[0] = range[0];
			ret_range[1] = range[1];
			return 0;
		}
	}
	return -ENOENT;
}

int beam_code_find(const struct beam_memory *of, uint64_t pc, struct beam_found *ret_found)
{
	uint64_t ranges[2], range[2], number, nr;
	struct beam_found found;
	uint32_t index;
	int err = beam_read(of, of->beam->active_index, &index, sizeof(index));

	if (!err && index >= SONDE_BEAM_CODE_INDICES)
		err = -EBADMSG;
	if (!err)
		err = beam_read(of, of->beam->ranges + (uint64_t)index * SONDE_BEAM_RANGES_BYTES, ranges, sizeof(ranges));
	if (!err)
		err = search(of, ranges[0], ranges[1], RANGE_BYTES, pc, &number, range);
	if (err)
		return err;
	found.header = range[0];
	err = beam_read(of, found.header, &nr, sizeof(nr));
	if (!err)
		err = search(of, found.header + of->beam->functions, nr, 8, pc, &found.number, range);
	if (err)
		return err;
	found.info = range[0];
	found.next = range[1];
	err = beam_read(of, found.info + SONDE_BEAM_INFO_MFA, found.mfa, sizeof(found.mfa));
	if (!err)
		*ret_found = found;
	return err;
}

static int read_location(const struct beam_memory *of, uint64_t lines, uint64_t number, uint32_t *ret_location)
{
	uint64_t locations;
	uint32_t size;
	uint16_t small;
	int err = beam_read(of, lines + LINES_SIZE, &size, sizeof(size));

	if (!err)
		err = beam_read(of, lines + LINES_LOCATIONS, &locations, sizeof(locations));
	if (err)
		return err;
	if (size == sizeof(*ret_location))
		return beam_read(of, locations + number * size, ret_location, size);
	if (size != sizeof(small))
		return -EBADMSG;
	err = beam_read(of, locations + number * size, &small, size);
	*ret_location = err ? 0 : small;
	return err;
}

int beam_code_line(const struct beam_memory *of, const struct beam_found *found, uint64_t pc, uint32_t *ret_line, uint32_t *ret_start,
		   uint64_t *ret_file)
{
	uint64_t lines, first, part[2], number, range[2], files;
	uint32_t location = 0, start = 0;
	int err = beam_read(of, found->header + of->row->line_table, &lines, sizeof(lines));

	*ret_line = *ret_start = 0;
	*ret_file = 0;
	if (err || !lines)
		return err;
	err = beam_read(of, lines + LINES_FUNCTIONS, &first, sizeof(first));
	if (!err)
		err = beam_read(of, lines + LINES_FUNCTIONS + 8 * found->number, part, sizeof(part));
	if (err)
		return err;
	if (first > part[0] || part[0] > part[1] || (part[1] - first) / 8 > MAX_ENTRIES)
		return -EBADMSG;
	err = search(of, part[0], (part[1] - part[0]) / 8, 8, pc, &number, range);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = read_location(of, lines, (part[0] - first) / 8 + number, &location);
	if (!err)
		err = read_location(of, lines, (part[0] - first) / 8, &start);
	if (err)
		return err;
	*ret_line = location & LOCATION_LINE;
	*ret_start = start & LOCATION_LINE;
	if (!(location >> LOCATION_FILE_SHIFT))
		return 0;
	err = beam_read(of, lines, &files, sizeof(files));
	return err ? err : beam_read(of, files + 8 * ((location >> LOCATION_FILE_SHIFT) - 1), ret_file, sizeof(*ret_file));
}
