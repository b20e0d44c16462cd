/* Measures a pair of kmem_cache_alloc and kmem_cache_free in nanoseconds of thread CPU time: the median of 31
 * rounds, for objects of 64 and of 4096 bytes, and of 64 with a constructor. Run by hand: docs/objects.md. */
#include <slablab.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 31, PAIRS = 2000000 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void nothing(void *object)
{
    (void)object;
}

static void measure(const char *name, struct kmem_cache *cache, int rounds)
{
    double figures[ROUNDS];

    for (int round = 0; round < rounds; round++) {
        double before = now();
        for (int i = 0; i < PAIRS; i++)
            kmem_cache_free(cache, kmem_cache_alloc(cache, 0));
        figures[round] = (now() - before) / PAIRS;
    }
    qsort(figures, rounds, sizeof *figures, compare);
    printf("%-12s %.2f ns, at least %.2f\n", name, figures[rounds / 2], figures[0]);
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : ROUNDS;

    measure("64", kmem_cache_create("64", 64, 0, 0, NULL), rounds);
    measure("4096", kmem_cache_create("4096", 4096, 0, 0, NULL), rounds);
    measure("64 made", kmem_cache_create("made", 64, 0, 0, nothing), rounds);
    return 0;
}
