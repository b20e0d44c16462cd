/* A new slab's pages have memory when an object in them is used, and not before. Prints how many of the 3 pages
 * behind the first object's have memory, and exits with 1 if one has. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    uintptr_t page = sysconf(_SC_PAGESIZE);
    /* No library has used this size. */
    char *first = malloc(1936);
    if (first == NULL) return 2;
    *first = 1;
    unsigned char resident[3];
    void *behind = (void *)(((uintptr_t)first & ~(page - 1)) + page);
    if (mincore(behind, 3 * page, resident) != 0) return 2;
    int used = 0;
    for (int i = 0; i < 3; i++) used += resident[i] & 1;
    printf("%d of 3 pages\n", used);
    return used > 0;
}
