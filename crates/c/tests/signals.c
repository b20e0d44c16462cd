/* Signal handlers that allocate and free in the middle of threads that allocate and free. Every block carries
   a number from end to end, so that an overlap is seen; nothing may hang.

   signals N          four threads of N steps, signals by a timer
   signals N forks    the same, and handlers fork, while another thread forks too
   Built with -DOBJECTS, blocks are objects of three caches, the middle one with a constructor.

   signals N steps    three threads of N steps, one after another, and a signal after each of their
                      instructions, from their first allocation until the library knows that they ended
                      (x86-64), while another runs freely */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 4, LIVE = 300, KEPT = 64 };

static long steps;
/* In single steps a block carries its number in three places: filling it would take too many. */
static _Thread_local int stepped;
static _Atomic long handled;

static void fail(const char *what) {
    (void)!write(2, what, strlen(what));
    abort();
}

#ifdef OBJECTS
#include <slablab.h>

static struct kmem_cache *caches[3];

static void construct(void *at) { memset(at, 1, 2000); }

static struct kmem_cache *cache_of(size_t bytes) {
    return caches[bytes <= 200 ? 0 : bytes <= 2000 ? 1 : 2];
}

static void create_caches(void) {
    struct kmem_cache_args args = {.max_objects = 100000};
    caches[0] = kmem_cache_create("small", 200, 0, 0, 0);
    caches[1] = kmem_cache_create("constructed", 2000, 0, 0, construct);
    caches[2] = kmem_cache_create_args("large", 140000, &args);
}

static void destroy_caches(void) {
    for (int i = 0; i < 3; i++)
        if (kmem_cache_destroy(caches[i]) < 0)
            fail("objects remain\n");
}

static unsigned char *allocated(size_t bytes) { return kmem_cache_alloc(cache_of(bytes), 0); }

static void freed(unsigned char *at, size_t bytes) { kmem_cache_free(cache_of(bytes), at); }
#else
static void create_caches(void) {}
static void destroy_caches(void) {}

static void freed(unsigned char *at, size_t bytes) {
    (void)bytes;
    free(at);
}

static unsigned char *allocated(size_t bytes) {
    void *at = 0;
    switch (bytes % 16) {
    case 0:
        return calloc(bytes, 1);
    case 1:
        return posix_memalign(&at, 256, bytes) ? 0 : at;
    case 2:
        return realloc(malloc(bytes / 2 + 1), bytes);
    default:
        return malloc(bytes);
    }
}
#endif

static unsigned char *made(size_t bytes, unsigned char number) {
    unsigned char *at = allocated(bytes);
    if (at && stepped)
        at[0] = at[bytes / 2] = at[bytes - 1] = number;
    else if (at)
        memset(at, number, bytes);
    return at;
}

static void ended(unsigned char *at, size_t bytes, unsigned char number) {
    if (at[0] != number || at[bytes / 2] != number || at[bytes - 1] != number)
        fail("a block was written over\n");
    freed(at, bytes);
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

/* Blocks that handlers leave to later handlers: taken and stored by an atomic exchange. */
static struct {
    _Atomic(unsigned char *) at;
    size_t bytes;
    unsigned char number;
    _Atomic int busy;
} kept[KEPT];

static int forks;

/* If a handler interrupted malloc and forks, the child may only end. */
static void forked(int allocates) {
    pid_t child = fork();
    if (child < 0)
        fail("no fork\n");
    if (child == 0) {
        if (allocates)
            free(malloc(1000));
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        ;
    if (status)
        fail("a child failed\n");
}

static void handler(int signal) {
    (void)signal;
    long turn = atomic_fetch_add(&handled, 1);
    if (forks)
        forked(0);
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

static int said(void) {
    if (!handled)
        fail("no signal came\n");
    for (int i = 0; i < KEPT; i++)
        if (kept[i].at)
            ended(kept[i].at, kept[i].bytes, kept[i].number);
    destroy_caches();
    printf("all holds, %ld signals\n", (long)handled);
    return 0;
}

#if defined __x86_64__
static _Atomic int running = 1;

static pthread_key_t last;

static void *program_until_done(void *argument) {
    while (running)
        program(argument);
    return 0;
}

/* Turns the trap flag of what it interrupts: without code of ours at which a stack cannot be walked. */
static void turn(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] ^= 0x100;
}

static void turn_steps(void) {
    syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGUSR1);
}

/* Before the C library blocks the signals of a thread that ends. */
static void no_steps(void *mark) {
    (void)mark;
    turn_steps();
}

static void *program_in_steps(void *argument) {
    pthread_setspecific(last, &last);
    stepped = 1;
    turn_steps();
    return program(argument);
}

static int in_single_steps(void) {
    /* Destructors run in the order of their keys: the library has its own first. */
    free(malloc(1));
    pthread_key_create(&last, no_steps);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGTRAP, &action, 0);
    struct sigaction turns = {.sa_sigaction = turn, .sa_flags = SA_SIGINFO};
    sigfillset(&turns.sa_mask);
    sigaction(SIGUSR1, &turns, 0);
    pthread_t free_one, other;
    pthread_create(&free_one, 0, program_until_done, (void *)1);
    for (uintptr_t i = 2; i < 5; i++) {
        pthread_create(&other, 0, program_in_steps, (void *)i);
        pthread_join(other, 0);
    }
    running = 0;
    pthread_join(free_one, 0);
    return said();
}
#else
static int in_single_steps(void) {
    puts("no single steps on this machine");
    return 0;
}
#endif

static _Atomic int forking;

static void *forker(void *none) {
    while (forking)
        forked(1);
    return none;
}

int main(int count, char **arguments) {
    steps = count > 1 ? atol(arguments[1]) : 200000;
    create_caches();
    if (count > 2 && !strcmp(arguments[2], "steps"))
        return in_single_steps();
    /* A thread without signals: glibc's fork is not for handlers in its own middle. */
    forks = forking = count > 2;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_t other;
    if (forks) {
        pthread_sigmask(SIG_BLOCK, &alarm, 0);
        pthread_create(&other, 0, forker, 0);
        pthread_sigmask(SIG_UNBLOCK, &alarm, 0);
    }
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    /* A fork takes longer than a handler else may. */
    long every_us = forks ? 4000 : 150;
    struct itimerval every = {{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &every, 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, program, (void *)(i + 1));
    /* This thread would get all the signals. */
    pthread_sigmask(SIG_BLOCK, &alarm, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &off, 0);
    if (forks) {
        forking = 0;
        pthread_join(other, 0);
    }
    return said();
}
