/* A process that frees what it allocated, and sleeps: it makes no call that could give memory back.
 *
 *     cc -O2 scripts/programs/idle.c -o idle
 *     LD_PRELOAD=target/dist/libslablab.so ./idle 400 3 16 1000 0
 *
 * Arguments: MB to allocate, seconds to sleep, the least and the most bytes of a block (each doubling is as likely as
 * the next one), and of how many blocks one stays; 0: none. Blocks are freed in the order of their allocation. Prints
 * MB resident beyond the start: the most, at once after the frees, and after the sleep. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double resident_mb(void) {
    static char text[8192];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got <= 0) exit(3);
    close(file);
    text[got] = 0;
    return atol(strstr(text, "\nRss:") + 5) / 1024.0;
}

static uint64_t drawn(void) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "usage: idle MB SECONDS LEAST MOST ONE_OF\n");
        return 2;
    }
    size_t bytes = atol(arguments[1]) << 20, least = atol(arguments[3]), most = atol(arguments[4]), all = 0;
    double seconds = atof(arguments[2]);
    long one_of = atol(arguments[5]);
    if (bytes == 0 || least < 1 || most <= least) return 2;
    int doublings = 0;
    while (least << doublings < most) doublings++;
    /* The table is no memory of the allocator's. */
    size_t room = bytes / least + 1;
    void **blocks = mmap(NULL, room * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (blocks == MAP_FAILED) return 2;
    double start = resident_mb();
    for (size_t taken = 0; taken < bytes; all++) {
        size_t low = least << drawn() % doublings, size = low + drawn() % low;
        if (size > most) size = most;
        blocks[all] = malloc(size);
        if (blocks[all] == NULL) return 2;
        memset(blocks[all], 1, size);
        taken += size;
    }
    double table = all * sizeof *blocks / 1048576.0, full = resident_mb();
    for (size_t at = 0; at < all; at++) {
        if (one_of == 0 || at % one_of != 0) free(blocks[at]);
    }
    double freed = resident_mb();
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
    double asleep = resident_mb();
    printf("{\"most_mb\":%.1f,\"freed_mb\":%.1f,\"asleep_mb\":%.1f}\n", full - start - table, freed - start - table, asleep - start - table);
    return 0;
}
