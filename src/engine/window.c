// SPDX-License-Identifier: Apache-2.0
#include "engine/window.h"

void window_free(struct window *window)
{
	if (!window)
		return;
	samples_free(window->samples);
	wait_sums_free(window->sums);
	if (window->own)
		window->free_own(window->own);
	location_files_free(window->files);
	buffer_done(&window->waits);
	free(window);
}
