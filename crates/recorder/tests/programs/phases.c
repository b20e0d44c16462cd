/* 20,000 calls of 5004 bytes; when standard input ends, and a moment later, 200,000 of 5005. */
#include <stdlib.h>
#include <unistd.h>

static void calls(int count, size_t size) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(size);
        free(block);
    }
}

int main(void) {
    char byte;
    calls(10000, 5004);
    if (write(1, "\n", 1) != 1 || read(0, &byte, 1) != 0)
        return 1;
    usleep(200000);
    calls(100000, 5005);
    return 0;
}
