/* The process's memory is limited, and the program needs most of it.
 *
 *     limits data        under `ulimit -d 1048576`: maps 256 MiB and starts 16 threads, and allocates
 *     limits requests    under `ulimit -v`: requests of 16 bytes to 4 MiB, up to 150 MiB live; prints how
 *                        many were not served
 *     limits once        under `ulimit -v`: a hundred requests; prints how many were not served
 *     limits nothing     allocates nothing
 *     limits reserved    reserved address space does not count as data: VmData stays below 64 MiB
 *
 *     cc -O1 -pthread crates/c/tests/limits.c -o limits
 *     (ulimit -d 1048576; LD_PRELOAD=target/release/libslablab.so ./limits data) */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOLDS(what)                                                \
    do {                                                           \
        if (!(what)) {                                             \
            dprintf(2, "limits.c:%d: %s\n", __LINE__, #what);      \
            _exit(1);                                              \
        }                                                          \
    } while (0)

static void *(*volatile do_malloc)(size_t) = malloc;

static pthread_barrier_t all_run;

static void *allocates(void *unused) {
    void *object = do_malloc(1000);
    HOLDS(object != NULL);
    pthread_barrier_wait(&all_run);
    free(object);
    return unused;
}

static void data(void) {
    char *object = do_malloc(1000), *large = do_malloc(16 << 20);
    HOLDS(object != NULL && large != NULL);
    memset(large, 1, 16 << 20);
    size_t own = 256 << 20;
    HOLDS(mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    pthread_t threads[16];
    pthread_barrier_init(&all_run, NULL, 17);
    for (int i = 0; i < 16; i++) HOLDS(pthread_create(&threads[i], NULL, allocates, NULL) == 0);
    pthread_barrier_wait(&all_run);
    for (int i = 0; i < 16; i++) pthread_join(threads[i], NULL);
    free(object);
    free(large);
}

/* Of ten requests the first is large, the others small. Each replaces an older block. */
static void requests(void) {
    enum { PLACES = 900 };
    static char *places[PLACES];
    static size_t sizes[PLACES];
    unsigned long random = 1, refused = 0;
    size_t live = 0;
    for (int request = 0; request < 40000; request++) {
        random = random * 6364136223846793005UL + 1442695040888963407UL;
        int place = (random >> 33) % PLACES;
        unsigned long draw = random >> 43;
        size_t bytes = request % 10 == 0 ? (1 << 20) + draw % (3 << 20) : 16 + draw % 60000;
        if (places[place] != NULL) {
            HOLDS(places[place][0] == 1 && places[place][sizes[place] - 1] == 1);
            live -= sizes[place];
        }
        free(places[place]);
        places[place] = NULL;
        if (live + bytes > (size_t)150 << 20) continue;
        places[place] = do_malloc(bytes);
        if (places[place] == NULL) {
            refused++;
            continue;
        }
        live += sizes[place] = bytes;
        places[place][0] = places[place][bytes - 1] = 1;
    }
    printf("%lu not served\n", refused);
}

static void once(void) {
    int refused = 0;
    for (int request = 0; request < 100; request++) refused += do_malloc(100) == NULL;
    dprintf(1, "%d not served\n", refused);
    _exit(0);
}

static void reserved(void) {
    free(do_malloc(1000));
    static char status[4096];
    FILE *file = fopen("/proc/self/status", "r");
    HOLDS(file != NULL);
    status[fread(status, 1, sizeof status - 1, file)] = 0;
    fclose(file);
    const char *line = strstr(status, "VmData:");
    HOLDS(line != NULL);
    long kib = atol(line + strlen("VmData:"));
    printf("VmData is %ld KiB\n", kib);
    HOLDS(kib < 64 << 10);
}

int main(int count, char **arguments) {
    HOLDS(count == 2);
    if (strcmp(arguments[1], "data") == 0)
        data();
    else if (strcmp(arguments[1], "requests") == 0)
        requests();
    else if (strcmp(arguments[1], "once") == 0)
        once();
    else if (strcmp(arguments[1], "nothing") == 0)
        return 0;
    else
        reserved();
    puts("limits.c: all holds");
    return 0;
}
