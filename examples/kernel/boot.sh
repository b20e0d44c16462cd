#!/bin/sh
# Boots a kernel in QEMU with 4 CPUs: sh boot.sh target/x86_64-unknown-none/release/kernel [option of QEMU]...
# The kernel's log goes to the standard output. The kernel ends QEMU through the device isa-debug-exit with a
# number; QEMU's exit status is twice the number plus 1. The kernel's 16 means that every check passed.
kernel=$1
shift
"${QEMU:-qemu-system-x86_64}" -machine q35 -smp 4 -m 128M -display none -serial stdio -no-reboot \
    -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$kernel" "$@"
status=$?
[ $status -eq 33 ] && exit 0
echo "QEMU's exit status is $status, expected 33: the kernel did not end with 16" >&2
exit 1
