/* Forks while other threads hold locks of the C library that a fork takes too, and allocate under them.
 *
 *     forks lines N      N forks; four threads read lines of a file, one flushes all streams
 *     forks streams N    N forks; threads open, read and close streams, whose list fork locks, and flush all
 *                        of them
 *
 *     cc -O1 -pthread crates/c/tests/forks.c -o forks
 *     LD_PRELOAD=target/release/libslablab.so ./forks lines 2000
 *
 * A fork takes the lock of the list of streams after the library's handler ran. One thread may hold a
 * stream's lock and wait for memory, and another may hold the list's lock and wait for that stream. So no
 * allocation may wait until the fork is over. An alarm ends the program if one fork takes longer than ten
 * seconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                \
    do {                                                           \
        if (!(what)) {                                             \
            dprintf(2, "forks.c:%d: %s\n", __LINE__, #what);       \
            _exit(1);                                              \
        }                                                          \
    } while (0)

static void *(*volatile do_malloc)(size_t) = malloc;

/* The file was removed: the reading threads stop. */
static volatile int over;

static void *reads_lines(void *name) {
    for (;;) {
        FILE *file = fopen(name, "r");
        if (over) pause();
        HOLDS(file != NULL);
        char *line = NULL;
        size_t room = 0;
        while (getline(&line, &room, file) > 0) HOLDS(strlen(line) > 0);
        free(line);
        fclose(file);
    }
    return NULL;
}

static void *flushes(void *unused) {
    for (;;) fflush(NULL);
    return unused;
}

static void *opens(void *unused) {
    for (unsigned round = 0;; round++) {
        char text[64] = "a line\nanother line\n";
        FILE *file = fmemopen(text, strlen(text), "r");
        HOLDS(file != NULL);
        char *line = NULL;
        size_t room = 0;
        while (getline(&line, &room, file) > 0)
            ;
        free(line);
        fclose(file);
        char *grown = NULL;
        size_t bytes = 0;
        file = open_memstream(&grown, &bytes);
        HOLDS(file != NULL);
        for (unsigned i = 0; i < round % 2000; i++) fputs("more and more of it\n", file);
        fclose(file);
        HOLDS(bytes == round % 2000 * 20);
        free(grown);
    }
    return unused;
}

int main(int count, char **arguments) {
    HOLDS(count == 3);
    char name[] = "/tmp/forksXXXXXX";
    FILE *file = fdopen(mkstemp(name), "w");
    for (int i = 0; i < 50000; i++) fputc('x', file);
    fclose(file);
    int lines = strcmp(arguments[1], "lines") == 0, forks = atoi(arguments[2]);
    pthread_t thread;
    for (int i = 0; i < 4; i++) HOLDS(pthread_create(&thread, NULL, lines ? reads_lines : opens, name) == 0);
    HOLDS(pthread_create(&thread, NULL, flushes, NULL) == 0);
    for (int i = 0; i < forks; i++) {
        alarm(10);
        pid_t child = fork();
        HOLDS(child >= 0);
        if (child == 0) {
            alarm(10);
            /* The child allocates, uses streams and ends. */
            char *object = do_malloc(1000);
            HOLDS(object != NULL);
            free(object);
            FILE *own = fopen("/dev/null", "w");
            HOLDS(own != NULL && fclose(own) == 0);
            _exit(0);
        }
        int status;
        HOLDS(waitpid(child, &status, 0) == child && status == 0);
    }
    over = 1;
    unlink(name);
    static const char done[] = "forks.c: all holds\n";
    HOLDS(write(1, done, sizeof done - 1) > 0);
    _exit(0);
}
