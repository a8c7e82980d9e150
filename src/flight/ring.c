// SPDX-License-Identifier: Apache-2.0
#include "flight/ring.h"

#include <string.h>

#include "base/array.h"

#define MAX_WINDOWS 65536 /* a day of windows of a second has more; then the oldest go */

void ring_window_done(struct ring_window *window)
{
	free(window->packed);
	*window = (struct ring_window){ 0 };
}

void ring_done(struct ring *ring)
{
	struct ring_window window;

	while (ring_take(ring, &window))
		ring_window_done(&window);
	free(ring->list);
	*ring = (struct ring){ 0 };
}

bool ring_take(struct ring *ring, struct ring_window *ret_window)
{
	if (!ring->nr)
		return false;
	*ret_window = ring->list[0];
	ring->nr--;
	ring->bytes -= ret_window->size;
	ring->duration_ns -= ret_window->duration_ns;
	memmove(ring->list, ring->list + 1, ring->nr * sizeof(*ring->list));
	return true;
}

static void drop_oldest(struct ring *ring)
{
	struct ring_window window;

	if (ring_take(ring, &window))
		ring_window_done(&window);
}

uint32_t ring_add(struct ring *ring, const struct ring_window *window)
{
	struct ring_window own = *window;
	uint32_t nr_early = 0;

	if (own.size > ring->max_bytes) {
		ring_window_done(&own);
		return 1;
	}
	while (ring->nr && ring->duration_ns + own.duration_ns - ring->list[0].duration_ns >= ring->span_ns)
		drop_oldest(ring);
	for (; ring->nr && (ring->nr == MAX_WINDOWS || ring->bytes > ring->max_bytes - own.size); nr_early++)
		drop_oldest(ring);
	if (!array_grow(&ring->list, ring->nr, &ring->max, sizeof(own), 64, MAX_WINDOWS)) {
		ring_window_done(&own);
		return nr_early + 1;
	}
	ring->list[ring->nr++] = own;
	ring->bytes += own.size;
	ring->duration_ns += own.duration_ns;
	return nr_early;
}
