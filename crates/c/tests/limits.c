/* What the process may have is limited, and most of it is the program's own.
 *
 *     limits data        under `ulimit -d 1048576`: 256 MiB of the program's own and 16 threads, beside allocations
 *     limits reserved    what is reserved for the heap does not count as data: VmData stays below 64 MiB
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
    else
        reserved();
    puts("limits.c: all holds");
    return 0;
}
