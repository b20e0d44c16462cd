/* Run with LOW, HIGH and "order" or "mixed": asleep() below. Else:
 *
 * Each phase allocates other sizes than the phase before, 40 MB live at most. Objects of one phase's sizes
 * that caches keep are memory that the next phase lacks, and so are free pages in pieces that are too small for
 * its slabs. Prints the median of the resident sizes at the ends of the last 50 phases, and exits with 1 if it
 * is above LIMIT: engines have 47 to 67. Without the rule that counts from what the process needs it is 79 to 97,
 * and 73 to 79 where a process may grow by half before caches shrink. Single phases depend on the clock: SLQB's
 * have 48 to 68. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIVE = 40 << 20, PHASES = 100, OBJECTS = 1 << 20, LIMIT = 69 };

static uint64_t random_state = 88172645463325252u;

static size_t below(size_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

/* MB resident, without a call of malloc; 0 if it cannot be read. */
static long resident(void) {
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) < 0) return 0;
    close(file);
    long pages = 0;
    sscanf(text, "%*d %ld", &pages);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static int ascending(const void *left, const void *right) {
    return *(const long *)left < *(const long *)right ? -1 : *(const long *)left > *(const long *)right;
}

/* Allocates blocks of LOW to HIGH bytes, frees all of them, and sleeps: a process that makes no call gives
 * nothing back, so the frees must have done it. Allowed are 32 MB, or a 32nd of the most that was resident.
 * The blocks are freed in the order in which they were allocated, or in another one, which leaves a few live
 * ones in each slab until the end. */
static int asleep(size_t low, size_t high, int in_order) {
    enum { BYTES = 200 << 20, MOST = 32 };
    static char *blocks[OBJECTS];
    long before = resident(), count = 0;
    for (size_t bytes = 0; bytes < BYTES && count < OBJECTS; count++) {
        size_t size = low + below(high - low);
        blocks[count] = malloc(size);
        if (blocks[count] == NULL) return 2;
        memset(blocks[count], 1, size);
        bytes += size;
    }
    long most = resident();
    for (long at = count - 1; at > 0 && !in_order; at--) {
        long other = below(at + 1);
        char *block = blocks[at];
        blocks[at] = blocks[other];
        blocks[other] = block;
    }
    for (long at = 0; at < count; at++) free(blocks[at]);
    usleep(100000);
    long kept = resident() - before, bound = most / 32 > MOST ? most / 32 : MOST;
    printf("%zu to %zu bytes, %s order: %ld MB of %ld MB stay\n", low, high, in_order ? "this" : "another", kept,
           most);
    return before == 0 || kept > bound || most < BYTES >> 20;
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments == 4) {
        return asleep(atol(arguments[1]), atol(arguments[2]), strcmp(arguments[3], "order") == 0);
    }
    static long sizes[PHASES];
    static char *objects[OBJECTS];
    for (int phase = 0; phase < PHASES; phase++) {
        size_t live = 0, count = 0;
        while (live < LIVE && count < OBJECTS) {
            size_t size = phase % 2 ? 16 + below(1000) : 1000 + below(7000);
            objects[count] = malloc(size);
            if (objects[count] == NULL) return 2;
            memset(objects[count++], 1, size);
            live += size;
        }
        sizes[phase] = resident();
        while (count > 0) free(objects[--count]);
    }
    long *last = sizes + PHASES / 2;
    qsort(last, PHASES / 2, sizeof *last, ascending);
    printf("%ld MB of %d MB live (%ld to %ld)\n", last[PHASES / 4], LIVE >> 20, last[0], last[PHASES / 2 - 1]);
    return last[0] == 0 || last[PHASES / 4] > LIMIT;
}
