// SPDX-License-Identifier: MIT OR Apache-2.0
/* Accesses that the tree's code reports itself, also where the compiler reports none. */
#include <linux/kcsan-checks.h>
#include "host.h"

#ifndef SLABLAB_INSTRUMENTED
void __kcsan_check_access(const volatile void *ptr, size_t size, int type)
{
}

/* How the code would have its accesses checked: nothing is. The headers may have macros of these names. */
#define NOTHING(name) asm(".text\n\t.globl " #name "\n" #name ":\n\tret")
NOTHING(kcsan_set_access_mask);
NOTHING(kcsan_disable_current);
NOTHING(kcsan_enable_current);
NOTHING(kcsan_enable_current_nowarn);
NOTHING(kcsan_atomic_next);
NOTHING(kcsan_nestable_atomic_begin);
NOTHING(kcsan_nestable_atomic_end);
NOTHING(kcsan_flat_atomic_begin);
NOTHING(kcsan_flat_atomic_end);
#endif
