/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes are moved by string instructions: a C version would be compiled into a call of itself. */
	.text
	.globl memcpy, __memcpy
memcpy:
__memcpy:
	mov %rdi, %rax
	mov %rdx, %rcx
	rep movsb
	ret

	.globl memset, __memset
memset:
__memset:
	mov %rdi, %r8
	mov %esi, %eax
	mov %rdx, %rcx
	rep stosb
	mov %r8, %rax
	ret

	.globl memmove, __memmove
memmove:
__memmove:
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
