// SPDX-License-Identifier: Apache-2.0
#include "textflag.h"

// func spinAsm(steps int)
TEXT ·spinAsm(SB), NOSPLIT, $0-8
	MOVQ	steps+0(FP), CX
again:
	IMUL3Q	$3, AX, AX
	ADDQ	$1, AX
	DECQ	CX
	JNZ	again
	RET

// func spinFrame(steps int)
TEXT ·spinFrame(SB), 0, $32-8
	MOVQ	steps+0(FP), CX
	MOVQ	CX, 0(SP)
	CALL	·spinAsm(SB)
	RET
