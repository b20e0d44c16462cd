/* Threads that begin and end replace blocks of 8 bytes to 64 KB, and a few of up to 2.5 MB, give each other blocks,
 * and change sizes, for as many seconds as the first argument says. Blocks keep what was written into them. In a
 * minute or more, the resident memory of the last fifth of the time is at most a quarter above the first half's
 * most. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 2048, HANDED = 4096, STEPS = 1 << 20, LOOKS = 20 };

static atomic_bool ends;
static _Atomic(unsigned char *) handed[HANDED];

static uint64_t drawn(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state >> 16;
}

/* Each doubling of the size is as likely as the next one. */
static size_t bytes(uint64_t *state) {
    uint64_t draw = drawn(state);
    size_t least = (size_t)8 << draw % 13;
    size_t size = least + (draw >> 4) % least;
    return drawn(state) % 2000 == 0 ? size * 40 : size;
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Writes the number of the block's place into its first and its last byte. */
static unsigned char *marked(unsigned char *block, size_t size, unsigned place) {
    if (block == NULL) fail("no memory");
    block[0] = block[size - 1] = place;
    return block;
}

static void *replace(void *argument) {
    uint64_t state = (uintptr_t)argument | 1;
    unsigned char *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS];
    for (int step = 0; step < STEPS && !ends; step++) {
        unsigned place = drawn(&state) % BLOCKS, what = drawn(&state) % 16;
        unsigned char *block = blocks[place];
        size_t size = bytes(&state);
        if (what < 4) {
            block = malloc(size);
            free(atomic_exchange(&handed[drawn(&state) % HANDED], marked(block, size, place)));
            continue;
        }
        if (block != NULL && (block[0] != place % 256 || block[sizes[place] - 1] != place % 256))
            fail("another block's bytes");
        if (what < 6) {
            block = realloc(block, size);
        } else {
            free(block);
            block = malloc(size);
        }
        blocks[place] = marked(block, size, place);
        sizes[place] = size;
    }
    for (int place = 0; place < BLOCKS; place++) free(blocks[place]);
    return NULL;
}

/* One thread after another. */
static void *threads(void *argument) {
    for (uintptr_t seed = (uintptr_t)argument; !ends; seed += 2) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, replace, (void *)(seed * 0x9e3779b97f4a7c15)) != 0) fail("no thread");
        pthread_join(thread, NULL);
    }
    return NULL;
}

static long resident_kib(void) {
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &resident) != 2) fail("/proc/self/statm cannot be read");
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 2;
    pthread_t pair[2];
    for (uintptr_t i = 0; i < 2; i++)
        if (pthread_create(&pair[i], NULL, threads, (void *)(i + 1)) != 0) fail("no thread");
    long half = 0, last = 0;
    for (int look = 0; look < LOOKS; look++) {
        usleep(seconds * 1e6 / LOOKS);
        long now = resident_kib();
        if (look < LOOKS / 2 && now > half) half = now;
        if (look >= LOOKS - LOOKS / 5 && now > last) last = now;
    }
    ends = 1;
    for (int i = 0; i < 2; i++) pthread_join(pair[i], NULL);
    for (int i = 0; i < HANDED; i++) free(handed[i]);
    if (seconds >= 60 && last > half + half / 4) {
        printf("%ld KiB resident at the end, %ld at most in the first half\n", last, half);
        return 1;
    }
    printf("%ld KiB resident; all holds\n", last);
    return 0;
}
