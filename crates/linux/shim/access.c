// SPDX-License-Identifier: MIT OR Apache-2.0
/* Accesses that the tree's code reports itself, also where the compiler reports none. */
#include <linux/kcsan-checks.h>
#include "host.h"

#ifndef SLABLAB_INSTRUMENTED
void __kcsan_check_access(const volatile void *ptr, size_t size, int type)
{
}
#endif
