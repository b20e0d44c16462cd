/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ways into the image and out of it.
 *
 * Functions of the program get the running call as their sixth argument.
 *
 * A call of the program (`struct Call` in image/call.rs): 0 the base of GS, 8 the function, 16 to 48 its five
 * arguments, 56 the result, 64 the stack, 72 whether the call was left by slablab_escape, 80 the base of GS that it
 * goes on with if it was moved to another CPU, or 0, 88 a word of the shim's own.
 */
	.text

/* slablab_enter(call): runs the call's function on the CPU whose base of GS it names. */
	.globl slablab_enter
slablab_enter:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	push slablab_current(%rip)
	push %rdi
	mov %rsp, 64(%rdi)
	mov %rdi, slablab_current(%rip)
	mov 0(%rdi), %rax
	wrgsbase %rax
	mov 8(%rdi), %rax
	mov 24(%rdi), %rsi
	mov 32(%rdi), %rdx
	mov 40(%rdi), %rcx
	mov 48(%rdi), %r8
	mov 16(%rdi), %rdi
	call *%rax
	pop %rdi
	mov %rax, 56(%rdi)
.Lleave:
	pop slablab_current(%rip)
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret

/* slablab_escape(call): the call ends here. */
	.globl slablab_escape
slablab_escape:
	mov 64(%rdi), %rsp
	movq $1, 72(%rdi)
	cld
	pop %rdi
	jmp .Lleave

	.macro host name, index
	.globl host_\name
host_\name:
	mov $\index, %eax
	jmp slablab_call_host
	.endm

	host pages_alloc, 0
	host pages_free, 1
	host lock, 2
	host trylock, 3
	host unlock, 4
	host after_grace_period, 5
	host barrier, 6
	host report, 7
	host jiffies, 8
	host random, 9
	host defer, 10
	host owner, 11
	host reports, 12

slablab_call_host:
	push %rbp
	mov %rsp, %rbp
	push %rbx
	push %r12
	rdgsbase %rbx
	mov slablab_current(%rip), %r12
	and $-16, %rsp
	mov %r12, %r9
	mov %eax, %eax
	call *slablab_host_table(,%rax,8)
	mov 80(%r12), %rcx
	test %rcx, %rcx
	cmovnz %rcx, %rbx
	movq $0, 80(%r12)
	wrgsbase %rbx
	mov %r12, slablab_current(%rip)
	lea -16(%rbp), %rsp
	pop %r12
	pop %rbx
	pop %rbp
	ret

/* A symbol without a meaning was called: its stub has put the name into rdi and the caller into rsi. */
	.globl slablab_missing
slablab_missing:
	mov %rsi, %rdx
	mov %rdi, %rsi
	mov $4, %edi
	jmp slablab_end

/* The call of WARN() since 7.0: rdi is its place. */
	.weak slablab_warn
	.globl __SCT__WARN_trap
__SCT__WARN_trap:
	jmp slablab_warn

/* Interrupt flags of the CPU. These functions keep all registers but rax. */
	.globl slablab_save_fl
slablab_save_fl:
	mov %gs:slablab_flags, %rax
	ret
	.globl slablab_irq_disable
slablab_irq_disable:
#ifdef SLABLAB_INSTRUMENTED
	incq slablab_steps(%rip)
#endif
	movq $0, %gs:slablab_flags
	ret
	.globl slablab_irq_enable
slablab_irq_enable:
	movq $0x200, %gs:slablab_flags
	ret

/* The cycle counter: rdx:rax. All other registers stay. */
	.globl slablab_rdtsc
slablab_rdtsc:
	push %rdi
	push %rsi
	push %rcx
	push %r8
	push %r9
	push %r10
	push %r11
	call host_random
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rcx
	pop %rsi
	pop %rdi
	xor %edx, %edx
	ret

/* The exchange of 16 bytes at %gs:(%rsi): rdx:rax old, rcx:rbx new; al = 1 if it was done. */
	.globl this_cpu_cmpxchg16b_emu
this_cpu_cmpxchg16b_emu:
#ifdef SLABLAB_INSTRUMENTED
	incq slablab_steps+8(%rip)
#endif
	cmpxchg16b %gs:(%rsi)
	sete %al
	ret

	.section .data..percpu, "aw"
	.balign 8
	.globl slablab_flags
slablab_flags:
	.quad 0x200

	.bss
	.balign 8
	.globl slablab_current
slablab_current:
	.quad 0
	.globl slablab_host_table
slablab_host_table:
	.fill 16, 8, 0

	.section .note.GNU-stack, "", @progbits
