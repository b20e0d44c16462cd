/* Allocations before main, in libraries that are loaded and unloaded, in destructors of ending threads, and
 * after exit.
 *
 *     cc -O1 -pthread crates/c/tests/life.c -o life
 *     cc -O1 -shared -fPIC -DPLUGIN crates/c/tests/life.c -o plugin.so
 *     LD_PRELOAD=target/release/libslablab.so ./life plugins ./plugin.so 200
 *     ./life itself target/release/libslablab.so 20       opens and closes the library, which is not
 *                                                         preloaded
 *     LD_PRELOAD=target/release/libslablab.so ./life threads 2000 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                 \
    do {                                                            \
        if (!(what)) {                                              \
            fprintf(stderr, "life.c:%d: %s\n", __LINE__, #what);    \
            _exit(1);                                               \
        }                                                           \
    } while (0)

#define COUNT 500

static char *mine[COUNT];

static size_t bytes_of(int i) { return (size_t)i * i % 5000 + 1; }

static void take(void) {
    for (int i = 0; i < COUNT; i++) {
        mine[i] = malloc(bytes_of(i));
        HOLDS(mine[i] != NULL);
        memset(mine[i], i, bytes_of(i));
    }
}

static void give(void) {
    for (int i = 0; i < COUNT; i++) {
        HOLDS(mine[i][0] == (char)i && mine[i][bytes_of(i) - 1] == (char)i);
        free(mine[i]);
    }
}

/* In the program, and in each plugin. */
__attribute__((constructor)) static void before(void) { take(); }
__attribute__((destructor)) static void after(void) { give(); }

#ifdef PLUGIN

static __thread char *per_thread;

/* A block that the plugin returns outlives the plugin. */
char *plugin_gift(int n) {
    if (per_thread == NULL) per_thread = malloc(64);
    memset(per_thread, n, 64);
    char *gift = strndup(per_thread, 64);
    free(per_thread);
    per_thread = NULL;
    return gift;
}

#else

static void *in_a_thread(void *gift) { return ((char *(*)(int))gift)('y'); }

static void plugins(const char *path, int times) {
    for (int i = 0; i < times; i++) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
        HOLDS(plugin != NULL);
        void *gift = dlsym(plugin, "plugin_gift");
        HOLDS(gift != NULL);
        char *first = ((char *(*)(int))gift)('x');
        pthread_t thread;
        void *second;
        HOLDS(pthread_create(&thread, NULL, in_a_thread, gift) == 0 && pthread_join(thread, &second) == 0);
        HOLDS(dlclose(plugin) == 0);
        HOLDS(first[63] == 'x' && ((char *)second)[63] == 'y');
        free(first);
        free(second);
    }
}

static void *(*their_malloc)(size_t);
static void (*their_free)(void *);
static pthread_barrier_t barrier;

/* Still runs when the library was closed: the library's function for a thread's end must still be mapped. */
static void *uses_theirs(void *unused) {
    char *object = their_malloc(100);
    HOLDS(object != NULL);
    their_free(object);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void itself(const char *path, int times) {
    pthread_barrier_init(&barrier, NULL, 2);
    char *kept = NULL;
    for (int i = 0; i < times; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) fprintf(stderr, "%s\n", dlerror());
        HOLDS(library != NULL);
        their_malloc = (void *(*)(size_t))dlsym(library, "malloc");
        their_free = (void (*)(void *))dlsym(library, "free");
        HOLDS(their_malloc != NULL && their_free != NULL && (void *)their_malloc != (void *)malloc);
        /* A block from before the library was closed and opened again can be freed. */
        if (kept != NULL) {
            HOLDS(kept[99] == 'k');
            their_free(kept);
        }
        kept = their_malloc(100);
        memset(kept, 'k', 100);
        pthread_t thread;
        HOLDS(pthread_create(&thread, NULL, uses_theirs, NULL) == 0);
        pthread_barrier_wait(&barrier);
        HOLDS(dlclose(library) == 0);
        pthread_barrier_wait(&barrier);
        HOLDS(pthread_join(thread, NULL) == 0);
        pid_t child = fork();
        if (child == 0) _exit(0);
        int status;
        HOLDS(waitpid(child, &status, 0) == child && status == 0);
        HOLDS(kept[99] == 'k');
    }
}

static pthread_key_t key;

/* Runs after the library's own, three times for each thread: allocates, frees what was allocated before, and
   asks again. */
static void at_thread_end(void *round) {
    take();
    give();
    char *object = malloc(3000);
    HOLDS(object != NULL);
    free(malloc(40000));
    free(object);
    if ((uintptr_t)round < 3) pthread_setspecific(key, (void *)((uintptr_t)round + 1));
}

static void *ends(void *unused) {
    free(malloc(10));
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void threads(int count) {
    give();
    HOLDS(pthread_key_create(&key, at_thread_end) == 0);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        HOLDS(pthread_create(&thread, NULL, ends, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    take();
}

static void after_exit(void) {
    give();
    take();
}

int main(int count, char **arguments) {
    HOLDS(mine[7][0] == 7);
    atexit(after_exit);
    if (count == 4 && strcmp(arguments[1], "plugins") == 0)
        plugins(arguments[2], atoi(arguments[3]));
    else if (count == 4 && strcmp(arguments[1], "itself") == 0)
        itself(arguments[2], atoi(arguments[3]));
    else if (count == 3 && strcmp(arguments[1], "threads") == 0)
        threads(atoi(arguments[2]));
    else
        return 2;
    puts("life.c: all holds");
    return 0;
}

#endif
