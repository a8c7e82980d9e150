// SPDX-License-Identifier: Apache-2.0
/* Code as Graal's native-image writes it, for step_oracle: functions without tables, symbols or frame pointers, which keep no register and
 * lie behind each other with int3 between them. r15 points to the thread's state, with the stack's limit at 8. Two functions are what a table
 * of frames cannot express; there the stack ends with a mark. */
	.section .svm_heap, "aw", @progbits
thread:	.quad 0, 0, 1

#define FUNCTION(name) .p2align 4, 0xcc; name

	.text
	.globl _start
_start:	xor %ebp, %ebp
	and $-16, %rsp
	call stub
	mov $60, %eax
	xor %edi, %edi
	syscall
	hlt

	/* Called by C: it keeps C's registers. */
FUNCTION(stub):
	push %rbp
	sub $0x20, %rsp
	mov %rbx, 0x18(%rsp)
	mov %rbp, 0x10(%rsp)
	lea thread(%rip), %r15
	mov $5, %eax
	mov %eax, 8(%rsp)
1:	mov 8(%rsp), %edi
	call checked
	nop
	decl 8(%rsp)
	jne 1b
	mov 0x18(%rsp), %rbx
	mov 0x10(%rsp), %rbp
	add $0x20, %rsp
	pop %rbp
	ret

	/* The stack's limit is checked first, or behind sub. */
FUNCTION(checked):
	lea -0x28(%rsp), %rbx
	cmp 8(%r15), %rbx
	jbe overflow
	mov %rbx, %rsp
	mov %edi, 0x20(%rsp)
	call by_table
	nop
	mov 0x20(%rsp), %edi
	call by_hash
	nop
	mov 0x20(%rsp), %edi
	call handles
	nop
	mov 0x20(%rsp), %edi
	call joined
	nop
	call uneven
	nop
	lea leaf(%rip), %rax
	call *%rax
	nop
	add $0x28, %rsp
	subl $0, 0x10(%r15)
	jle overflow
	ret

FUNCTION(by_table):
	sub $8, %rsp
	cmp 8(%r15), %rsp
	jbe 5f
	mov %edi, %eax
	cmp $3, %eax
	ja 4f
	lea 6f(%rip), %rcx
	movslq (%rcx, %rax, 4), %rdx
	{load} add %rdx, %rcx
	nop
	jmp *%rcx
1:	mov $1, %eax
	jmp 4f
2:	mov $2, %eax
	jmp 4f
3:	call leaf
	nop
4:	add $8, %rsp
	ret
5:	call overflow
	nop
	hlt
	ud2
	.p2align 2, 0x90
6:	.long 4b - 6b, 1b - 6b, 2b - 6b, 3b - 6b

	/* The table may also lie among the code. Its entries' lower halves are the values. */
FUNCTION(by_hash):
	sub $0x18, %rsp
	imul $3, %edi, %eax
	and $3, %eax
	lea 1f(%rip), %rbp
	mov (%rbp, %rax, 8), %rdx
	cmp %edi, %edx
	jne 3f
	sar $0x20, %rdx
	{load} add %rdx, %rbp
	jmp *%rbp
1:	.long 4, 2f - 1b, 3, 2f - 1b, 0, 0, 5, 3f - 1b
2:	call leaf
	nop
3:	add $0x18, %rsp
	ret

	/* No path leads to the handler of its exception. */
FUNCTION(handles):
	sub $0x18, %rsp
	mov %edi, 8(%rsp)
	mov %rsp, %rdx
	lea 1f(%rip), %rax
	call throws
	nop
	hlt
1:	mov 8(%rsp), %edi
	call leaf
	nop
	add $0x18, %rsp
	ret

FUNCTION(throws):
	sub $8, %rsp
	nop
	mov %rdx, %rsp
	jmp *%rax

	/* An instruction contains what looks like the space between two functions. */
FUNCTION(joined):
	sub $8, %rsp
	nopl 0(%rax)
	nopl 0(%rax)
	.byte 0x66, 0x90
	movabs $0x90c308ec8348cc, %rax
	call leaf
	nop
	cmp $0, %edi
	jl 1f
	add $8, %rsp
	ret
	.p2align 4, 0x90
	.skip 10, 0x90
1:	call overflow /* it does not return, and the next function follows at once */
	nop
without_space:
	sub $8, %rsp
	add $8, %rsp
	ret

	/* Two depths at one place. */
FUNCTION(uneven):
	mov %rsp, %rdx
	test $1, %edi
	je 1f
	sub $0x10, %rsp
1:	mov %rdx, %rsi
	call without_space
	nop
	mov %rsi, %rsp
	ret

FUNCTION(leaf):
	lea 1(%rdi), %eax
	cmp $3, %eax
	je 1f
	nop
1:	ret

FUNCTION(overflow):
	sub $8, %rsp
	ud2
	.p2align 4, 0xcc
	.section .note.GNU-stack, "", @progbits
