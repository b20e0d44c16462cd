/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In front of every file of the allocator: the cycle counter, which its code reads where it wants chance, is
 * the modelled machine's, so that a run can be repeated. The assembler sees the instruction's name as a macro.
 * And no release of a lock is a part of its caller: the model has the lock.
 */
#undef CONFIG_UNINLINE_SPIN_UNLOCK
#define CONFIG_UNINLINE_SPIN_UNLOCK 1
#undef CONFIG_INLINE_SPIN_UNLOCK_IRQ
#ifndef __ASSEMBLY__
asm(".macro rdtsc\n\tcall slablab_rdtsc\n\t.endm");
#endif
