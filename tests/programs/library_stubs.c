// SPDX-License-Identifier: Apache-2.0
/* The library of `stubs`: functions of one instruction and a return. */
#define STUB(n) \
	long stub_##n(long value); \
	long stub_##n(long value) \
	{ \
		return value + 1; \
	}
STUB(00)
STUB(01) STUB(02) STUB(03) STUB(04) STUB(05) STUB(06) STUB(07) STUB(08) STUB(09) STUB(10) STUB(11) STUB(12) STUB(13) STUB(14) STUB(15)
    STUB(16) STUB(17) STUB(18) STUB(19) STUB(20) STUB(21) STUB(22) STUB(23) STUB(24) STUB(25) STUB(26) STUB(27) STUB(28) STUB(29) STUB(30)
	STUB(31)
