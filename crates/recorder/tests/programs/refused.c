/* Counts the system calls with which the preloaded library tries to write while it cannot.
   The functions are found here before those of the C library: with `full` the disk is full.
   Calls of 5001 bytes come before, of 5002 meanwhile, of 5003 afterwards. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int full;
static volatile long system_calls;

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    system_calls++;
    if (full) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static int opens(int folder, const char *path, int flags, int mode) {
    system_calls++;
    return syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return opens(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return opens(folder, path, flags, mode);
}

int close(int fd) {
    system_calls++;
    return syscall(SYS_close, fd);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    system_calls++;
    return -syscall(SYS_rt_sigprocmask, how, set, old, 8);
}

static void calls(int count, size_t size) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(size);
        free(block);
    }
}

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int count, char **words) {
    calls(5000, 5001);
    full = count > 1 && strcmp(words[1], "full") == 0;
    long before = system_calls, start = milliseconds();
    calls(500000, 5002);
    long tried = system_calls - before, took = milliseconds() - start;
    full = 0;
    usleep(500000);
    calls(1000, 5003);
    char line[80];
    int length = snprintf(line, sizeof line, "%ld %ld\n", tried, took);
    return write(1, line, length) != length;
}
