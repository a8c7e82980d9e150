// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define MIN_COLUMNS 40 /* less leaves no room for names */

uint32_t terminal_width(void)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return 0;
	return size.ws_col < MIN_COLUMNS ? MIN_COLUMNS : size.ws_col;
}
