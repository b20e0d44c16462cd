/* Each phase allocates other sizes than the phase before, 40 MB live at most. Objects of one phase's sizes
 * that caches keep are memory that the next phase lacks, and so are free pages in pieces that are too small for
 * its slabs. Prints the largest resident size, and exits with 1 if it was above 68 MB (engines have 47 to 62):
 * without the rules by which caches shrink when the process grows it is more, and without the one that counts
 * from what the process needs it creeps up to 95 and more in a hundred phases. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LIVE = 40 << 20, PHASES = 100, OBJECTS = 1 << 20 };

static uint64_t random_state = 88172645463325252u;

static size_t below(size_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

int main(void) {
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
        while (count > 0) free(objects[--count]);
    }
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 2;
    printf("%ld MB of %d MB live\n", usage.ru_maxrss >> 10, LIVE >> 20);
    return usage.ru_maxrss > 68 << 10;
}
