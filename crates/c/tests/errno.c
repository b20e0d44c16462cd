/* A call that succeeds leaves errno as it was: at the start of the process, in all sizes, in threads that wait
 * for each other, and over forks. Names the first line that does not hold, and exits with 1. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                                        \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            int now = errno;                                                               \
            fprintf(stderr, "errno.c:%d: %s, errno is %d\n", __LINE__, #what, now);        \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { KEPT = 0x5eed };

/* Called through volatile pointers, because the compiler knows malloc and may remove calls. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static int (*volatile do_memalign)(void **, size_t, size_t) = posix_memalign;

/* What is allocated at a place is freed by another thread. */
static void *places[256];

static void *work(void *seed) {
    unsigned random = (unsigned)(size_t)seed;
    errno = KEPT;
    for (int i = 0; i < 60000; i++) {
        random = random * 1103515245 + 12345;
        size_t bytes = random >> 16 & 15 ? random >> 8 & 1023 : random >> 8 & 0x3ffff;
        void *at = do_malloc(bytes);
        HOLDS(at != NULL && errno == KEPT);
        free(__atomic_exchange_n(&places[random >> 16 & 255], at, __ATOMIC_ACQ_REL));
        HOLDS(errno == KEPT);
    }
    return NULL;
}

int main(void) {
    HOLDS(errno == 0);
    void *first = do_malloc(9);
    HOLDS(first != NULL && errno == 0);
    free(first);
    HOLDS(errno == 0);
    errno = KEPT;
    void *held[64] = {NULL};
    for (size_t bytes = 1, at = 0; bytes < 9000000; bytes += 1 + bytes / 5, at = (at + 1) % 64) {
        free(held[at]);
        held[at] = do_malloc(bytes);
        HOLDS(held[at] != NULL && errno == KEPT);
        held[at] = do_realloc(held[at], bytes * 2 + 1);
        HOLDS(held[at] != NULL && errno == KEPT);
        void *zeros = do_calloc(1, bytes), *aligned = NULL;
        HOLDS(zeros != NULL && errno == KEPT);
        HOLDS(do_memalign(&aligned, 4096, bytes) == 0 && errno == KEPT);
        free(zeros);
        free(aligned);
        HOLDS(errno == KEPT);
    }
    void *mapped = do_malloc((size_t)600 << 20);
    HOLDS(errno == KEPT);
    mapped = do_realloc(mapped, (size_t)700 << 20);
    HOLDS(errno == KEPT);
    free(mapped);
    malloc_usable_size(held[0]);
    malloc_trim(0);
    HOLDS(errno == KEPT);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 20; i++) {
        errno = KEPT;
        pid_t child = fork();
        HOLDS(child >= 0 && errno == KEPT);
        if (child == 0) {
            void *at = do_malloc(100);
            HOLDS(at != NULL && errno == KEPT);
            free(at);
            HOLDS(errno == KEPT);
            _exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        HOLDS(status == 0);
    }
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    puts("all holds");
    return 0;
}
