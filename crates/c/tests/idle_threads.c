/* 64 threads allocate 100 blocks of 16 to 808 bytes, free them again, and sleep; then they end. Prints KiB for each
 * thread, beyond those of as many threads that call nothing: while they sleep, and 100 ms after they ended. Exits
 * with 1 if these are above the limits in three runs. With "live" the threads free their blocks when they end: then only what is
 * left afterwards has a limit.
 *
 *     cc -O1 -pthread crates/c/tests/idle_threads.c -o idle_threads
 *     LD_PRELOAD=target/dist/libslablab.so ./idle_threads freed
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 64, BLOCKS = 100, ASLEEP_LIMIT = 40, ENDED_LIMIT = 16 };

static pthread_barrier_t barrier;
static int calls, keeps;

/* KiB resident, without a call of malloc. */
static long resident(void) {
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) < 0) exit(2);
    close(file);
    long pages = 0;
    sscanf(text, "%*d %ld", &pages);
    return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

static void *sleeps(void *unused) {
    void *blocks[BLOCKS];
    if (calls)
        for (int at = 0; at < BLOCKS; at++) {
            blocks[at] = malloc(16 + at * 8);
            if (blocks[at] == NULL) exit(2);
            memset(blocks[at], 1, 16 + at * 8);
        }
    if (calls && !keeps)
        for (int at = 0; at < BLOCKS; at++) free(blocks[at]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    if (calls && keeps)
        for (int at = 0; at < BLOCKS; at++) free(blocks[at]);
    return unused;
}

/* KiB that threads hold while they sleep, and that are left when they ended. */
static void measure(long held[2]) {
    pthread_t threads[THREADS];
    long before = resident();
    for (int at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, sleeps, NULL);
    pthread_barrier_wait(&barrier);
    held[0] = resident() - before;
    pthread_barrier_wait(&barrier);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    usleep(100000);
    held[1] = resident() - before;
}

/* Whether the limits hold, in a process that has done nothing before. */
static int holds(void) {
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    free(malloc(100));
    long first[2], without[2], with[2];
    /* The C library keeps the stacks of threads that ended. */
    measure(first);
    measure(without);
    calls = 1;
    measure(with);
    long asleep = (with[0] - without[0]) / THREADS, ended = (with[1] - without[1]) / THREADS;
    printf("%ld KiB a thread that sleeps, %ld KiB when it ended\n", asleep, ended);
    fflush(stdout);
    return (keeps || asleep <= ASLEEP_LIMIT) && ended <= ENDED_LIMIT;
}

int main(int count, char **arguments) {
    keeps = count > 1 && strcmp(arguments[1], "live") == 0;
    /* Threads that the machine keeps from their CPUs have their blocks at one time, which adds to it: one of three
     * runs must hold. */
    for (int at = 0; at < 3; at++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(!holds());
        if (child < 0 || waitpid(child, &status, 0) != child) return 2;
        if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return 2;
        if (WEXITSTATUS(status) == 0) return 0;
    }
    return 1;
}
