/* Signal handlers that allocate and free in the middle of threads that allocate and free. Every block carries a number from
   end to end, so that an overlap is seen; nothing may hang. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 4, LIVE = 300, KEPT = 64 };

static long steps;
static _Atomic long handled;

static void fail(const char *what) {
    (void)!write(2, what, strlen(what));
    abort();
}

static unsigned char *made(size_t bytes, unsigned char number) {
    unsigned char *at = malloc(bytes);
    if (at)
        memset(at, number, bytes);
    return at;
}

static void ended(unsigned char *at, size_t bytes, unsigned char number) {
    if (at[0] != number || at[bytes / 2] != number || at[bytes - 1] != number)
        fail("a block was written over\n");
    free(at);
}

static size_t size_of(uint64_t random) {
    return random % 50 == 0 ? 40000 + random % 100000 : 1 + random % (random % 4 ? 200 : 9000);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* What handlers keep for later handlers: taken and left by exchange. */
static struct {
    _Atomic(unsigned char *) at;
    size_t bytes;
    unsigned char number;
    _Atomic int busy;
} kept[KEPT];

static void handler(int signal) {
    (void)signal;
    long turn = atomic_fetch_add(&handled, 1);
    uint64_t random = (uint64_t)turn * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 6; i++) {
        size_t bytes = size_of(next(&random));
        unsigned char *at = made(bytes, (unsigned char)(turn + i));
        int place = (int)(next(&random) % KEPT);
        if (i % 2 && !atomic_exchange(&kept[place].busy, 1)) {
            unsigned char *before = atomic_exchange(&kept[place].at, at);
            if (before)
                ended(before, kept[place].bytes, kept[place].number);
            kept[place].bytes = bytes;
            kept[place].number = (unsigned char)(turn + i);
            atomic_store(&kept[place].busy, 0);
        } else if (at) {
            ended(at, bytes, (unsigned char)(turn + i));
        }
    }
}

static void *program(void *argument) {
    uint64_t random = (uintptr_t)argument * 2 + 1;
    unsigned char *live[LIVE] = {0};
    size_t bytes[LIVE];
    for (long step = 0; step < steps; step++) {
        int place = (int)(next(&random) % LIVE);
        if (live[place]) {
            ended(live[place], bytes[place], (unsigned char)place);
            live[place] = 0;
        } else {
            bytes[place] = size_of(next(&random));
            live[place] = made(bytes[place], (unsigned char)place);
            if (!live[place])
                fail("no memory\n");
        }
    }
    for (int place = 0; place < LIVE; place++)
        if (live[place])
            ended(live[place], bytes[place], (unsigned char)place);
    return 0;
}

int main(int count, char **arguments) {
    steps = count > 1 ? atol(arguments[1]) : 200000;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval every = {{0, 150}, {0, 150}};
    setitimer(ITIMER_REAL, &every, 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, program, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &off, 0);
    printf("all holds, %s\n", handled > 0 ? "with signals" : "without signals");
    return 0;
}
