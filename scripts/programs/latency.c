/* How long single calls of malloc and free take. A table of places; each step draws one: a block there is freed,
 * else one is allocated. Blocks have 16 bytes to 1 KiB, one in 256 up to 32 KiB, one in 16,384 up to 1 MiB; each
 * doubling of the size is as likely as the next one. With two threads, each frees half of the other one's blocks.
 *
 *     cc -O2 -pthread scripts/programs/latency.c -o latency
 *     LD_PRELOAD=target/dist/libslablab.so ./latency 10000000 1     # calls, threads; "none" as a third: no allocator
 *
 * Prints, for malloc and for free: calls, mean, percentiles and the longest call in nanoseconds, calls above 10
 * microseconds, and calls that are left out because the kernel switched the thread out meanwhile. The time of a
 * call includes two readings of the clock: "none" is that alone. The first write to a block is not in it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
static uint64_t ticks(void) {
    unsigned cpu;
    return __rdtscp(&cpu);
}
#else
static uint64_t ticks(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}
#endif

enum { PLACES = 65536, PARTS = 16, BUCKETS = 64 * PARTS, MOST_THREADS = 2 };

/* Times in buckets: sixteen for each doubling. */
struct times {
    uint64_t bucket[BUCKETS], calls, sum, most, left_out;
};

struct thread {
    struct times of[2];
    uint64_t steps, random;
    long switches;
    int number;
};

static double ns_per_tick;
static int with_none, threads;
/* Blocks on their way to the other thread. */
static void *passed[MOST_THREADS][PLACES];

static uint64_t drawn(struct thread *thread) {
    uint64_t x = thread->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return thread->random = x;
}

static size_t size_of(struct thread *thread) {
    uint64_t random = drawn(thread);
    /* 16 << 6 is 1 KiB, << 11 is 32 KiB, << 16 is 1 MiB. */
    unsigned doublings = random % 16384 == 0 ? 16 : random % 256 == 0 ? 11 : 6;
    size_t low = (size_t)16 << (random >> 20) % doublings;
    return low + (random >> 32) % low;
}

static unsigned bucket_of(uint64_t time) {
    if (time < PARTS) return time;
    unsigned shift = 63 - __builtin_clzll(time) - 4;
    return (shift + 1) * PARTS + (time >> shift) - PARTS;
}

/* The least time of a bucket. */
static uint64_t time_of(unsigned bucket) {
    if (bucket < PARTS) return bucket;
    return (uint64_t)(PARTS + bucket % PARTS) << (bucket / PARTS - 1);
}

static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void note(struct thread *thread, int which, uint64_t time) {
    struct times *times = &thread->of[which];
    /* Only such a call may have been switched out: the question is a system call. */
    if (time * ns_per_tick > 10000) {
        long now = switches();
        int was_out = now != thread->switches;
        thread->switches = now;
        if (was_out) {
            times->left_out++;
            return;
        }
    }
    times->bucket[bucket_of(time)]++;
    times->calls++, times->sum += time;
    if (time > times->most) times->most = time;
}

static void *allocated(struct thread *thread, size_t size) {
    static char fake[64];
    uint64_t start = ticks();
    void *block = with_none ? fake : malloc(size);
    note(thread, 0, ticks() - start);
    if (block == NULL) exit(2);
    *(volatile char *)block = 1;
    return block;
}

static void freed(struct thread *thread, void *block) {
    uint64_t start = ticks();
    if (!with_none) free(block);
    note(thread, 1, ticks() - start);
}

static void *run(void *argument) {
    struct thread *thread = argument;
    void **own = calloc(PLACES, sizeof *own);
    if (own == NULL) exit(2);
    thread->switches = switches();
    for (uint64_t step = 0; step < thread->steps; step++) {
        uint64_t random = drawn(thread);
        void **place = &own[random % PLACES];
        if (*place == NULL) {
            *place = allocated(thread, size_of(thread));
        } else if (threads == 2 && random >> 40 & 1) {
            /* To the other thread, for one of its blocks if there is one. */
            void *block = __atomic_exchange_n(&passed[1 - thread->number][random % PLACES], *place, __ATOMIC_ACQ_REL);
            *place = NULL;
            if (block != NULL) freed(thread, block);
        } else {
            freed(thread, *place);
            *place = NULL;
        }
        if (threads == 2 && step % 4 == 0) {
            void *block = __atomic_exchange_n(&passed[thread->number][drawn(thread) % PLACES], NULL, __ATOMIC_ACQ_REL);
            if (block != NULL) freed(thread, block);
        }
    }
    return NULL;
}

static void print(const char *name, struct times *times) {
    static const double PERCENT[] = {50, 99.9, 99.99, 99.999};
    printf("\"%s\":{\"calls\":%lu,\"mean_ns\":%.1f", name, times->calls, times->sum * ns_per_tick / times->calls);
    uint64_t above = 0;
    for (unsigned bucket = 0, at = 0, seen = 0; bucket < BUCKETS; bucket++) {
        seen += times->bucket[bucket];
        for (; at < 4 && seen >= times->calls * PERCENT[at] / 100; at++)
            printf(",\"p%g_ns\":%.0f", PERCENT[at], time_of(bucket) * ns_per_tick);
        if (time_of(bucket) * ns_per_tick > 10000) above += times->bucket[bucket];
    }
    printf(",\"max_ns\":%.0f,\"above_10_us\":%lu,\"left_out\":%lu}", times->most * ns_per_tick, above, times->left_out);
}

int main(int count, char **arguments) {
    long calls = count > 1 ? atol(arguments[1]) : 0;
    threads = count > 2 ? atoi(arguments[2]) : 1;
    with_none = count > 3 && strcmp(arguments[3], "none") == 0;
    if (calls < 1000 || threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: latency CALLS THREADS [none]: at least 1000, and 1 or 2\n");
        return 2;
    }
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    uint64_t start = ticks();
    do clock_gettime(CLOCK_MONOTONIC, &after);
    while ((after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec < 2e7);
    ns_per_tick = ((after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec) / (ticks() - start);
    static struct thread all[MOST_THREADS];
    pthread_t running[MOST_THREADS];
    for (int at = 0; at < threads; at++) {
        all[at].steps = calls / threads, all[at].random = 88172645463325252 + 7919 * at, all[at].number = at;
        if (pthread_create(&running[at], NULL, run, &all[at]) != 0) return 2;
    }
    for (int at = 0; at < threads; at++) pthread_join(running[at], NULL);
    for (int at = 1; at < threads; at++) {
        for (int which = 0; which < 2; which++) {
            struct times *sum = &all[0].of[which], *part = &all[at].of[which];
            for (int bucket = 0; bucket < BUCKETS; bucket++) sum->bucket[bucket] += part->bucket[bucket];
            sum->calls += part->calls, sum->sum += part->sum, sum->left_out += part->left_out;
            if (part->most > sum->most) sum->most = part->most;
        }
    }
    printf("{");
    print("malloc", &all[0].of[0]);
    printf(",");
    print("free", &all[0].of[1]);
    printf("}\n");
    return 0;
}
