// SPDX-License-Identifier: MIT OR Apache-2.0
/* The kernel's words: messages, warnings, the ends of runs. */
#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/panic.h>
#include <linux/printk.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/mmflags.h>
#include "host.h"

/* The names of flags in messages; some trees end the list themselves. */
const struct trace_print_flags gfpflag_names[] = { __def_gfpflag_names, { 0, NULL } };
const struct trace_print_flags pageflag_names[] = { __def_pageflag_names, { 0, NULL } };
const struct trace_print_flags vmaflag_names[] = { __def_vmaflag_names, { 0, NULL } };

static char text[1024];

void slablab_end(u32 kind, const char *said, u64 caller)
{
	host_report(kind, said, caller);
	slablab_escape(slablab_current);
}

int _printk(const char *fmt, ...)
{
	va_list args;
	int length;

	va_start(args, fmt);
	length = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	host_report(SLABLAB_PRINTED, text, (u64)__builtin_return_address(0));
	return length;
}

void __warn_printk(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	host_report(SLABLAB_PRINTED, text, (u64)__builtin_return_address(0));
}

void panic(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	slablab_end(SLABLAB_PANIC, text, (u64)__builtin_return_address(0));
}

int ___ratelimit(struct ratelimit_state *rs, const char *func)
{
	return 1;
}

void dump_stack(void)
{
}

const char *print_tainted(void)
{
	return "";
}

void add_taint(unsigned flag, enum lockdep_ok lockdep_ok)
{
}

/* Addresses as they are: they name objects of this run. */
int ptr_to_hashval(const void *ptr, unsigned long *hash)
{
	*hash = (unsigned long)ptr;
	return 0;
}

#if SLABLAB_RELEASE >= 0x070000
/* WARN() is a call through a table, with the place. */
void slablab_warn(struct bug_entry *bug)
{
#ifdef CONFIG_DEBUG_BUGVERBOSE
	snprintf(text, sizeof(text), "%s:%u", (const char *)&bug->file_disp + bug->file_disp, bug->line);
#endif
	slablab_end(SLABLAB_WARNING, text, (u64)__builtin_return_address(0));
}
#endif

extern struct bug_entry slablab_bugs_start[], slablab_bugs_end[];

/* The place of an instruction that BUG() and WARN() trap with: 0 none, 1 BUG, 2 WARN. */
u64 slablab_find_bug(u64 address, const char **file, u32 *line)
{
	struct bug_entry *bug;

	for (bug = slablab_bugs_start; bug < slablab_bugs_end; bug++) {
#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
		u64 at = (u64)&bug->bug_addr_disp + (s64)bug->bug_addr_disp;
#else
		u64 at = bug->bug_addr;
#endif
		if (at != address)
			continue;
#ifdef CONFIG_DEBUG_BUGVERBOSE
#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
		*file = (const char *)&bug->file_disp + bug->file_disp;
#else
		*file = bug->file;
#endif
		*line = bug->line;
#endif
		return bug->flags & BUGFLAG_WARNING ? 2 : 1;
	}
	return 0;
}
