/* realloc copies blocks that the program never wrote, from size to size and place to place. So what the library
 * leaves in freed memory comes along: none of it may look like a mark of the library's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 1;

static unsigned drawn(unsigned below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 33) % below;
}

/* Gives each of `count` blocks new sizes, at random; they are objects, and blocks that begin where slabs began. */
static int rounds(unsigned count) {
    static const size_t sizes[] = {5000, 20000, 30000, 65536, 131072, 1000000};
    void *blocks[4] = {NULL};
    for (int i = 0; i < 100000; i++) {
        void **block = &blocks[drawn(count)];
        void *moved = realloc(*block, sizes[drawn(6)]);
        if (moved == NULL) return 1;
        *block = moved;
        if (drawn(8) == 0) {
            free(moved);
            *block = NULL;
        }
    }
    for (unsigned i = 0; i < count; i++) free(blocks[i]);
    return 0;
}

int main(void) {
    for (unsigned count = 2; count <= 4; count++)
        if (rounds(count) != 0) return 1;
    puts("no mark came back");
    return 0;
}
