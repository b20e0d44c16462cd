/* THREADS threads at once, ROUNDS times one after another: each allocates blocks that the next one frees. */
#include <pthread.h>
#include <stdlib.h>

enum { BLOCKS = 5000 };
static void *handed[64][BLOCKS];

static void *work(void *number) {
    size_t n = (size_t)number;
    for (size_t i = 0; i < BLOCKS; i++) {
        free(handed[n][i]);
        handed[n][i] = malloc(1000 + n);
    }
    return NULL;
}

int main(int count, char **words) {
    size_t threads = count > 1 ? strtoul(words[1], NULL, 10) : 4;
    size_t rounds = count > 2 ? strtoul(words[2], NULL, 10) : 3;
    for (size_t round = 0; round < rounds; round++) {
        pthread_t running[64];
        for (size_t i = 0; i < threads; i++)
            if (pthread_create(&running[i], NULL, work, (void *)i)) return 1;
        for (size_t i = 0; i < threads; i++) pthread_join(running[i], NULL);
    }
    return 0;
}
