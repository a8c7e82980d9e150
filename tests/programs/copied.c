// SPDX-License-Identifier: Apache-2.0
/* copied SECONDS: main > copied_outer > copied_middle > copied_inner, which spins. None keeps a frame pointer. CFA is the CFA offset
 * that the file declares for copied_middle. 256 is correct. With 384, outer's frame counts as part of middle's; the rest of the file is
 * the same. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

#define FUNCTION(name, size, cfa, body) \
	__asm__(".text\n.p2align 6\n.globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\nsub $" size \
		",%rsp\n.cfi_def_cfa_offset " cfa "\n" body "\nadd $" size ",%rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size " name \
		",.-" name "\n")

FUNCTION("copied_inner", "24", "32", "1: add $1,%rax\njmp 1b");
FUNCTION("copied_middle", "248", TEXT(CFA), "call copied_inner");
FUNCTION("copied_outer", "120", "128", "call copied_middle");
void copied_outer(void);

int main(int argc, char **argv)
{
	alarm(argc > 1 ? (unsigned int)atoi(argv[1]) : 10);
	printf("pid %d\nready\n", (int)getpid());
	fflush(stdout);
	copied_outer();
	return 0;
}
