/* Commits one fault, named by the argument, in memory from malloc. Prints the object's address first, and
   "goes on" last. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 100
#define MANY 2000

/* Functions that allocate and free, for their names in reports. */
__attribute__((noinline)) char *taker(void)
{
    char *volatile object = malloc(BYTES);

    return object;
}

__attribute__((noinline)) void giver(char *object)
{
    free(object);
    __asm__ volatile("" ::: "memory");
}

static char *volatile taken;

void handler(int signal)
{
    (void)signal;
    taken = taker();
}

#if defined __x86_64__
/* Its unwind table leaves the push out, as a compiler's can between two calls. At the trap the pushed number
 * is where the table has the return address, and no code is there. */
void interrupted(void);
__asm__(".pushsection .text\n"
        ".globl interrupted\n"
        ".type interrupted, @function\n"
        "interrupted:\n"
        ".cfi_startproc\n"
        "push $35\n"
        "int3\n"
        "pop %rax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size interrupted, . - interrupted\n"
        ".popsection");
#else
static void interrupted(void) { raise(SIGTRAP); }
#endif

/* Of 200 objects, counts those whose distance to the object before is the same as that object's distance to
 * its own predecessor. */
static int steps(void)
{
    char *last = NULL;
    ptrdiff_t step = 0;
    int alike = 0;

    for (int i = 0; i < 200; i++) {
        char *next = malloc(208);
        alike += next - last == step;
        step = next - last;
        last = next;
    }
    return alike;
}

static int is_zero(const char *object)
{
    for (int i = 0; i < BYTES; i++)
        if (object[i])
            return 0;
    return 1;
}

/* A function of the preloaded library that this C library may lack. */
static void *function(const char *name)
{
    void *at = dlsym(RTLD_DEFAULT, name);

    if (!at)
        abort();
    return at;
}

/* Frees with a size, or with a size and an alignment. */
typedef void sized(void *, size_t);
typedef void aligned_sized(void *, size_t, size_t);

int main(int count, char **arguments)
{
    static char line[64];
    static long elsewhere[4];
    const char *name = count > 1 ? arguments[1] : "";
    char *stays = taker(), *object = taker();
    char *volatile kept = object;

    setvbuf(stdout, NULL, _IONBF, 0);
    printf("%p\n", (void *)object);
    if (!strcmp(name, "behind")) {
        object[BYTES] = 'A';
        giver(object);
    } else if (!strcmp(name, "behind, from a handler")) {
        signal(SIGTRAP, handler);
        interrupted();
        taken[BYTES] = 'A';
        giver(taken);
    } else if (!strcmp(name, "behind its class")) {
        object[112] = 'A';
        giver(object);
    } else if (!strcmp(name, "before")) {
        object[-1] = 'A';
        giver(object);
    } else if (!strcmp(name, "after its free")) {
        giver(object);
        kept[5] = 'A';
        for (int i = 0; i < MANY; i++)
            stays = taker();
    } else if (!strcmp(name, "links")) {
        /* Free objects in slabs, not only in slots and barns. The others keep the slabs. */
        static char *volatile many[10 * MANY];
        for (int i = 0; i < 10 * MANY; i++)
            many[i] = taker();
        for (int i = 0; i < 10 * MANY; i += 2)
            giver(many[i]);
        malloc_trim(0);
        for (int i = 0; i < 10 * MANY; i += 2)
            memset(many[i], 'A', 8);
        for (int i = 0; i < 10 * MANY; i++)
            stays = taker();
    } else if (!strcmp(name, "in quarantine")) {
        giver(object);
        kept[5] = 'A';
        for (int i = 0; i < MANY; i++)
            giver(taker());
    } else if (!strcmp(name, "twice")) {
        giver(object);
        giver(kept);
    } else if (!strcmp(name, "twice, others between")) {
        giver(object);
        for (int i = 0; i < 10; i++)
            giver(taker());
        giver(kept);
    } else if (!strcmp(name, "inside")) {
        giver(object + 16);
    } else if (!strcmp(name, "not aligned")) {
        giver(object + 1);
    } else if (!strcmp(name, "elsewhere")) {
        giver((char *)elsewhere);
    } else if (!strcmp(name, "large, twice")) {
        char *volatile large = malloc(1 << 20);
        giver(large);
        giver(large);
    } else if (!strcmp(name, "large, in its last page")) {
        char *volatile large = malloc(1 << 20);
        giver(large);
        giver(large + (1 << 20) - 4096);
    } else if (!strcmp(name, "large, write after its free") || !strcmp(name, "large, read after its free")) {
        char *volatile large = malloc(1 << 20);
        memset(large, 1, 1 << 20);
        giver(large);
        if (name[7] == 'w')
            large[70000] = 'A';
        else
            printf("%d\n", large[70000]);
    } else if (!strcmp(name, "large, many")) {
        for (int i = 0; i < 300; i++) {
            size_t bytes = 40000 + i * 977 % 3000000;
            char *large = malloc(bytes);
            memset(large, 1, bytes);
            free(large);
        }
        for (int i = 0; i < 200; i++)
            free(calloc(1, 40000 + i * 50000));
        malloc_trim(0);
    } else if (!strcmp(name, "grown")) {
        object = realloc(object, BYTES + 4);
        object[BYTES + 3] = object[BYTES + 4] = 'A';
        giver(object);
    } else if (!strcmp(name, "sizes")) {
        snprintf(line, sizeof line, "%zu of %d\n", malloc_usable_size(object), BYTES);
        fputs(line, stdout);
    } else if (!strcmp(name, "damaged list")) {
        /* No other object of the slab is live: it is freed once more than it has objects. A panic here can
         * hang in its own backtrace, which allocates. */
        alarm(20);
        giver(stays);
        giver(object);
        ((volatile long *)kept)[1] = 0;
        giver(kept);
        malloc_trim(0);
    } else if (!strcmp(name, "sized, right")) {
        for (size_t bytes = 0; bytes < 200000; bytes = bytes * 3 / 2 + 1) {
            ((sized *)function("free_sized"))(malloc(bytes), bytes);
            ((sized *)function("_ZdlPvm"))(calloc(1, bytes), bytes);
            for (size_t align = 8; align <= 8192; align *= 4)
                ((aligned_sized *)function("free_aligned_sized"))(memalign(align, bytes), align, bytes);
            ((sized *)function("free_sized"))(realloc(malloc(2 * bytes + 1), bytes + 1), bytes + 1);
        }
        ((aligned_sized *)function("_ZdlPvmSt11align_val_t"))(memalign(64, 100), 100, 64);
    } else if (!strcmp(name, "sized, wrong")) {
        ((sized *)function("free_sized"))(object, BYTES - 40);
    } else if (!strcmp(name, "sized, too large")) {
        ((sized *)function("_ZdlPvm"))(object, BYTES * 5);
    } else if (!strcmp(name, "sized, large")) {
        char *large = malloc(100000);
        printf("%p\n", (void *)large);
        ((sized *)function("free_sized"))(large, 200000);
    } else if (!strcmp(name, "alignment")) {
        ((sized *)function("_ZdlPvSt11align_val_t"))(object, (size_t)1 << 40);
    } else if (!strcmp(name, "zeros")) {
        int zeros = 0;
        for (int i = 0; i < MANY; i++) {
            char *again = taker();
            zeros += is_zero(again);
            memset(again, 'A', BYTES);
            giver(again);
        }
        snprintf(line, sizeof line, "%d zeros\n", zeros);
        fputs(line, stdout);
    } else if (!strcmp(name, "order")) {
        snprintf(line, sizeof line, "%s\n", steps() > 120 ? "in order" : "in no order");
        fputs(line, stdout);
    } else if (!strcmp(name, "aligned")) {
        for (size_t align = 16; align <= 65536; align *= 2)
            for (size_t bytes = 1; bytes < 70000; bytes = bytes * 3 + 1) {
                char *at = memalign(align, bytes);
                if ((uintptr_t)at % align || malloc_usable_size(at) < bytes)
                    abort();
                memset(at, 'A', bytes);
                giver(at);
            }
    }
    puts("goes on");
    return stays == object;
}
