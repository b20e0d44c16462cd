/* Commits one fault, named by the argument, in memory from malloc. Prints what it is about to do, a word for
   each step, and a verdict if it gets to the end: "missed", or what the fault did. scripts/detections.py runs
   it under several allocators, detections.rs under ours. Without an argument: the names of the faults. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 104, MANY = 4000, LARGE = 200000 };

/* Through a pointer that the compiler must load: it knows malloc and free. */
static void *(*volatile allocate)(size_t) = malloc;
static void *(*volatile resize)(void *, size_t) = realloc;
static void (*volatile give)(void *) = free;

static char *volatile object;
static char *all[MANY];
static long elsewhere[8];

static void say(const char *word) { (void)!write(1, word, strlen(word)), (void)!write(1, "\n", 1); }

static void allocate_many(void) {
    say("alloc");
    for (int i = 0; i < MANY; i++)
        all[i] = allocate(BYTES);
}

static void free_many(void) {
    say("free");
    for (int i = 0; i < MANY; i++)
        give(all[i]);
}

static void free_it(void) {
    say("free");
    give(object);
}

static void scribble(char *at, size_t bytes) {
    say("write");
    memset(at, 'A', bytes);
}

/* Writes other bytes than those that are there, which may be random. */
static void change(char *at, size_t bytes) {
    say("write");
    for (size_t i = 0; i < bytes; i++) at[i] = ~at[i];
}

/* An object among many, of which every second was freed, so that allocators have free ones beside it. */
static char *among_many(void) {
    allocate_many();
    for (int i = 1; i < MANY; i += 2)
        give(all[i]), all[i] = 0;
    return all[MANY / 2];
}

static void double_free(void) {
    free_it();
    free_it();
}

static void double_free_others_between(void) {
    char *others[8];
    for (int i = 0; i < 8; i++)
        others[i] = allocate(BYTES);
    free_it();
    for (int i = 0; i < 8; i++)
        give(others[i]);
    free_it();
}

static void double_free_after_reuse(void) {
    char *reused = 0;
    free_it();
    for (int i = 0; i < MANY && reused != object; i++)
        reused = allocate(BYTES);
    if (reused != object)
        return say("not reused"), _exit(0);
    /* The first frees what another part of the program holds; that part frees it too. */
    free_it();
    free_it();
}

static void free_of_the_inside(void) {
    object += 16;
    free_it();
}

static void free_of_a_static(void) {
    object = (char *)(elsewhere + 2);
    free_it();
}

static void free_of_the_stack(void) {
    long local[8] = {0, 65, 0, 65};
    object = (char *)(local + 2);
    free_it();
}

static void overflow_by(size_t bytes) {
    object = among_many();
    change(object + BYTES, bytes);
    free_many();
}

static void overflow_by_1(void) { overflow_by(1); }
static void overflow_by_8(void) { overflow_by(8); }
static void overflow_by_16(void) { overflow_by(16); }

static void overflow_by_a_zero(void) {
    object = among_many();
    say("write");
    object[BYTES] = 0;
    free_many();
}

static void overflow_within_the_rounding(void) {
    allocate_many();
    object = allocate(BYTES - 4);
    scribble(object + BYTES - 4, 1);
    free_it();
    free_many();
}

static void underflow_by_1(void) {
    /* Below several: nothing may be below the first of a slab. */
    allocate_many();
    say("write");
    for (int i = MANY / 2; i < MANY / 2 + 16; i++)
        all[i][-1] = 'A';
    free_many();
}

static void write_after_free(void) {
    free_it();
    scribble(object + 40, 8);
    allocate_many();
}

static void write_after_free_at_the_start(void) {
    free_it();
    scribble(object, 16);
    allocate_many();
}

static void read_after_free(void) {
    memset(object, 'A', BYTES);
    free_it();
    int old = 0;
    for (int i = 0; i < BYTES; i++)
        old += object[i] == 'A';
    say(old == 0 ? "no old byte" : "old bytes");
    _exit(0);
}

static void uninitialised_read(void) {
    int old = 0;
    memset(object, 'A', BYTES);
    free_it();
    say("alloc");
    for (int i = 0; i < MANY; i++) {
        char *other = allocate(BYTES);
        for (int at = 0; at < BYTES; at++)
            old += other[at] == 'A';
    }
    say(old == 0 ? "no old byte" : "old bytes");
    _exit(0);
}

static void large_overflow_by_1(void) {
    object = allocate(LARGE);
    change(object + LARGE, 1);
    free_it();
}

static void large_overflow_by_2_pages(void) {
    char *before = allocate(LARGE);
    object = allocate(LARGE);
    char *lower = before < object ? before : object;
    scribble(lower + LARGE, 8192);
    give(before);
    free_it();
}

static void large_double_free(void) {
    object = allocate(LARGE);
    free_it();
    free_it();
}

static void large_read_after_free(void) {
    object = allocate(LARGE);
    memset(object, 'A', LARGE);
    free_it();
    say(object[LARGE / 2] == 'A' ? "old bytes" : "no old byte");
    _exit(0);
}

/* The attack on free lists: a link in freed memory is overwritten, so that malloc hands out the attacker's
   address. */
static void overwritten_link(void) {
    for (int i = 0; i < MANY; i++)
        all[i] = allocate(BYTES);
    free_many();
    say("write");
    uintptr_t target = (uintptr_t)(elsewhere + 2);
    for (int i = 0; i < MANY; i++)
        memcpy(all[i], &target, sizeof target);
    say("alloc");
    for (int i = 0; i < MANY; i++)
        if ((uintptr_t)allocate(BYTES) == target)
            return say("malloc returned the attacker's address"), _exit(0);
}

/* The same with one byte: it moves a link by a little, so that two objects overlap. */
static void partly_overwritten_link(void) {
    for (int i = 0; i < MANY; i++)
        all[i] = allocate(BYTES);
    free_many();
    say("write");
    for (int i = 0; i < MANY; i++)
        all[i][0] ^= 0x20;
    say("alloc");
    for (int i = 0; i < 2 * MANY; i++) {
        char *got = allocate(BYTES);
        for (int at = 0; at < MANY; at++)
            if (got != all[at] && got < all[at] + BYTES && all[at] < got + BYTES)
                return say("malloc returned overlapping objects"), _exit(0);
    }
}

static void wrong_size(void) {
    typedef void sized(void *, size_t);
    dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
    sized *delete = (sized *)dlsym(RTLD_DEFAULT, "_ZdlPvm");
    if (!delete)
        return say("no sized delete"), _exit(0);
    say("free");
    delete (object, BYTES * 4);
}

static void use_after_realloc(void) {
    char *before = object;
    say("realloc");
    object = resize(object, 10 * BYTES);
    if (before == object)
        return say("not moved"), _exit(0);
    scribble(before + 24, 8);
    allocate_many();
}

static void order_of_addresses(void) {
    intptr_t step = 0, last = 0;
    int alike = 0;
    for (int i = 0; i < 1000; i++) {
        intptr_t next = (intptr_t)allocate(208);
        alike += next - last == step;
        step = next - last;
        last = next;
    }
    say(alike > 500 ? "in order" : "in no order");
    _exit(0);
}

static void reuse_at_once(void) {
    int same = 0;
    for (int i = 0; i < 100; i++) {
        char *first = allocate(BYTES);
        give(first);
        char *second = allocate(BYTES);
        same += first == second;
        if (i % 2)
            give(second);
    }
    say(same > 50 ? "reused at once" : "reused later");
    _exit(0);
}

static const struct {
    const char *name;
    void (*commit)(void);
} faults[] = {
    {"double free", double_free},
    {"double free, others between", double_free_others_between},
    {"double free after reuse", double_free_after_reuse},
    {"free of an address inside", free_of_the_inside},
    {"free of a static", free_of_a_static},
    {"free of the stack", free_of_the_stack},
    {"overflow by 1 byte", overflow_by_1},
    {"overflow by 8 bytes", overflow_by_8},
    {"overflow by 16 bytes", overflow_by_16},
    {"overflow by a zero", overflow_by_a_zero},
    {"overflow within the rounding", overflow_within_the_rounding},
    {"underflow by 1 byte", underflow_by_1},
    {"write after free", write_after_free},
    {"write after free at the start", write_after_free_at_the_start},
    {"read after free", read_after_free},
    {"uninitialised read", uninitialised_read},
    {"large: overflow by 1 byte", large_overflow_by_1},
    {"large: overflow by 2 pages", large_overflow_by_2_pages},
    {"large: double free", large_double_free},
    {"large: read after free", large_read_after_free},
    {"overwritten link", overwritten_link},
    {"partly overwritten link", partly_overwritten_link},
    {"sized delete of a wrong size", wrong_size},
    {"write after realloc", use_after_realloc},
    {"order of addresses", order_of_addresses},
    {"reuse", reuse_at_once},
};

int main(int count, char **arguments) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (count < 2) {
            say(faults[i].name);
        } else if (!strcmp(arguments[1], faults[i].name)) {
            object = allocate(BYTES);
            faults[i].commit();
            say("missed");
            _exit(0);
        }
    }
    return 0;
}
