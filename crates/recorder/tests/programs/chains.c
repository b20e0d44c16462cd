/* Allocations of three call chains, of known numbers: a leak, blocks that are freed at once, and a deep one. */
#include <stdio.h>
#include <stdlib.h>

enum { LEAKED = 300, BRIEF = 5000, DEEP = 40 };

static void *kept[LEAKED];

__attribute__((noinline)) static void *wrapped(size_t size) {
    void *at = malloc(size);
    if (!at)
        abort();
    return at;
}

__attribute__((noinline)) static void leak(void) {
    for (int i = 0; i < LEAKED; i++)
        kept[i] = wrapped(4000);
}

__attribute__((noinline)) static void brief(void) {
    for (int i = 0; i < BRIEF; i++) {
        char *at = wrapped(512);
        at[0] = (char)i;
        free(at);
    }
}

__attribute__((noinline)) static int deep(int left) {
    if (left > 0)
        return deep(left - 1) + 1;
    char *at = calloc(7, 1001);
    int is_there = at != NULL;
    free(at);
    return is_there;
}

int main(void) {
    leak();
    brief();
    printf("%d\n", deep(DEEP));
    return kept[LEAKED - 1] == NULL;
}
