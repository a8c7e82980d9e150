// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the memory of a JVM: what a frame of it is called, at each level of inlined methods. The first bytes say which frame; the
 * layout is like that of JDK 17, or, by a bit, of a version with numbers of the other form and offsets instead of addresses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "looped_memory.h"
#include "runtime/java/java_names.h"
#include "runtime/java/java_vm.h"

#define MAX_LEVELS 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct java_process process_of(bool is_new)
{
	return (struct java_process){
		.java = { .blob_name = 8, .nmethod_id = 16, .nmethod_state = 20, .const_constants = 8, .const_code_size = 16,
			  .const_name = 18, .const_signature = 20, .const_bytes = 48, .pool_holder = 24, .klass_name = 16, .pool_bytes = 72,
			  .header_bytes = 256, .segment_shift = 7, .block_bytes = is_new ? 8 : 16, .block_used = 4, .method_const = 8,
			  .symbol_mask = ~0xffff0000ULL },
		.layout = { .nmethod_method = 24, .scopes_data = 32, .scopes_pcs = 40, .pcs_end = 44,
			    .immutable_data = is_new ? 56 : JAVA_NONE, .metadata = is_new ? JAVA_NONE : 48, .mutable_data = 64,
			    .relocation_size = 72, .pc_desc_bytes = 16, .pc_desc_scope = 4, .const_flags = 22, .pool_length = 60,
			    .pool_source_file = 64, .klass_source_file = JAVA_NONE, .symbol_length = 0, .symbol_body = 6,
			    .scopes_data_is_address = !is_new, .is_sparse = is_new, .last_live_state = 2 },
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sonde_runtime_frame frame = { 0 };
	struct java_process process;
	struct memory memory;
	struct runtime_image image = { .runtime = SONDE_RUNTIME_JAVA };
	struct runtime_function function = { .has_caller = true };

	if (size < 32)
		return 0;
	process = process_of(data[0] & 1);
	memcpy(&frame.code, data + 8, 8);
	memcpy(&frame.where, data + 16, 8);
	memcpy(&frame.cookie, data + 24, 4);
	frame.where |= (uint64_t)(data[1] & 3) << SONDE_JAVA_CODE_SHIFT;
	memory = (struct memory){ data + 28, size - 28 };
	for (uint32_t level = 0; level < MAX_LEVELS && function.has_caller; level++) {
		function = (struct runtime_function){ .level = level };
		if (java_describe(&image, &process, &(struct runtime_memory){ read_memory, &memory }, &frame, &function))
			break;
		if (!memchr(function.name, '\0', sizeof(function.name)) || !memchr(function.file, '\0', sizeof(function.file)))
			abort();
		for (const char *at = function.name, *end = at + strlen(at); at < end;) {
			if (!utf8_is_plain(utf8_next(&at, end)))
				abort(); /* names are shown as they are */
		}
	}
	return 0;
}
