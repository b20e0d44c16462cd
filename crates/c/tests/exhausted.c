/* No memory. This program defines mmap, mremap and mprotect, which the preloaded library calls, and which
 * fail on purpose. It starts itself again:
 *
 *     exhausted at N       the N-th of these calls fails, alone
 *     exhausted from N     the N-th call and all later ones fail
 *     exhausted limit KB   address space is limited to KB, so that page frames run out
 *     exhausted data KB    writable memory is limited to KB: the frames are there, and cannot be committed
 *     exhausted late       the first allocation finds no address space, the second does
 *     exhausted all        every N, both ways; then limits
 *
 *     cc -O1 -rdynamic -pthread crates/c/tests/exhausted.c -o exhausted
 *     LD_PRELOAD=target/release/libslablab.so ./exhausted all
 *
 * Every request is served or returns NULL with ENOMEM; an allocation keeps its bytes; freed memory can be
 * allocated again; once calls succeed again, every request is served. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                                              \
    do {                                                                                         \
        if (!(what)) {                                                                           \
            dprintf(2, "exhausted.c:%d: %s (mapping %d of %d)\n", __LINE__, #what, fails, maps); \
            _exit(1);                                                                            \
        }                                                                                        \
    } while (0)

/* Number of calls so far; which call fails, 0 for none; whether all later calls fail too. */
static int maps, fails, later;

static void read_fault(void) {
    static int known;
    if (known) return;
    known = 1;
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
        if (strncmp(*variable, "FAIL=", 5) == 0) {
            later = (*variable)[5] == '+';
            fails = atoi(*variable + 5);
        }
}

static int refused(void) {
    read_fault();
    int number = __atomic_add_fetch(&maps, 1, __ATOMIC_RELAXED);
    int fault = fails > 0 && (later ? number >= fails : number == fails);
    if (fault) errno = ENOMEM;
    return fault;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (refused()) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

/* The library's calls. The C library's own malloc, which is not called here, reaches the kernel in another
   way. */
void *mremap(void *at, size_t bytes, size_t wanted, int flags, ...) {
    if (refused()) return MAP_FAILED;
    return (void *)syscall(SYS_mremap, at, bytes, wanted, flags, NULL);
}

int mprotect(void *at, size_t bytes, int protection) {
    if (refused()) return -1;
    return (int)syscall(SYS_mprotect, at, bytes, protection);
}

void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;

/* A larger block is a mapping of its own. */
#define HUGE_BYTES ((size_t)520 << 20)

static char *tried(char *got, size_t bytes, char fill) {
    if (got == NULL) {
        HOLDS(errno == ENOMEM);
    } else {
        got[0] = fill;
        got[bytes - 1] = fill;
    }
    errno = 0;
    return got;
}

static void looked_at(char *object, size_t bytes, char fill) {
    if (object != NULL) HOLDS(object[0] == fill && object[bytes - 1] == fill);
    free(object);
}

static void *elsewhere(void *unused) {
    char *small = tried(do_malloc(300), 300, 9);
    looked_at(small, 300, 9);
    return unused;
}

/* Requests of all kinds. Each returns memory, or NULL with ENOMEM. */
static void work(void) {
    static const size_t sizes[] = {1, 16, 100, 1000, 5000, 33000, 1 << 20, 40 << 20};
    char *objects[8][50];
    errno = 0;
    for (int size = 0; size < 8; size++)
        for (int i = 0; i < 50; i++) objects[size][i] = tried(do_malloc(sizes[size]), sizes[size], (char)i);
    for (int i = 0; i < 2; i++) {
        char *huge = tried(do_malloc(HUGE_BYTES), HUGE_BYTES, 1);
        char *zeros = do_calloc(HUGE_BYTES, 1);
        if (zeros != NULL) HOLDS(zeros[0] == 0 && zeros[HUGE_BYTES / 2] == 0);
        zeros = tried(zeros, HUGE_BYTES, 2);
        void *aligned = NULL;
        int answer = posix_memalign(&aligned, 1 << 21, HUGE_BYTES);
        HOLDS(answer == 0 ? (uintptr_t)aligned % (1 << 21) == 0 : answer == ENOMEM && aligned == NULL);
        free(aligned);
        /* realloc grows a page, and a mapping. */
        char *grown = do_malloc(10000);
        if (grown != NULL) {
            grown[0] = grown[9999] = 3;
            errno = 0;
            char *moved = do_realloc(grown, HUGE_BYTES);
            HOLDS(moved != NULL || errno == ENOMEM);
            if (moved != NULL) grown = moved;
            HOLDS(grown[0] == 3 && grown[9999] == 3);
            free(grown);
        }
        looked_at(zeros, HUGE_BYTES, 2);
        /* A mapping grows and shrinks. If the kernel refuses, it is copied, once. */
        size_t bytes = HUGE_BYTES;
        for (int way = 0; huge != NULL && i == 0 && way < 2; way++) {
            size_t wanted = way == 0 ? HUGE_BYTES + (64 << 20) : (size_t)128 << 20;
            char *moved = do_realloc(huge, wanted);
            HOLDS(moved != NULL || errno == ENOMEM);
            errno = 0;
            if (moved == NULL) continue;
            huge = moved;
            HOLDS(huge[0] == 1 && (wanted < bytes || huge[bytes - 1] == 1));
            HOLDS(malloc_usable_size(huge) >= wanted);
            huge[wanted - 1] = 1;
            bytes = wanted;
        }
        looked_at(huge, bytes, 1);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, elsewhere, NULL) == 0) pthread_join(thread, NULL);
    for (int size = 0; size < 8; size++)
        for (int i = 0; i < 50; i++) looked_at(objects[size][i], sizes[size], (char)i);
    malloc_trim(0);
}

/* With memory every request is served. */
static void all_served(void) {
    static const size_t sizes[] = {1, 16, 100, 1000, 5000, 33000, 1 << 20, 40 << 20, HUGE_BYTES};
    for (int size = 0; size < 9; size++)
        for (int i = 0; i < 3; i++) {
            char *object = do_malloc(sizes[size]);
            HOLDS(object != NULL);
            looked_at(tried(object, sizes[size], (char)i), sizes[size], (char)i);
        }
    pthread_t thread;
    HOLDS(pthread_create(&thread, NULL, elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
}

/* The first allocation of the process fails: the limit of address space is what is mapped already. */
static void late(void) {
    struct rlimit before, none;
    getrlimit(RLIMIT_AS, &before);
    none = before;
    none.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_AS, &none);
    errno = 0;
    HOLDS(do_malloc(100) == NULL && errno == ENOMEM);
    HOLDS(do_malloc(1 << 20) == NULL && errno == ENOMEM);
    setrlimit(RLIMIT_AS, &before);
    all_served();
}

/* Allocates objects of one size until that fails, and frees them. Returns their number. */
static long taken(size_t bytes) {
    struct object {
        struct object *next;
        uintptr_t mark;
    } *all = NULL, *got;
    long count = 0;
    errno = 0;
    while ((got = do_malloc(bytes)) != NULL) {
        *got = (struct object){all, (uintptr_t)got ^ bytes};
        all = got;
        count++;
    }
    HOLDS(errno == ENOMEM);
    /* Half is freed and allocated again, until that fails. */
    for (long i = 0; i < count / 2; i++) {
        struct object *next = all->next;
        HOLDS(all->mark == ((uintptr_t)all ^ bytes));
        free(all);
        all = next;
    }
    long again = 0;
    while ((got = do_malloc(bytes)) != NULL) {
        *got = (struct object){all, (uintptr_t)got ^ bytes};
        all = got;
        again++;
    }
    HOLDS(again >= count / 2 - count / 50);
    while (all != NULL) {
        struct object *next = all->next;
        HOLDS(all->mark == ((uintptr_t)all ^ bytes));
        free(all);
        all = next;
    }
    return count;
}

static void until_frames_run_out(void) {
    enum { SIZES = 8 };
    static const size_t sizes[SIZES] = {100000, 4096, 2000, 128, 1 << 20, 33000, 4 << 20, 32768};
    long before[SIZES];
    for (int round = 0; round < 2; round++)
        for (int size = 0; size < SIZES; size++) {
            long count = taken(sizes[size]);
            HOLDS(count > 0);
            /* Nothing is lost but a fiftieth: slots and lists keep objects of other sizes. */
            if (round == 1) HOLDS(count >= before[size] - before[size] / 50);
            before[size] = count;
            malloc_trim(0);
        }
    /* Freed blocks that stay for the next ones are there for smaller requests, too. */
    static const int pairs[][2] = {{0, 2}, {6, 7}, {5, 7}, {6, 1}};
    for (int pair = 0; pair < 4; pair++) {
        int small = pairs[pair][1];
        malloc_trim(0);
        taken(sizes[pairs[pair][0]]);
        HOLDS(taken(sizes[small]) >= before[small] - before[small] / 20);
    }
    printf("%ld blocks of 100000 bytes, %ld of 4096\n", before[0], before[1]);
}

static int is_limit(const char *what) {
    return strcmp(what, "limit") == 0 || strcmp(what, "data") == 0;
}

/* Runs this program again. Returns whether it succeeded. */
static int again(const char *program, const char *what, const char *number) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char fail[32];
        if (is_limit(what)) {
            struct rlimit limit = {strtoul(number, NULL, 10) << 10, RLIM_INFINITY};
            setrlimit(strcmp(what, "data") == 0 ? RLIMIT_DATA : RLIMIT_AS, &limit);
        } else {
            snprintf(fail, sizeof fail, "FAIL=%s%s", strcmp(what, "from") == 0 ? "+" : "", number);
            putenv(fail);
        }
        execl(program, program, what, number, "child", NULL);
        _exit(2);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) printf("%s %s: status %#x\n", what, number, status);
    return status == 0;
}

int main(int count, char **arguments) {
    if (count == 4) {
        if (is_limit(arguments[1])) {
            until_frames_run_out();
        } else {
            work();
            fails = 0;
            all_served();
        }
        return 0;
    }
    if (count == 3) return !again(arguments[0], arguments[1], arguments[2]);
    if (count == 2 && strcmp(arguments[1], "late") == 0) {
        late();
        printf("exhausted.c: late, all holds\n");
        return 0;
    }
    if (count != 2 || strcmp(arguments[1], "all") != 0) return 2;
    work();
    int all_maps = maps, failed = 0;
    HOLDS(all_maps > 10);
    char number[16];
    for (int n = 1; n <= all_maps + 1; n++) {
        snprintf(number, sizeof number, "%d", n);
        failed += !again(arguments[0], "at", number);
        failed += !again(arguments[0], "from", number);
    }
    static const char *const limits[] = {"200000", "300000", "600000"};
    for (int limit = 0; limit < 3; limit++) failed += !again(arguments[0], "limit", limits[limit]);
    failed += !again(arguments[0], "data", limits[0]);
    if (failed == 0)
        printf("exhausted.c: %d mappings, each failed alone and with all later ones: all holds\n", all_maps);
    return failed != 0;
}
