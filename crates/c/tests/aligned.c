/* Every function that takes an alignment, for sizes of all classes: the address is a multiple of it. Names the
 * first that is not, and exits with 1. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long count;

static void look(const char *call, size_t align, size_t bytes, void *at) {
    if (at == NULL || (uintptr_t)at % align != 0) {
        fprintf(stderr, "aligned.c: %s of %zu bytes at multiples of %zu: %p\n", call, bytes, align, at);
        exit(1);
    }
    count++;
}

int main(void) {
    /* Nothing is freed before the end: slabs may start at different places, and the first at the best one. */
    for (size_t align = 16; align <= 65536; align *= 2)
        for (size_t bytes = align; bytes <= 32768; bytes += align > 512 ? align / 2 : align)
            for (int i = 0; i < 3; i++) {
                void *at = NULL;
                if (posix_memalign(&at, align, bytes) != 0) at = NULL;
                look("posix_memalign", align, bytes, at);
                look("aligned_alloc", align, bytes, at = aligned_alloc(align, bytes));
                if (i > 0) free(at);
                look("memalign", align, bytes, at = memalign(align, bytes));
                if (i > 0) free(at);
            }
    printf("all holds, %lu requests\n", count);
    return 0;
}
