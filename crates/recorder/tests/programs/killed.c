/* Allocates 10,000 blocks of 4001 bytes, and kills itself. */
#include <signal.h>
#include <stdlib.h>

int main(void) {
    for (int i = 0; i < 10000; i++) {
        void *volatile block = malloc(4001);
        (void)block;
    }
    raise(SIGKILL);
    return 0;
}
