/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes are moved by string instructions: a C version would be compiled into a call of itself. */
/* Of bytes that are read the instrumented image reports nothing: what is copied is written elsewhere. */
	.macro written
#ifdef SLABLAB_INSTRUMENTED
	mov (%rsp), %r10
	call slablab_record_bytes
#endif
	.endm

	.text
	.globl memcpy, __memcpy
memcpy:
__memcpy:
	written
	mov %rdi, %rax
	mov %rdx, %rcx
	rep movsb
	ret

	.globl memset, __memset
memset:
__memset:
	written
	mov %rdi, %r8
	mov %esi, %eax
	mov %rdx, %rcx
	rep stosb
	mov %r8, %rax
	ret

	.globl memmove, __memmove
memmove:
__memmove:
	written
	mov %rdi, %rax
	mov %rdx, %rcx
	cmp %rsi, %rdi
	jbe 1f
	lea -1(%rsi,%rdx), %rsi
	lea -1(%rdi,%rdx), %rdi
	std
	rep movsb
	cld
	ret
1:	rep movsb
	ret

	.section .note.GNU-stack, "", @progbits
