// SPDX-License-Identifier: Apache-2.0
/* Encoded pointers: LSB core "DWARF Exception Header Encoding". */
#include "cfi/cfi_program.h"

enum {
	DW_EH_PE_absptr = 0x00,
	DW_EH_PE_uleb128 = 0x01,
	DW_EH_PE_udata2 = 0x02,
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_udata8 = 0x04,
	DW_EH_PE_sleb128 = 0x09,
	DW_EH_PE_sdata2 = 0x0a,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_sdata8 = 0x0c,

	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_textrel = 0x20,
	DW_EH_PE_datarel = 0x30,
};

static uint64_t read_value(struct reader *r, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return reader_u64(r);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)reader_u32(r);
	case DW_EH_PE_udata4:
		return reader_u32(r);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)reader_u16(r);
	case DW_EH_PE_udata2:
		return reader_u16(r);
	case DW_EH_PE_uleb128:
		return reader_uleb(r);
	case DW_EH_PE_sleb128:
		return (uint64_t)reader_sleb(r);
	default:
		reader_fail(r);
		return 0;
	}
}

/* The base of an application. DW_EH_PE_omit, _aligned, _funcrel and _indirect are refused. */
static uint64_t base_of(const struct cfi_section *section, struct reader *r, uint8_t application)
{
	uint64_t base = 0;

	switch (application) {
	case DW_EH_PE_absptr:
		return 0;
	case DW_EH_PE_pcrel:
		return section->vaddr + (uint64_t)(r->pos - (const uint8_t *)section->bytes);
	case DW_EH_PE_textrel:
		base = section->text_vaddr;
		break;
	case DW_EH_PE_datarel:
		base = section->data_vaddr;
		break;
	}
	if (!base)
		reader_fail(r);
	return base;
}

uint64_t cfi_read_pointer(const struct cfi_section *section, struct reader *r, uint8_t encoding)
{
	uint64_t base = base_of(section, r, encoding & 0xf0), value = read_value(r, encoding & 0x0f);

	return !value || r->bad ? 0 : base + value; /* a null pointer has no base: linkers cross out what they dropped this way */
}
