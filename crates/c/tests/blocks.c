/* Large blocks that a program replaces again and again: their memory stays for the next block, counts as free,
 * and goes back when nobody needs it. Exits with 1 if that does not hold.
 *
 * The library goes by the clock: what is free for long, or is taken again much later, goes back. So each part
 * runs in a process of its own, and runs again if it failed while the machine kept it from its CPU. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8, TURNS = 300, MIB = 1 << 20, MANY = 200 };

static uint64_t random_state = 88172645463325252u;

static size_t below(size_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

static long faults(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) exit(2);
    return usage.ru_minflt;
}

/* Resident memory in KiB. */
static long resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long whole, pages;
    if (file == NULL || fscanf(file, "%ld %ld", &whole, &pages) != 2) exit(2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

static void expect(int holds, const char *what, long found, long bound) {
    if (holds) return;
    printf("%s: found %ld, expected %ld\n", what, found, bound);
    exit(1);
}

/* memset, which the compiler leaves out before a free. */
static void fill(char *block, size_t bytes) {
    memset(block, 1, bytes);
    __asm__ volatile("" : : "r"(block) : "memory");
}

/* Replaces one of `MANY` blocks of 64 to 264 KiB at a time, and writes to all its pages: a freed block and its
 * neighbours become the next blocks. */
static void replace_many(void) {
    static char *blocks[MANY];
    static size_t sizes[MANY];
    long page = sysconf(_SC_PAGESIZE), start = resident(), before = 0, touched = 0, live = 0, most = 0;
    for (int turn = 0; turn < 40 * MANY; turn++) {
        int at = below(MANY);
        /* The first fifth makes the memory that there is. */
        if (turn == 8 * MANY) before = faults(), touched = 0;
        free(blocks[at]);
        live -= sizes[at];
        sizes[at] = (64 << 10) + below(200 << 10);
        live += sizes[at];
        if (live > most) most = live;
        blocks[at] = malloc(sizes[at]);
        if (blocks[at] == NULL) exit(2);
        for (size_t byte = 0; byte < sizes[at]; byte += page) blocks[at][byte] = 1;
        touched += sizes[at] / page;
        if (turn % MANY == 0) {
            long grown = (resident() - start) << 10;
            expect(grown < most + most / 2 + 4 * MIB, "bytes resident", grown, most);
        }
    }
    expect(faults() - before < touched / 20, "page faults", faults() - before, touched / 20);
    for (int at = 0; at < MANY; at++) free(blocks[at]);
}

/* Freed blocks that lie side by side serve larger requests: each of the second half has neighbours on both
 * sides. */
static void join(void) {
    enum { BLOCKS = 32, BYTES = 128 << 10 };
    static char *blocks[BLOCKS];
    for (int at = 0; at < BLOCKS; at++) fill(blocks[at] = malloc(BYTES), BYTES);
    for (int at = 0; at < BLOCKS; at += 2) free(blocks[at]);
    for (int at = 1; at < BLOCKS; at += 2) free(blocks[at]);
    long before = faults(), pages = BLOCKS * BYTES / sysconf(_SC_PAGESIZE);
    for (int at = 0; at < BLOCKS / 4; at++) fill(blocks[at] = malloc(4 * BYTES), 4 * BYTES);
    expect(faults() - before < pages / 4, "page faults of joined blocks", faults() - before, pages / 4);
    for (int at = 0; at < BLOCKS / 4; at++) free(blocks[at]);
}

/* A block that is the beginning of a freed one grows where it is, and the end of a block that shrank is there for
 * it again. */
static void grow_in_place(void) {
    static char *volatile whole;
    whole = malloc(32 * MIB);
    fill(whole, 32 * MIB);
    free(whole);
    char *block = malloc(4 * MIB);
    long moved = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t bytes = 4 * MIB; bytes < 24 * MIB; bytes += MIB / 16) {
            uintptr_t before = (uintptr_t)block;
            block = realloc(block, bytes);
            if (block == NULL) exit(2);
            moved += (uintptr_t)block != before;
            block[bytes - 1] = 1;
        }
        block = realloc(block, 4 * MIB);
    }
    expect(moved <= 2, "moves of a block that grows", moved, 2);
    free(block);
}

/* A block that was in use during a pause stays for the next one when it is freed. */
static void pause_in_use(void) {
    char *block = malloc(4 * MIB);
    fill(block, 4 * MIB);
    malloc_trim(0);
    usleep(800000);
    free(block);
    /* Slow paths, which do upkeep. */
    for (int turn = 0; turn < 20; turn++) free(malloc(40 << 10));
    long before = faults();
    block = malloc(4 * MIB);
    fill(block, 4 * MIB);
    expect(faults() - before < 100, "page faults after a pause", faults() - before, 100);
    free(block);
}

/* A block that becomes large by realloc, where it is, counts as used: its memory stays when it is freed, if
 * the program took it again before. */
static void grow_again(void) {
    long before = 0, pages = 64 * MIB / sysconf(_SC_PAGESIZE);
    for (int turn = 0; turn < 5; turn++) {
        if (turn == 2) before = faults();
        char *block = malloc(4 * MIB);
        for (size_t bytes = 8 * MIB; bytes <= 64 * MIB; bytes += 4 * MIB) block = realloc(block, bytes);
        fill(block, 64 * MIB);
        free(block);
    }
    expect(faults() - before < pages / 2, "page faults of blocks that grow", faults() - before, pages / 2);
    malloc_trim(0);
}

/* A few blocks of 1 to 5 MiB are replaced; then nothing is in use for two seconds. */
static void replace_few(void) {
    static char *slots[SLOTS];
    /* A smaller request leaves a large freed block whole for the next request of its size. Less than 2 MiB
     * stay at any time. */
    slots[0] = malloc(MIB);
    uintptr_t place = (uintptr_t)slots[0];
    free(slots[0]);
    slots[1] = malloc(40 << 10);
    slots[0] = malloc(MIB);
    long distance = (uintptr_t)slots[0] - place;
    expect(distance == 0, "bytes from a freed block to the next", distance, 0);
    free(slots[0]);
    free(slots[1]);
    slots[0] = slots[1] = NULL;

    long page = sysconf(_SC_PAGESIZE), start = resident();
    long before = faults(), touched = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        int at = below(SLOTS);
        size_t bytes = MIB + below(4 * MIB);
        free(slots[at]);
        slots[at] = turn % 3 == 0 ? calloc(bytes, 1) : malloc(bytes);
        if (slots[at] == NULL) exit(2);
        for (size_t byte = 0; byte < bytes; byte += page) {
            expect(turn % 3 != 0 || slots[at][byte] == 0, "a byte of calloc", slots[at][byte], 0);
            slots[at][byte] = 1;
        }
        touched += bytes / page;
    }
    expect(faults() - before < touched / 3, "page faults", faults() - before, touched / 3);

    for (int at = 0; at < SLOTS; at++) free(slots[at]);
    struct mallinfo2 info = mallinfo2();
    expect(info.uordblks < MIB, "bytes in use after all blocks are free", info.uordblks, MIB);
    expect(info.keepcost <= info.fordblks, "bytes that go back", info.keepcost, info.fordblks);

    /* Upkeep is done on slow paths: a program that goes on to allocate has some. */
    for (int turn = 0; turn < 40; turn++) {
        usleep(50000);
        void *held[400];
        for (int i = 0; i < 400; i++) held[i] = malloc(100 + i);
        for (int i = 0; i < 400; i++) free(held[i]);
    }
    expect(resident() - start < 8 << 10, "KiB resident after two seconds", resident() - start, 8 << 10);

    /* What `malloc_trim` returns to the kernel includes blocks that stayed. */
    char *last = malloc(16 * MIB);
    fill(last, 16 * MIB);
    free(last);
    malloc_trim(0);
    expect(resident() - start < 8 << 10, "KiB resident after malloc_trim", resident() - start, 8 << 10);

}

static double seconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) exit(2);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static double of(struct timeval time) {
    return time.tv_sec + time.tv_usec / 1e6;
}

/* Runs a part, which sleeps for so many seconds. */
static void run(void (*part)(void), double sleeps) {
    enum { TRIES = 10 };
    for (int at = 0; at < TRIES; at++) {
        double began = seconds();
        int status;
        struct rusage usage;
        pid_t child = fork();
        if (child == 0) {
            part();
            exit(0);
        }
        if (child < 0 || wait4(child, &status, 0, &usage) != child) exit(2);
        if (status == 0) return;
        double cpu = of(usage.ru_utime) + of(usage.ru_stime), wall = seconds() - began - sleeps;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || cpu > wall * 3 / 4) exit(1);
    }
    exit(1);
}

int main(void) {
    run(grow_again, 0);
    run(join, 0);
    run(replace_few, 2);
    run(replace_many, 0);
    run(grow_in_place, 0);
    run(pause_in_use, 0.8);
    puts("all holds");
    return 0;
}
