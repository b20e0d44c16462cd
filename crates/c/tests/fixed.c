/* A program that allocates once. Prints its resident memory and the part of it that is in no file, in KiB, as
 * the kernel counts them; with an argument its mappings with their sizes. No function of stdio is called: a
 * stream would allocate.
 *
 *     cc -O1 crates/c/tests/fixed.c -o fixed
 *     LD_PRELOAD=target/dist/libslablab.so ./fixed
 *     LD_PRELOAD=target/dist/libslablab.so ./fixed mappings
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[1 << 16];

/* Copies a line of `text` to standard output. */
static void print(const char *name) {
    char *line = strstr(text, name);
    if (line == NULL) exit(2);
    if (write(1, line, strchr(line, '\n') + 1 - line) < 0) exit(2);
}

int main(int count, char **arguments) {
    (void)arguments;
    /* volatile, or the compiler removes both calls. */
    void *volatile block = malloc(10);
    free(block);
    int file = open(count > 1 ? "/proc/self/smaps" : "/proc/self/smaps_rollup", O_RDONLY);
    ssize_t bytes = read(file, text, sizeof text - 1);
    if (bytes <= 0) return 2;
    if (count > 1) {
        for (; bytes > 0; bytes = read(file, text, sizeof text))
            if (write(1, text, bytes) < 0) return 2;
        return 0;
    }
    print("Rss:");
    print("Anonymous:");
    return 0;
}
