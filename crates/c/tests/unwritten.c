/* A freed object has a mark of the library's in its second word. Its bytes may later be the first ones of a block.
 * If the mark stayed there, realloc would copy it from block to block, and perhaps back into an object at the
 * mark's own address, whose free would be taken for a second one. So the second word of a block that is handed
 * out is 0, whatever was there. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64 };

/* Blocks of `bytes` bytes in memory that blocks of `before` bytes filled: how many got filled memory. -1: one has
 * a second word that is not 0. */
static int filled(size_t before, size_t bytes) {
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        if ((blocks[i] = malloc(before)) == NULL) exit(2);
        memset(blocks[i], 0xff, before);
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    int count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t *words = blocks[i] = malloc(bytes);
        if (words == NULL) exit(2);
        count += words[2] == UINT64_MAX;
        if (words[1] != 0) return -1;
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    return count;
}

int main(void) {
    static const size_t sizes[][2] = {{20000, 40000}, {65536, 65536}, {300000, 100000}, {30000, 131072}};
    int all = 0;
    for (int round = 0; round < 8; round++) {
        int count = filled(sizes[round % 4][0], sizes[round % 4][1]);
        if (count < 0) {
            printf("%zu bytes after %zu: a mark\n", sizes[round % 4][1], sizes[round % 4][0]);
            return 1;
        }
        all += count;
    }
    printf(all > 0 ? "no mark came back\n" : "no memory came back\n");
    return all == 0;
}
