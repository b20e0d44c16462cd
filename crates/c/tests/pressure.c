/* A process that took 100 MB again and again keeps them for the next time. Then it maps 120 MB itself, as a
 * program does that reads files or starts a runtime, and allocates a little meanwhile. Prints the most MB that it
 * held together. With a folder it writes what it holds to `memory.current` there after each step, as a kernel
 * does in the files of a cgroup; with `waits` behind it also that tasks wait for memory all the time. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 1000, BLOCKS = 100000, ROUNDS = 6, STEP = 2 << 20, STEPS = 60 };

static char *blocks[BLOCKS];

static void swing(void) {
    for (int at = 0; at < BLOCKS; at++) {
        blocks[at] = malloc(BLOCK);
        if (blocks[at] == NULL) exit(2);
        memset(blocks[at], 1, BLOCK);
    }
    for (int at = 0; at < BLOCKS; at++) free(blocks[at]);
}

/* A few blocks of all sizes. */
static void work(void) {
    for (int at = 0; at < 2000; at++) {
        char *volatile block = malloc(16 + at * 37 % 40000);
        free(block);
    }
}

static long held_mb(void) { return (long)((mallinfo2().arena + mallinfo2().hblkhd) >> 20); }

static void tell(const char *folder, const char *name, const char *begin, long number) {
    char path[600], text[80];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int length = snprintf(text, sizeof text, "%s%ld\n", begin, number);
    if (file < 0 || write(file, text, length) != length) exit(3);
    close(file);
}

int main(int count, char **arguments) {
    for (int round = 0; round < ROUNDS; round++) swing();
    long kept = held_mb(), most = kept, soon = kept;
    for (int step = 1; step <= STEPS; step++) {
        char *memory = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 4;
        memset(memory, 1, STEP);
        long mapped = step * (long)STEP >> 20;
        if (count > 1) tell(arguments[1], "memory.current", "", (mapped + held_mb()) << 20);
        /* Microseconds: as long as the sleep below. */
        if (count > 2) tell(arguments[1], "memory.pressure", "some avg10=9.00 avg60=9.00 avg300=9.00 total=", step * 25000L);
        work();
        /* Longer than the time between two looks at the limit. */
        usleep(25000);
        work();
        if (step == 1) soon = held_mb();
        if (mapped + held_mb() > most) most = mapped + held_mb();
    }
    printf("%ld MB kept, %ld MB at most, %ld MB soon after\n", kept, most, soon);
    return 0;
}
