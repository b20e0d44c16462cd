/* A signal handler that interrupted malloc frees a wrong address.

   wrong NAME           the address that NAME says (x86-64: a signal comes after each instruction until one
                        comes in malloc's middle)
   wrong NAME twice     the handler frees the address once before

   The handler finds out from an object cache with a limit that it interrupted malloc: such a cache answers
   EAGAIN then. Prints "the handler frees" before the free, and "freed" behind it. When the process aborts,
   prints "untouched" if the words at the address are as the program wrote them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { SIZES = 400 };

struct kmem_cache;

/* The arguments of include/slablab.h, of which only the limit is not 0. */
struct arguments {
    size_t align;
    unsigned flags;
    void (*ctor)(void *), (*dtor)(void *);
    size_t max_objects, max_bytes;
    const char *engine;
};

static struct kmem_cache *(*create)(const char *, size_t, const struct arguments *);
static void *(*cache_alloc)(struct kmem_cache *, unsigned);
static void (*cache_free)(struct kmem_cache *, void *);

static struct kmem_cache *limited;
static long elsewhere[4];
static volatile long *wrong;
static const long pattern = 0x5a17c0de5a17c0de;
static int twice;

static void say(const char *what) { (void)!write(1, what, strlen(what)); }

static void aborted(int signal) {
    (void)signal;
    if (wrong[0] == pattern && wrong[1] == pattern)
        say("untouched\n");
}

static void *function(const char *name) {
    void *at = dlsym(RTLD_DEFAULT, name);
    if (!at)
        abort();
    return at;
}

static void stepped(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    errno = 0;
    void *object = cache_alloc(limited, 0);
    if (object) {
        cache_free(limited, object);
        return;
    }
    if (errno != EAGAIN)
        return;
    /* The handler runs once: the trap flag is off from here on. */
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
    say("the handler frees\n");
    if (twice)
        free((void *)wrong);
    free((void *)wrong);
    say("freed\n");
}

static void turn(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    long local[4];
    char *small = malloc(100), *large = malloc(1 << 20);
    twice = count > 2 && !strcmp(arguments[2], "twice");
    create = (struct kmem_cache * (*)(const char *, size_t, const struct arguments *))
        function("kmem_cache_create_args");
    cache_alloc = (void *(*)(struct kmem_cache *, unsigned))function("kmem_cache_alloc");
    cache_free = (void (*)(struct kmem_cache *, void *))function("kmem_cache_free");
    limited = create("limited", 64, &(struct arguments){.max_objects = 8});
    if (!strcmp(name, "static"))
        wrong = elsewhere;
    else if (!strcmp(name, "stack"))
        wrong = local;
    else if (!strcmp(name, "inside"))
        wrong = (long *)(small + 16);
    else if (!strcmp(name, "inside a large block"))
        wrong = (long *)(large + 64);
    else if (!strcmp(name, "large block"))
        wrong = (long *)large;
    else if (!strcmp(name, "small block"))
        wrong = (long *)small;
    else
        wrong = cache_alloc(limited, 0);
    wrong[0] = wrong[1] = pattern;
    struct sigaction trapped = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &trapped, 0);
    struct sigaction turns = {.sa_sigaction = turn, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &turns, 0);
    struct sigaction end = {.sa_handler = aborted};
    sigaction(SIGABRT, &end, 0);
    raise(SIGUSR1);
    for (int i = 1; i < SIZES; i++)
        free(malloc((size_t)i * 64));
    if (wrong[0] != pattern)
        say("written to\n");
    say("goes on\n");
    return 0;
}
