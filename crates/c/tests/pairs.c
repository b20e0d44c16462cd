/* Calls malloc's functions in one of a few patterns, and prints the nanoseconds of thread CPU time that an operation took.
 * An operation is an allocation and a free; of the last two patterns, a block that realloc changes seven or eight times.
 * For counts of instructions run it under callgrind twice, and divide the difference by that of OPERATIONS.
 *
 *     cc -O1 -fno-builtin crates/c/tests/pairs.c -o pairs
 *     LD_PRELOAD=target/dist/libslablab.so ./pairs pair64 3000000        # PATTERN OPERATIONS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 1000, PLACES = 1024 };

static void *blocks[PLACES];
static uint32_t state = 1;

static uint32_t drawn(void) {
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static void loop(long operations) {
    for (long at = 0; at < operations; at++) {
        void *volatile block = blocks;
        (void)block;
    }
}

static void pairs(long operations, size_t bytes) {
    for (long at = 0; at < operations; at++) {
        void *volatile block = malloc(bytes);
        free(block);
    }
}

static void pair64(long operations) { pairs(operations, 64); }
static void pair4096(long operations) { pairs(operations, 4096); }

static void rows(long operations, size_t bytes) {
    for (long row = 0; row < operations / 64; row++) {
        for (int at = 0; at < 64; at++) blocks[at] = malloc(bytes);
        for (int at = 0; at < 64; at++) free(blocks[at]);
    }
}

static void rows3000(long operations) { rows(operations, 3000); }
static void rows4096(long operations) { rows(operations, 4096); }
static void rows8192(long operations) { rows(operations, 8192); }

static void b1000(long operations) {
    static int order[MANY];
    for (int at = 0; at < MANY; at++) order[at] = at;
    for (int at = MANY - 1; at > 0; at--) {
        int other = drawn() % (at + 1), was = order[at];
        order[at] = order[other];
        order[other] = was;
    }
    for (long row = 0; row < operations / MANY; row++) {
        for (int at = 0; at < MANY; at++) blocks[at] = malloc(64);
        for (int at = 0; at < MANY; at++) free(blocks[order[at]]);
    }
}

static void mixed(long operations) {
    for (long at = 0; at < operations; at++) {
        int place = drawn() % PLACES;
        free(blocks[place]);
        blocks[place] = malloc(16 + drawn() % 1008);
    }
}

static void calloc256(long operations) {
    for (long at = 0; at < operations; at++) {
        void *volatile block = calloc(1, 256);
        free(block);
    }
}

static void aligned64(long operations) {
    for (long at = 0; at < operations; at++) {
        void *volatile block = aligned_alloc(64, 128);
        free(block);
    }
}

static void pmemalign(long operations) {
    for (long at = 0; at < operations; at++) {
        void *block;
        if (posix_memalign(&block, 64, 128) != 0) abort();
        void *volatile kept = block;
        free(kept);
    }
}

static void realloc8(long operations) {
    for (long at = 0; at < operations; at++) {
        char *block = NULL;
        for (int times = 1; times <= 8; times++) block = realloc(block, times * 100);
        void *volatile kept = block;
        free(kept);
    }
}

static void realloc2(long operations) {
    for (long at = 0; at < operations; at++) {
        char *block = malloc(16);
        for (int power = 5; power < 12; power++) block = realloc(block, (size_t)1 << power);
        void *volatile kept = block;
        free(kept);
    }
}

static const struct {
    const char *name;
    void (*run)(long operations);
} patterns[] = {
    {"loop", loop},           {"pair64", pair64},       {"pair4096", pair4096},   {"64x3000", rows3000},
    {"64x4096", rows4096},    {"64x8192", rows8192},    {"b1000", b1000},         {"mixed", mixed},
    {"calloc256", calloc256}, {"aligned64", aligned64}, {"pmemalign", pmemalign}, {"realloc8", realloc8},
    {"realloc2", realloc2},
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **arguments) {
    size_t known = sizeof patterns / sizeof *patterns, at = 0;
    while (count == 3 && at < known && strcmp(arguments[1], patterns[at].name) != 0) at++;
    if (count != 3 || at == known) {
        fprintf(stderr, "usage: pairs PATTERN OPERATIONS; expected one of these patterns:");
        for (at = 0; at < known; at++) fprintf(stderr, " %s", patterns[at].name);
        fprintf(stderr, "\n");
        return 2;
    }
    long operations = atol(arguments[2]);
    double began = now();
    patterns[at].run(operations);
    printf("%s %.3f\n", arguments[1], (now() - began) / operations);
    return 0;
}
