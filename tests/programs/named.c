// SPDX-License-Identifier: Apache-2.0
/* named SECONDS NAME: sets its own name to NAME and spins in main > named_leaf. Understands the escapes \n, \e, \t and \xNN, because
 * arguments of a test are text. */
#include "known.h"

static volatile unsigned long sink;

static void unescape(const char *text, char *out, size_t size)
{
	size_t nr = 0;

	for (; *text && nr + 1 < size; text++) {
		unsigned value = (unsigned char)*text;

		if (text[0] == '\\' && text[1] == 'x' && text[2] && text[3]) {
			char digits[3] = {text[2], text[3], 0};

			value = (unsigned)strtoul(digits, NULL, 16);
			text += 3;
		} else if (text[0] == '\\' && text[1]) {
			value = *++text == 'n' ? '\n' : *text == 'e' ? 27 : *text == 't' ? '\t' : (unsigned char)*text;
		}
		out[nr++] = (char)value;
	}
	out[nr] = '\0';
}

KNOWN static unsigned long named_leaf(void)
{
	ENTER();
	puts("chain - main;named_leaf"); /* the name itself does not fit in a line of output */
	known_ready();
	return known_spin();
}

int main(int argc, char **argv)
{
	char name[16] = "";

	ENTER();
	unescape(argc > 2 ? argv[2] : "named", name, sizeof(name));
	known_start(argv[1]);
	prctl(PR_SET_NAME, name);
	sink = named_leaf();
	return 0;
}
