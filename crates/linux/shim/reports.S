/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the tree's code reports of itself: accesses (the compiler's calls for KCSAN) and blocks of instructions
 * (its calls for coverage). Each is a record of 16 bytes: the address; the bytes and, from bit 24 on, the kind;
 * the caller. The program takes the records whenever the image calls it or returns, and before the room is full.
 */
#ifdef SLABLAB_INSTRUMENTED
#define READ 0
#define WRITE 1
#define EXCHANGE 2
#define BLOCK 3
/* Bytes that one instruction writes: memory.S. */
#define FILL 4
#define RECORDS 1024
/* Room for records of functions that do not call the program. */
#define SPARE 64

	.text
	.macro report name, bytes, kind
	.globl \name
\name:
	mov $(\bytes | \kind << 24), %eax
	jmp slablab_record
	.endm

	.macro reports name, bytes
	report __tsan_read\name, \bytes, READ
	report __tsan_write\name, \bytes, WRITE
	report __tsan_unaligned_read\name, \bytes, READ
	report __tsan_unaligned_write\name, \bytes, WRITE
	report __tsan_volatile_read\name, \bytes, READ
	report __tsan_volatile_write\name, \bytes, WRITE
	report __tsan_unaligned_volatile_read\name, \bytes, READ
	report __tsan_unaligned_volatile_write\name, \bytes, WRITE
	.endm

	reports 1, 1
	reports 2, 2
	reports 4, 4
	reports 8, 8
	reports 16, 16
	report __sanitizer_cov_trace_pc, 0, BLOCK

	.globl __tsan_read_range, __tsan_write_range
__tsan_write_range:
	and $0xffffff, %esi
	lea (WRITE << 24)(%rsi), %eax
	jmp slablab_record
__tsan_read_range:
	mov %esi, %eax
	and $0xffffff, %eax

/* Keeps a record: rdi the address, eax bytes and kind, on the stack the caller. */
slablab_record:
	mov slablab_next(%rip), %rcx
	mov %rdi, (%rcx)
	mov %eax, 8(%rcx)
	mov (%rsp), %rax
	mov %eax, 12(%rcx)
	add $16, %rcx
	mov %rcx, slablab_next(%rip)
	cmp $slablab_records + 16 * RECORDS, %rcx
	jae host_reports
	ret

/* An access that the tree's headers report: edx says write 1, compound 2, atomic 4, an assertion 8. */
	.globl __kcsan_check_access
__kcsan_check_access:
	test $8, %edx
	jnz 1f
	and $7, %edx
	movzbl slablab_kinds(%rdx), %eax
	shl $24, %eax
	and $0xffffff, %esi
	or %esi, %eax
	jmp slablab_record
1:	ret

/* What asks for a while without reports, or more of the race detector: there is none here. */
	.globl __tsan_init, kcsan_disable_current, kcsan_enable_current, kcsan_enable_current_nowarn
	.globl kcsan_nestable_atomic_begin, kcsan_nestable_atomic_end, kcsan_flat_atomic_begin
	.globl kcsan_set_access_mask
	.globl kcsan_flat_atomic_end, kcsan_atomic_next, __kcsan_mb, __kcsan_wmb, __kcsan_rmb, __kcsan_release
__tsan_init:
kcsan_disable_current:
kcsan_enable_current:
kcsan_enable_current_nowarn:
kcsan_nestable_atomic_begin:
kcsan_nestable_atomic_end:
kcsan_flat_atomic_begin:
kcsan_flat_atomic_end:
kcsan_atomic_next:
kcsan_set_access_mask:
__kcsan_mb:
__kcsan_wmb:
__kcsan_rmb:
__kcsan_release:
	ret

/* A record of a function that writes edx bytes at rdi: r10 its caller; keeps all registers but rax, rcx. */
	.globl slablab_record_bytes
slablab_record_bytes:
	mov %edx, %eax
	and $0xffffff, %eax
	or $(FILL << 24), %eax
	mov slablab_next(%rip), %rcx
	cmp $slablab_records + 16 * (RECORDS + SPARE), %rcx
	jae 1f
	mov %rdi, (%rcx)
	mov %eax, 8(%rcx)
	mov %r10d, 12(%rcx)
	add $16, %rcx
	mov %rcx, slablab_next(%rip)
1:	ret

	.section .rodata
slablab_kinds:
	.byte READ, WRITE, READ, WRITE, READ, WRITE, READ, EXCHANGE

	.data
	.balign 8
	.globl slablab_next
slablab_next:
	.quad slablab_records

	.bss
	.balign 64
	.globl slablab_records
slablab_records:
	.skip 16 * (RECORDS + SPARE)
	/* How often interrupts were taken off, and the CPU's own data exchanged. */
	.globl slablab_steps
slablab_steps:
	.quad 0, 0
#endif
	.section .note.GNU-stack, "", @progbits
