/* SPDX-License-Identifier: Apache-2.0 */
/* java_class: a class that the VM itself knows, and where its objects have their fields, by the class's own list of them: 21 and newer. */
#pragma once
#include <stdint.h>

#include "runtime/runtime.h"

/* From the VM's tables. */
struct java_class_layout {
	uint64_t classes;                  /* vmClasses::_klasses: InstanceKlass*[] */
	uint64_t symbols;                  /* Symbol::_vm_symbols: names of fields that the VM adds, by number */
	uint16_t name, size;               /* Klass._name, _layout_helper */
	uint16_t constants, fields;        /* InstanceKlass._constants, _fieldinfo_stream */
	uint16_t pool_bytes;               /* size of a ConstantPool: its entries follow */
	uint16_t symbol_length, symbol_body;
};

/* By its name with slashes. 0; -ENOENT: there is none yet. */
MUST_CHECK int java_class_find(const struct java_class_layout *layout, const struct runtime_memory *memory, const char *name,
			       uint64_t *ret_class);
/* Of an object without what some have behind their fields. 0 or -EFAULT. */
MUST_CHECK int java_class_bytes(const struct java_class_layout *layout, const struct runtime_memory *memory, uint64_t class,
				uint32_t *ret_bytes);
/* Where an object has this field; also one that the VM adds to the class. 0; -ENOENT: it has none; -EFAULT; -EBADMSG. */
MUST_CHECK int java_class_field(const struct java_class_layout *layout, const struct runtime_memory *memory, uint64_t class,
				const char *name, uint16_t *ret_off);
