/* How much memory a program holds: per thread, at 400 MB live, and after it freed most of it and all of it.
 * Prints; tests nothing. Build and run:
 *
 *     cc -O1 -pthread crates/c/tests/footprint.c -o footprint
 *     LD_PRELOAD=target/release/libslablab.so ./footprint
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 64
#define LIVE_BYTES 400000000
#define MOST 4000000

static pthread_barrier_t barrier;
static void *blocks[MOST];

/* Resident memory in MB. */
static double resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long whole, pages;
    if (file == NULL || fscanf(file, "%ld %ld", &whole, &pages) != 2) exit(2);
    fclose(file);
    return pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* Small allocations, for upkeep to run. */
static void activity(void) {
    for (int i = 0; i < 300000; i++) {
        /* volatile, or the compiler removes both calls. */
        char *volatile block = malloc(16 + i * 37 % 500);
        *block = 1;
        free(block);
    }
}

static void *thread(void *unused) {
    void *held[100];
    for (int i = 0; i < 100; i++) memset(held[i] = malloc(16 + i * 13 % 240), 1, 16);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++) free(held[i]);
    return unused;
}

static size_t random_size(unsigned *random) {
    int kind = rand_r(random) % 100;
    if (kind < 90) return 16 + rand_r(random) % 500;
    return kind < 99 ? 500 + rand_r(random) % 8000 : 8000 + rand_r(random) % 100000;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    double start = resident();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, thread, NULL);
    pthread_barrier_wait(&barrier);
    double with_threads = resident();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    double joined = resident();
    printf("start %.1f MB, per thread %.0f KB, after join %.1f MB\n", start,
           (with_threads - start) * 1000 / THREADS, joined);

    size_t count = 0, live = 0;
    unsigned random = 1;
    for (; live < LIVE_BYTES && count < MOST; count++) {
        size_t bytes = random_size(&random);
        memset(blocks[count] = malloc(bytes), 1, bytes);
        live += bytes;
    }
    double table = count * sizeof *blocks / 1e6;
    printf("live: %.3f resident bytes per byte asked\n", (resident() - joined - table) / (live / 1e6));
    for (size_t i = 0; i < count; i++)
        if (i % 10) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    printf("90 %% freed: %.0f MB", resident() - table);
    usleep(2500000);
    activity();
    printf(", later %.0f\n", resident() - table);
    for (size_t i = 0; i < count; i++) free(blocks[i]);
    printf("all freed: %.0f MB", resident() - table);
    usleep(2500000);
    activity();
    printf(", later %.0f", resident() - table);
    malloc_trim(0);
    printf(", trimmed %.0f\n", resident() - table);
    return 0;
}
