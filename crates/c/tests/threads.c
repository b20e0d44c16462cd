/* Short threads free objects that other threads allocated. Runs for NUMBER seconds or rounds, and prints
 * resident memory over time. Exits with 1 if that grows, or if a trim at the end leaves more than a trim at
 * the start.
 *
 *     cc -O1 -pthread crates/c/tests/threads.c -o threads
 *     LD_PRELOAD=target/release/libslablab.so ./threads seconds 60
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 8
#define OBJECTS 200
#define SAMPLES 12
#define WARM_UP 30
/* How far a sample may differ from another, because a varying number of threads runs at once; and how far the
 * trimmed end may differ from the trimmed start: the first thread keeps objects. */
#define SLACK_KB 32768
#define SLACK_TRIMMED_KB 10240

struct handed {
    char *objects[OBJECTS];
    size_t bytes[OBJECTS];
};

/* Objects that the threads of the last round left, a list for each: the threads of this round free them. */
static struct handed left[AT_ONCE];
static unsigned seed;

static long resident_kb(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long whole, pages;
    if (file == NULL || fscanf(file, "%ld %ld", &whole, &pages) != 2) exit(2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void empty(struct handed *handed) {
    for (int i = 0; i < OBJECTS; i++) {
        char *object = handed->objects[i];
        if (object == NULL) continue;
        size_t last = handed->bytes[i] - 1;
        if (object[0] != (char)i || object[last] != (char)last) {
            fprintf(stderr, "threads.c: an object of %zu bytes was written over\n", last + 1);
            exit(1);
        }
        free(object);
        handed->objects[i] = NULL;
    }
}

static void *short_lived(void *mine) {
    struct handed *handed = mine;
    unsigned random = __atomic_fetch_add(&seed, 1, __ATOMIC_RELAXED);
    empty(handed);
    for (int i = 0; i < OBJECTS; i++) {
        int kind = rand_r(&random) % 100;
        size_t bytes = 2 + rand_r(&random) % (kind < 90 ? 500 : kind < 99 ? 10000 : 150000);
        char *object = malloc(bytes);
        if (object == NULL) {
            perror("threads.c");
            exit(1);
        }
        object[0] = (char)i;
        object[bytes - 1] = (char)(bytes - 1);
        handed->objects[i] = object;
        handed->bytes[i] = bytes;
    }
    return NULL;
}

/* Each thread gets the objects that its neighbour of the last round left. */
static void one_round(unsigned number) {
    pthread_t threads[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        if (pthread_create(&threads[i], NULL, short_lived, &left[(i + number) % AT_ONCE]) != 0) {
            perror("threads.c: pthread_create");
            exit(1);
        }
    }
    for (unsigned i = 0; i < AT_ONCE; i++) pthread_join(threads[i], NULL);
}

static long trimmed_kb(void) {
    for (int i = 0; i < AT_ONCE; i++) empty(&left[i]);
    malloc_trim(0);
    return resident_kb();
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: threads seconds|rounds NUMBER\n");
        return 2;
    }
    double number = atof(arguments[2]);
    int by_time = strcmp(arguments[1], "seconds") == 0;
    unsigned rounds = 0;
    /* First the memory that is needed once, such as stacks. */
    while (rounds < WARM_UP) one_round(rounds++);
    long start = trimmed_kb();
    long samples[SAMPLES];
    double began = now();
    for (int sample = 0; sample < SAMPLES; sample++) {
        double until = number * (sample + 1) / SAMPLES;
        while (by_time ? now() - began < until : rounds < WARM_UP + until) one_round(rounds++);
        samples[sample] = resident_kb();
    }
    long end = trimmed_kb();
    printf("%u threads, resident KB:", rounds * AT_ONCE);
    for (int sample = 0; sample < SAMPLES; sample++) printf(" %ld", samples[sample]);
    printf("; trimmed %ld at the start, %ld at the end\n", start, end);
    /* The first third is warm-up; from there on the highest of each half is looked at. */
    long first = 0, second = 0;
    for (int sample = SAMPLES / 3; sample < SAMPLES; sample++) {
        long *highest = sample < SAMPLES * 2 / 3 ? &first : &second;
        if (samples[sample] > *highest) *highest = samples[sample];
    }
    if (second > first + SLACK_KB) {
        fprintf(stderr, "threads.c: resident memory grows: %ld KB, then %ld KB\n", first, second);
        return 1;
    }
    if (end > start + SLACK_TRIMMED_KB) {
        fprintf(stderr, "threads.c: %ld KB after the last trim, %ld KB after the first\n", end, start);
        return 1;
    }
    return 0;
}
