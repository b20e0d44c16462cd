# From the first instruction of a CPU to its first of Rust, in AT&T syntax.
#
#   start32   the boot CPU, by the PVH protocol: 32 bits, no paging, %ebx has the address of the start info
#   ap16      every other CPU, in a copy at AP_START: 16 bits
#   enter64   all CPUs: page tables, 64 bits, a number, a stack, cpu_start(number, start info)

    # QEMU's -kernel, Xen and Firecracker find the entry in this note (XEN_ELFNOTE_PHYS32_ENTRY = 18).
    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad start32

    .section .boot, "awx"
    .code32
    .global start32
start32:
    cli
    cld
    mov %ebx, start_info
    jmp enter64
ap32:
    mov $16, %eax
    mov %eax, %ds
enter64:
    mov $pml4, %eax
    mov %eax, %cr3
    mov $0x20, %eax             # physical address extension
    mov %eax, %cr4
    mov $0xc0000080, %ecx       # EFER: long mode
    rdmsr
    or $0x100, %eax
    wrmsr
    mov $0x80010011, %eax       # paging, write protection, protected mode
    mov %eax, %cr0
    lgdt gdt_pointer
    ljmp $8, $start64

    .code64
start64:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov $1, %edi
    lock xadd %edi, next_cpu    # this CPU's number
    cmp $CPUS, %edi
    jae 1f                      # there is no stack for it
    lea 1(%rdi), %eax
    imul $STACK, %eax, %eax
    lea stacks(%rax), %rsp
    mov start_info, %esi
    call cpu_start
1:  cli
    hlt
    jmp 1b

    .code16
    .global ap16, ap16_end
ap16:
    cli
    cld
    xor %ax, %ax
    mov %ax, %ds
    lgdtl AP_START + (ap16_gdt - ap16)
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $24, $ap32
    .balign 8
ap16_gdt:
    .word 31
    .long gdt
ap16_end:

    .balign 8
gdt:                            # 8: code of 64 bits, 16: data, 24: code of 32 bits
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff
gdt_pointer:
    .word 31
    .long gdt
start_info:
    .long 0
next_cpu:
    .long 0

    .balign 4096                # 4 GiB, each address mapped to itself by pages of 2 MiB
pml4:
    .quad pdpt + 3
    .fill 511, 8, 0
pdpt:
    .quad pd + 0x3, pd + 0x1003, pd + 0x2003, pd + 0x3003
    .fill 508, 8, 0
pd:
    .set page, 0
    .rept 2048
    .quad (page << 21) + 0x83
    .set page, page + 1
    .endr

    # Interrupts. The compiler's code saves the other registers; the kernel uses no floating point.
    .text
    .code64
    .global timer_entry, fault_entry
timer_entry:
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    cld
    call timer_interrupt        # the stack is aligned: the CPU pushed 5 words after it aligned it, these are 9
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rax
    iretq
fault_entry:
    mov %rsp, %rdi
    and $-16, %rsp
    call fault
