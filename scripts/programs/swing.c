/* Allocates objects of one size, then frees all of them in random order, again and again. Prints nanoseconds of an
 * allocation and a free: those of the fastest round.
 *
 *     cc -O2 scripts/programs/swing.c -o swing
 *     LD_PRELOAD=target/dist/libslablab.so ./swing 400000 64        # objects, bytes; a third number: rounds, 20
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Marsaglia's xorshift. */
static uint64_t drawn(void) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static int no_memory(void) {
    fprintf(stderr, "swing: no memory for so many objects of so many bytes\n");
    return 1;
}

int main(int count, char **arguments) {
    long objects = count > 1 ? atol(arguments[1]) : 0;
    long bytes = count > 2 ? atol(arguments[2]) : 0;
    long rounds = count > 3 ? atol(arguments[3]) : 20;
    if (objects < 1 || objects > UINT32_MAX || bytes < 1 || rounds < 1) {
        fprintf(stderr, "usage: swing OBJECTS BYTES [ROUNDS], each at least 1\n");
        return 2;
    }
    void **all = malloc(objects * sizeof *all);
    uint32_t *order = malloc(objects * sizeof *order);
    if (all == NULL || order == NULL) return no_memory();
    for (long i = 0; i < objects; i++) order[i] = i;
    for (long i = objects - 1; i > 0; i--) {
        long other = drawn() % (i + 1);
        uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    double best = 1e18;
    while (rounds-- > 0) {
        double began = now();
        for (long i = 0; i < objects; i++) {
            all[i] = malloc(bytes);
            if (all[i] == NULL) return no_memory();
        }
        for (long i = 0; i < objects; i++) free(all[order[i]]);
        double took = (now() - began) / objects;
        if (took < best) best = took;
    }
    printf("%.2f\n", best);
    return 0;
}
