/* The functions of malloc's family as C and POSIX specify them, in the preloaded library. Names the first
 * line that does not hold, and exits with 1. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                  \
    do {                                                             \
        if (!(what)) {                                               \
            fprintf(stderr, "api.c:%d: %s\n", __LINE__, #what);      \
            exit(1);                                                 \
        }                                                            \
    } while (0)

/* Called through volatile pointers, because the compiler knows malloc and may remove calls. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static int (*volatile do_memalign)(void **, size_t, size_t) = posix_memalign;
static void *(*volatile do_memset)(void *, int, size_t) = memset;

static void sizes(void) {
    for (size_t bytes = 0; bytes < 70000; bytes += 1 + bytes / 7) {
        char *at = do_malloc(bytes);
        HOLDS(at != NULL && (uintptr_t)at % 16 == 0 && malloc_usable_size(at) >= bytes);
        do_memset(at, 0xa5, malloc_usable_size(at));
        free(at);
        char *zeros = do_calloc(bytes, 1);
        for (size_t i = 0; i < bytes; i++) HOLDS(zeros[i] == 0);
        free(zeros);
    }
    void *first = do_malloc(0), *second = do_malloc(0);
    HOLDS(first != NULL && first != second);
    free(first);
    free(second);
    free(NULL);
    HOLDS(malloc_usable_size(NULL) == 0);
}

static void growing(void) {
    char *at = NULL;
    for (size_t bytes = 1; bytes < 6000000; bytes = bytes * 5 / 3 + 1) {
        at = do_realloc(at, bytes);
        HOLDS(at != NULL);
        at[bytes - 1] = (char)bytes;
        at[0] = 7;
    }
    for (size_t bytes = 5000000; bytes > 0; bytes /= 3) {
        at = do_realloc(at, bytes);
        HOLDS(at != NULL && at[0] == 7);
    }
    HOLDS(do_realloc(at, 0) == NULL);
}

static void too_much(void) {
    errno = 0;
    HOLDS(do_malloc(SIZE_MAX) == NULL);
    errno = 0;
    HOLDS(do_malloc((size_t)PTRDIFF_MAX + 1) == NULL);
    errno = 0;
    HOLDS(do_calloc(SIZE_MAX / 2, 3) == NULL);
    errno = 0;
    HOLDS(reallocarray(NULL, SIZE_MAX / 2, 3) == NULL);
    char *at = do_malloc(10);
    strcpy(at, "stays");
    errno = 0;
    HOLDS(do_realloc(at, SIZE_MAX - 100) == NULL && errno == ENOMEM && strcmp(at, "stays") == 0);
    errno = 0;
    free(at);
    HOLDS(errno == 0);
}

static void aligned(void) {
    for (size_t align = 8; align <= 1 << 20; align *= 2) {
        for (size_t bytes = 1; bytes < 100000; bytes = bytes * 4 + 3) {
            void *at = NULL;
            HOLDS(posix_memalign(&at, align, bytes) == 0 && (uintptr_t)at % align == 0);
            memset(at, 1, bytes);
            free(at);
            at = aligned_alloc(align, bytes);
            HOLDS(at != NULL && (uintptr_t)at % align == 0);
            free(at);
            at = memalign(align, bytes);
            HOLDS(at != NULL && (uintptr_t)at % align == 0);
            free(at);
        }
    }
    void *at = &at;
    HOLDS(posix_memalign(&at, 3, 10) == EINVAL && at == &at);
    HOLDS(posix_memalign(&at, 4, 10) == EINVAL && at == &at);
    errno = 0;
    HOLDS(do_memalign(&at, 64, SIZE_MAX - 10) == ENOMEM && at == &at && errno == ENOMEM);
    at = valloc(100);
    HOLDS((uintptr_t)at % sysconf(_SC_PAGESIZE) == 0);
    free(at);
    at = pvalloc(100);
    HOLDS((uintptr_t)at % sysconf(_SC_PAGESIZE) == 0);
    HOLDS(malloc_usable_size(at) >= (size_t)sysconf(_SC_PAGESIZE));
    free(at);
}

static volatile int stop;

static void *worker(void *seed) {
    unsigned random = (unsigned)(uintptr_t)seed;
    while (!stop) {
        char *held[64];
        for (int i = 0; i < 64; i++) {
            size_t bytes = rand_r(&random) % 3000;
            held[i] = malloc(bytes + 1);
            HOLDS(held[i] != NULL);
            memset(held[i], i, bytes + 1);
            held[i][bytes] = (char)i;
        }
        for (int i = 0; i < 64; i++) {
            HOLDS(held[i][0] == i);
            free(held[i]);
        }
    }
    return NULL;
}

static void *short_lived(void *handed) {
    free(handed);
    void *mine = do_malloc(777);
    memset(mine, 1, 777);
    return mine;
}

/* Makes half of the children. Each allocates, and allocates in a thread of its own. */
static void *half_of_the_forks(void *count) {
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        pid_t child = fork();
        HOLDS(child >= 0);
        if (child == 0) {
            char *held[100];
            for (int k = 0; k < 100; k++) memset(held[k] = do_malloc(k * 50 + 1), k, k * 50 + 1);
            for (int k = 0; k < 100; k++) {
                if (held[k][0] != k) _exit(2);
                free(held[k]);
            }
            pthread_t thread;
            void *got;
            if (i % 8 == 0 && (pthread_create(&thread, NULL, short_lived, do_malloc(50)) != 0 ||
                               pthread_join(thread, &got) != 0 || got == NULL))
                _exit(3);
            _exit(0);
        }
        int status;
        HOLDS(waitpid(child, &status, 0) == child && status == 0);
    }
    return NULL;
}

/* Two threads fork at once, while other threads allocate. */
static void forks(uintptr_t count) {
    pthread_t threads[3], other;
    stop = 0;
    for (uintptr_t i = 0; i < 3; i++) HOLDS(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)) == 0);
    HOLDS(pthread_create(&other, NULL, half_of_the_forks, (void *)(count / 2)) == 0);
    half_of_the_forks((void *)(count - count / 2));
    HOLDS(pthread_join(other, NULL) == 0);
    stop = 1;
    for (int i = 0; i < 3; i++) HOLDS(pthread_join(threads[i], NULL) == 0);
}

/* Locked memory (mlock) cannot be given back, so it may not hold zeros when it is allocated again. */
static void locked(void) {
    size_t bytes = 7 << 20;
    for (int round = 0; round < 3; round++) {
        char *at = do_malloc(bytes);
        /* The system may refuse it to this user. */
        int is_locked = mlock(at, bytes) == 0;
        do_memset(at, 0xa5, bytes);
        errno = 77;
        free(at);
        HOLDS(errno == 77);
        char *zeros = do_calloc(1, bytes);
        for (size_t i = 0; i < bytes; i++) HOLDS(zeros[i] == 0);
        if (is_locked) munlock(at, bytes);
        free(zeros);
    }
}

/* Threads start and end; each frees an object of another. */
static void storm(int count) {
    void *handed = do_malloc(100);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        HOLDS(pthread_create(&thread, NULL, short_lived, handed) == 0);
        HOLDS(pthread_join(thread, &handed) == 0);
    }
    free(handed);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static struct mallinfo (*volatile do_mallinfo)(void) = mallinfo;

/* The statistics are of this heap, not of glibc's, which the process does not use. */
static void information(void) {
    enum { COUNT = 400, BYTES = 25600 };
    static void *held[COUNT];
    void *one = do_malloc(100);
    struct mallinfo2 before = mallinfo2();
    HOLDS(one != NULL && before.arena > 0 && before.uordblks + before.fordblks == before.arena);
    for (int i = 0; i < COUNT; i++) do_memset(held[i] = do_malloc(BYTES), 1, BYTES);
    struct mallinfo2 after = mallinfo2();
    HOLDS(after.uordblks >= before.uordblks + COUNT * BYTES && after.arena >= after.uordblks);
    HOLDS(after.uordblks < before.uordblks + COUNT * BYTES * 2);
    HOLDS(do_mallinfo().uordblks >= (int)(COUNT * BYTES));
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    HOLDS(malloc_info(0, stream) == 0 && malloc_info(1, stream) == EINVAL);
    HOLDS(fclose(stream) == 0 && strstr(text, "<malloc version=\"1\">") == text && strstr(text, "</malloc>"));
    HOLDS(strstr(text, "size=\"0\"/>\n</malloc>") == NULL);
    free(text);
    for (int i = 0; i < COUNT; i++) free(held[i]);
    malloc_trim(0);
    struct mallinfo2 freed = mallinfo2();
    HOLDS(freed.uordblks < after.uordblks - COUNT * BYTES / 2 && freed.arena < after.arena);

    struct mallinfo2 mapped;
    void *large = do_malloc((size_t)700 << 20);
    HOLDS(large != NULL);
    mapped = mallinfo2();
    /* A block of page frames, or a mapping of its own. */
    HOLDS(mapped.hblkhd + mapped.uordblks >= ((size_t)700 << 20) && mapped.hblks + mapped.uordblks > 0);
    free(large);
    /* Programs end if a setting of speed or memory is refused. `M_PERTURB` says what memory contains. */
    HOLDS(mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    HOLDS(mallopt(M_PERTURB, 0xa5) == 0 && mallopt(-1000, 1) == 0);
    free(one);
}

static void *is_cancelled(void *after_stats) {
    pthread_cancel(pthread_self());
    malloc_stats();
    *(int *)after_stats = 1;
    pthread_testcancel();
    return NULL;
}

/* No function of malloc's family is a cancellation point: a thread that ended in the middle of one would keep
   its locks. */
static void cancelled(void) {
    FILE *said = tmpfile();
    int error = dup(STDERR_FILENO), after_stats = 0;
    HOLDS(said != NULL && error >= 0 && dup2(fileno(said), STDERR_FILENO) == STDERR_FILENO);
    pthread_t thread;
    void *result = NULL;
    int started = pthread_create(&thread, NULL, is_cancelled, &after_stats);
    int joined = pthread_join(thread, &result);
    HOLDS(dup2(error, STDERR_FILENO) == STDERR_FILENO && close(error) == 0 && started == 0 && joined == 0);
    HOLDS(after_stats && result == PTHREAD_CANCELED && lseek(fileno(said), 0, SEEK_END) > 100);
    fclose(said);
}

static void at_the_end(void) { free(do_malloc(100)); }

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 100;
    atexit(at_the_end);
    sizes();
    growing();
    too_much();
    aligned();
    locked();
    information();
    cancelled();
    storm(rounds * 10);
    forks(rounds);
    malloc_trim(0);
    puts("api.c: all holds");
    return 0;
}
