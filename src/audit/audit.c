// SPDX-License-Identifier: Apache-2.0
/* libdw steps from frame to frame. Beside it, we look up the call frame information that it finds at each frame. That shows three things
 * libdw does not report: whether it would fall back to frame pointers (then we stop it), whether a return address is undefined by rule or
 * could not be read, and whether the next frame was interrupted by a signal. */
#include "audit/audit.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "audit/audit_process.h"


struct audit {
	struct audit_processes processes;
	Elf64_Ehdr machine; /* an ELF header alone: tells libdw the machine */
	/* state of the current unwinding */
	const struct sonde_deferred_record *record;
	const struct audit_process *process;
	const struct elf_file *wanted; /* file of the module that we look up in libdw */
	struct audit_stack *stack;
	Dwfl *dwfl;
	bool ended;           /* stack->end is set */
	bool next_is_plain;   /* a signal interrupted the instruction at the next pc */
	bool a_read_failed;   /* in this unwinding */
	bool last_read_failed, any_read;
	uint64_t last_word;   /* of the current step; libdw reads the return address last */
};

/* --- callbacks for libdw -------------------------------------------------------------------------------------------------------------- */

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file_name, Elf **ret_elf)
{
	struct audit *audit = *userdata;

	*ret_elf = audit && audit->wanted ? audit_files_handle(&audit->processes.files, audit->wanted) : NULL;
	return -1; /* no descriptor for libdw to close */
}

/* Searches no other file: neither by name, nor by build id, nor at a server. */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file_name, const char *link,
			  GElf_Word link_crc, char **ret_file_name)
{
	return -1;
}

static const Dwfl_Callbacks file_callbacks = { .find_elf = find_elf, .find_debuginfo = find_debuginfo };

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *ret_word, void *arg)
{
	struct audit *audit = arg;
	uint64_t off = at - audit->record->stack_start;

	audit->any_read = true;
	audit->last_read_failed = !sonde_deferred_has(audit->record, off, sizeof(*ret_word));
	audit->a_read_failed |= audit->last_read_failed;
	if (audit->last_read_failed)
		return false;
	memcpy(ret_word, (const char *)(audit->record + 1) + off, sizeof(*ret_word));
	audit->last_word = *ret_word;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct audit *audit = arg;
	Dwarf_Word registers[SONDE_NR_REGS];

	for (int i = 0; i < SONDE_NR_REGS; i++)
		registers[i] = audit->record->regs[i];
	return dwfl_thread_state_registers(thread, 0, SONDE_NR_REGS, registers); /* x86-64: SONDE_REG_PC is the return address's column */
}

static bool the_thread(Dwfl *dwfl, pid_t tid, void *arg, void **ret_thread_arg)
{
	*ret_thread_arg = arg;
	return true;
}

static pid_t no_threads(Dwfl *dwfl, void *arg, void **ret_thread_arg)
{
	return 0; /* libdw demands the callback; we use only the_thread */
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = no_threads,
	.get_thread = the_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* --- frames --------------------------------------------------------------------------------------------------------------------------- */

enum found { FOUND_NOTHING, FOUND_RULE, FOUND_SIGNAL, FOUND_ROOT };

static const struct audit_module *module_at(const struct audit_process *process, uint64_t pc)
{
	uint32_t lo = 0, hi = process->nr_modules;

	while (lo < hi) {
		uint32_t middle = lo + (hi - lo) / 2;

		if (process->modules[middle].end_pc <= pc)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < process->nr_modules && process->modules[lo].start_pc <= pc ? &process->modules[lo] : NULL;
}

/* Returns the kind of frame that the call frame information describes at this address of the file. */
static enum found find_rule(Dwarf_CFI *cfi, uint64_t elf_vaddr)
{
	enum found found = FOUND_RULE;
	Dwarf_Op memory[3], *ops;
	Dwarf_Frame *frame;
	bool is_signal;
	size_t nr_ops;
	int ra;

	if (!cfi || dwarf_cfi_addrframe(cfi, elf_vaddr, &frame))
		return FOUND_NOTHING;
	ra = dwarf_frame_info(frame, NULL, NULL, &is_signal);
	if (ra < 0)
		found = FOUND_NOTHING;
	else if (!dwarf_frame_register(frame, ra, memory, &ops, &nr_ops) && !nr_ops && ops == memory)
		found = FOUND_ROOT;
	else if (is_signal)
		found = FOUND_SIGNAL;
	free(frame);
	return found;
}

/* Does the same look-ups in the same order as libdw (libdwfl/frame_unwind.c), without libdw's further attempts. */
static enum found look_up(struct audit *audit, uint64_t pc)
{
	const struct audit_module *module = module_at(audit->process, pc);
	Dwfl_Module *theirs = module && module->elf ? dwfl_addrmodule(audit->dwfl, pc) : NULL;
	Dwarf_Addr start, bias;
	enum found found;
	Dwarf_CFI *cfi;

	if (!theirs || !dwfl_module_info(theirs, NULL, &start, NULL, NULL, NULL, NULL, NULL) || start != audit_low_pc(module))
		return FOUND_NOTHING;
	audit->wanted = module->elf;
	cfi = dwfl_module_eh_cfi(theirs, &bias);
	found = find_rule(cfi, pc - module->load_bias);
	if (found == FOUND_NOTHING && audit_debug_frame_bytes(module->elf)) {
		cfi = dwfl_module_dwarf_cfi(theirs, &bias);
		found = find_rule(cfi, pc - module->load_bias);
	}
	return cfi && bias == module->load_bias ? found : FOUND_NOTHING;
}

static int end_with(struct audit *audit, enum audit_end end)
{
	audit->stack->end = end;
	audit->ended = true;
	return DWARF_CB_ABORT;
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct audit *audit = arg;
	struct audit_stack *stack = audit->stack;
	bool is_plain = !stack->nr_frames || audit->next_is_plain;
	Dwarf_Addr pc;
	enum found found;

	if (!dwfl_frame_pc(frame, &pc, NULL))
		return end_with(audit, AUDIT_END_LIBDW);
	if (stack->nr_frames && !module_at(audit->process, is_plain ? pc : pc - 1))
		return end_with(audit, AUDIT_END_NO_CODE);
	if (stack->nr_frames == AUDIT_MAX_FRAMES)
		return end_with(audit, AUDIT_END_FRAMES);
	stack->frames[stack->nr_frames++] = is_plain ? pc : pc | SONDE_FRAME_RETURN;
	found = look_up(audit, is_plain ? pc : pc - 1);
	if (found == FOUND_NOTHING)
		return end_with(audit, AUDIT_END_NO_CFI);
	if (found == FOUND_ROOT)
		return end_with(audit, AUDIT_END_ROOT);
	audit->next_is_plain = found == FOUND_SIGNAL;
	audit->any_read = audit->last_read_failed = false;
	return DWARF_CB_OK;
}

/* Why libdw made no step from the last frame. libdw reports "no caller" also if the return address could not be read. */
static enum audit_end end_of_step(const struct audit *audit)
{
	if (audit->any_read && !audit->last_read_failed && !audit->last_word)
		return AUDIT_END_ROOT;
	return audit->a_read_failed ? AUDIT_END_COPY : AUDIT_END_LIBDW; /* a failed read long before may have lost a register */
}

int audit_unwind(struct audit *audit, const struct sonde_deferred_record *record, const struct audit_process *process,
		 struct audit_stack *ret_stack)
{
	int err;

	if (record->stack_bytes > SONDE_DEFERRED_MAX_BYTES)
		return -EINVAL;
	ret_stack->nr_frames = 0;
	ret_stack->end = AUDIT_END_COMPAT;
	if (record->compat)
		return 0;
	err = audit_processes_get(&audit->processes, process, &audit->dwfl);
	if (err)
		return err;
	audit->record = record;
	audit->process = process;
	audit->stack = ret_stack;
	audit->ended = audit->next_is_plain = audit->a_read_failed = audit->last_read_failed = audit->any_read = false;
	dwfl_getthread_frames(audit->dwfl, 1, on_frame, audit);
	if (!audit->ended)
		ret_stack->end = end_of_step(audit);
	audit->record = NULL;
	audit->process = NULL;
	audit->wanted = NULL;
	audit->stack = NULL;
	return 0;
}

int audit_new(struct diag *diag, struct audit **ret_audit)
{
	CLEANUP(audit_freep) struct audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return -ENOMEM;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return diag_errno(diag, ENOTSUP, "libelf: %s", elf_errmsg(-1));
	audit->machine = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
	};
	audit->processes.machine = elf_memory((char *)&audit->machine, sizeof(audit->machine));
	if (!audit->processes.machine)
		return diag_errno(diag, ENOTSUP, "libelf: %s", elf_errmsg(-1));
	audit->processes.file_callbacks = &file_callbacks;
	audit->processes.thread_callbacks = &thread_callbacks;
	audit->processes.arg = audit;
	*ret_audit = MOVE(audit);
	return 0;
}

void audit_free(struct audit *audit)
{
	if (!audit)
		return;
	audit_processes_done(&audit->processes);
	if (audit->processes.machine)
		elf_end(audit->processes.machine);
	free(audit);
}
