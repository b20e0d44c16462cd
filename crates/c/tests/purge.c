/* Two threads free what they used, and a purge gives it back: the barns at once, what is in a thread's slot when
 * that thread allocates again. Run with "within" (the program calls slab_purge), or "asked": it says "ready" and
 * waits until another process asked for a purge, while a thread allocates. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOLDS(what)                                                                                         \
    do {                                                                                                    \
        if (!(what)) {                                                                                      \
            fprintf(stderr, "purge.c:%d: not so: %s\n", __LINE__, #what);                                   \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

/* Sizes of many classes, and as many objects of each as a slot's sheaves hold. */
enum { SIZES = 100, EACH = 600 };
/* KiB of objects that count as live at most when nothing is: a few of the C library, and of a slot in use. How
 * much a sleeping thread kept before is a matter of when it was last idle: 50 to 3,000 KiB were seen. */
enum { LEFT = 16 };

static size_t (*purge)(size_t *);
static pthread_barrier_t turn;

static void swing(void) {
    static __thread char *objects[EACH];
    for (int size = 1; size <= SIZES; size++) {
        for (int at = 0; at < EACH; at++) {
            objects[at] = malloc(size * 64);
            memset(objects[at], 1, size * 64);
        }
        for (int at = 0; at < EACH; at++) free(objects[at]);
    }
}

/* So many pairs that one of them takes a slow path. */
static void pairs(void) {
    for (int at = 0; at < 5000; at++) {
        char *volatile object = malloc(64);
        free(object);
    }
}

static void *other(void *argument) {
    swing();
    pthread_barrier_wait(&turn);
    /* It sleeps. */
    pthread_barrier_wait(&turn);
    pairs();
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return argument;
}

/* KiB of objects that are not free as far as this thread can see: those in the slot of another one count as
 * live; and KiB that the heap holds. */
static long live(void) { return mallinfo2().uordblks >> 10; }
static long held(void) { return mallinfo2().arena >> 10; }

static void within(int by_thread) {
    pthread_t thread;
    size_t threads = 77;
    HOLDS(pthread_barrier_init(&turn, NULL, 2) == 0);
    HOLDS(pthread_create(&thread, NULL, other, NULL) == 0);
    swing();
    pthread_barrier_wait(&turn);
    size_t first = purge(&threads);
    HOLDS(threads == (by_thread ? 1 : 0));
    HOLDS(first >= 100 << 10);
    /* There is nothing more, but the slot of the thread that sleeps. */
    size_t again = purge(NULL);
    HOLDS(again <= 256 << 10);
    long objects = live(), heap = held();
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    /* It emptied its slot, and gave the memory back itself. */
    objects -= live();
    heap -= held();
    HOLDS(!by_thread || (objects > 0 && heap > 0 && live() <= LEFT));
    pthread_barrier_wait(&turn);
    HOLDS(pthread_join(thread, NULL) == 0);
    printf("%zu KB at once, %ld by the other thread (%ld of objects); all holds\n", first >> 10, heap, objects);
}

static volatile int ends;

static void *allocates(void *argument) {
    while (!ends) {
        pairs();
        usleep(1000);
    }
    return argument;
}

static void asked(int also_works) {
    pthread_t thread;
    swing();
    if (also_works) HOLDS(pthread_create(&thread, NULL, allocates, NULL) == 0);
    printf("ready\n");
    fflush(stdout);
    char byte;
    HOLDS(read(0, &byte, 1) == 0);
    ends = 1;
    if (also_works) pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    HOLDS(count == 2);
    purge = (size_t(*)(size_t *))dlsym(RTLD_DEFAULT, "slab_purge");
    HOLDS(purge != NULL);
    const char *slots = getenv("SLABLAB_SLOTS");
    if (strcmp(arguments[1], "within") == 0) {
        within(slots == NULL || strcmp(slots, "cpu") != 0);
    } else {
        asked(strcmp(arguments[1], "asked") == 0);
    }
    return 0;
}
