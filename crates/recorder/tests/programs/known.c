/* Calls whose rows are known. The sizes are those of no other call of a small program. */
#include <stdlib.h>
#include <malloc.h>

int main(void) {
    /* The compiler replaces calls with a NULL that it knows. */
    void *volatile none = NULL;
    void *a = malloc(70001);
    void *b = calloc(3, 70002);
    a = realloc(a, 70003);
    free(none);
    free(b);
    void *c = NULL;
    if (posix_memalign(&c, 4096, 70004)) return 1;
    void *d = aligned_alloc(64, 70016);
    void *e = memalign(128, 777);
    void *f = realloc(none, 70005);
    void *g = reallocarray(none, 5, 14002);
    void *h = malloc(0);
    free(a), free(c), free(d), free(e), free(f), free(g), free(h);
    void *i = malloc(33);
    /* A request that fails: the block stays. */
    volatile size_t many = (size_t)1 << 60;
    if (realloc(i, many)) return 2;
    free(i);
    return 0;
}
