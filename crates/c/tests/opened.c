/* The library opened at run time, used, and closed, while threads come and go: what the kernel and thread ends remember of it
   must still be there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void *use(void *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void *(*take)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    void (*give)(void *) = (void (*)(void *))dlsym(library, "free");
    for (int i = 0; i < 1000; i++)
        give(take(100));
    dlclose(library);
    for (int i = 0; i < 100; i++)
        sched_yield();
    return 0;
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    use(arguments[1]);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], 0, use, arguments[1]);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], 0);
    }
    puts("all holds");
    return 0;
}
