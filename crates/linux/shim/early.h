/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In front of every file of the allocator: the cycle counter, which its code reads where it wants chance, is
 * the modelled machine's, so that a run can be repeated. The assembler sees the instruction's name as a macro.
 */
#ifndef __ASSEMBLY__
asm(".macro rdtsc\n\tcall slablab_rdtsc\n\t.endm");
#endif
