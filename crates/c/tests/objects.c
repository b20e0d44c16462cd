/* Object caches in a C program. Without an argument the program uses them correctly; an argument names a
 * fault to commit. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <slablab.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            printf("line %d: %s, errno %d\n", __LINE__, #what, errno); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

/* Whether the engine is wrapped: objects are then further apart. */
static int wrapped(void)
{
    const char *engine = getenv("SLABLAB_ENGINE");

    return engine && strchr(engine, ',');
}

static void creation(void)
{
    struct kmem_cache *cache;
    struct kmem_cache_stats stats;

    errno = 0;
    CHECK(!kmem_cache_create("none", 0, 0, 0, NULL) && errno == EINVAL);
    errno = 0;
    CHECK(!kmem_cache_create("odd", 64, 24, 0, NULL) && errno == EINVAL);
    errno = 0;
    CHECK(!kmem_cache_create("huge", (size_t)1 << 40, 0, 0, NULL) && errno == EINVAL);
    errno = 0;
    CHECK(!kmem_cache_create(NULL, 64, 0, 0, NULL) && errno == EINVAL);
    errno = 0;
    CHECK(!kmem_cache_create("flags", 64, 0, 2, NULL) && errno == EINVAL);
    errno = 0;
    CHECK(!kmem_cache_create("flags", 64, 0, KMEM_ZERO, NULL) && errno == EINVAL);
    struct kmem_cache_args args = {.engine = "slurb"};
    errno = 0;
    CHECK(!kmem_cache_create_args("engine", 64, &args) && errno == EINVAL);

    for (size_t align = 1; align <= 65536; align *= 2) {
        void *objects[40];
        cache = kmem_cache_create("aligned", 100, align, 0, NULL);
        CHECK(cache && kmem_cache_size(cache) == 100 && !strcmp(kmem_cache_name(cache), "aligned"));
        for (int i = 0; i < 40; i++) {
            objects[i] = kmem_cache_alloc(cache, 0);
            CHECK(objects[i] && (uintptr_t)objects[i] % align == 0);
            memset(objects[i], i, 100);
        }
        for (int i = 0; i < 40; i++)
            kmem_cache_free(cache, objects[i]);
        CHECK(kmem_cache_destroy(cache) == 0);
    }
    cache = kmem_cache_create("lines", 200, 0, KMEM_HWCACHE_ALIGN, NULL);
    kmem_cache_get_stats(cache, &stats);
    CHECK(stats.object_bytes == 200 && stats.slabs == 0 && stats.limit == 0);
    CHECK(wrapped() ? stats.spaced_bytes >= 256 : stats.spaced_bytes == 256);
    CHECK(kmem_cache_destroy(cache) == 0);
    CHECK(kmem_cache_destroy(NULL) == 0);
}

static void bytes(void)
{
    struct kmem_cache *cache = kmem_cache_create("bytes", 48, 0, 0, NULL);
    unsigned char zeros[48] = {0};
    void *all[1000];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            all[i] = kmem_cache_alloc(cache, KMEM_ZERO);
            CHECK(all[i] && !memcmp(all[i], zeros, 48));
            memset(all[i], 0xa5, 48);
        }
        kmem_cache_free_bulk(cache, 1000, all);
        CHECK(kmem_cache_alloc_bulk(cache, KMEM_ZERO, 1000, all) == 1000);
        for (int i = 0; i < 1000; i++) {
            CHECK(!memcmp(all[i], zeros, 48));
            memset(all[i], i, 48);
        }
        for (int i = 0; i < 1000; i++)
            CHECK(((unsigned char *)all[i])[47] == (unsigned char)i);
        for (int i = 0; i < 1000; i++)
            kmem_cache_free(cache, all[i]);
    }
    kmem_cache_free(cache, NULL);
    errno = 0;
    CHECK(!kmem_cache_alloc(cache, 7) && errno == EINVAL);
    errno = 0;
    CHECK(!kmem_cache_alloc(cache, KMEM_CONSISTENCY_CHECKS) && errno == EINVAL);
    CHECK(kmem_cache_shrink(cache) == 0);
    CHECK(kmem_cache_destroy(cache) == 0);
}

static int made;
static int ended;
static struct kmem_cache *inner;

static void construct(void *object)
{
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    memset(object, 0x5a, 40);
}

/* An object that owns memory and an object of another cache, which its destructor frees. */
struct owner {
    char *memory;
    void *of_inner;
    long users;
};

static void own(void *object)
{
    struct owner *owner = object;

    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    owner->memory = malloc(100);
    owner->of_inner = kmem_cache_alloc(inner, 0);
    owner->users = 0;
    CHECK(owner->memory && owner->of_inner);
}

static void disown(void *object)
{
    struct owner *owner = object;

    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    free(owner->memory);
    kmem_cache_free(inner, owner->of_inner);
}

static void *own_and_free(void *cache)
{
    for (int i = 0; i < 3000; i++) {
        struct owner *some[5];

        for (int k = 0; k < 5; k++) {
            some[k] = kmem_cache_alloc(cache, 0);
            CHECK(some[k] && some[k]->memory && some[k]->of_inner && some[k]->users >= 0);
            some[k]->users++;
            memset(some[k]->memory, i, 100);
        }
        for (int k = 0; k < 5; k++)
            kmem_cache_free(cache, some[k]);
    }
    return NULL;
}

/* What a constructor made is destroyed once, when the slab goes. */
static void destructor(void)
{
    struct kmem_cache_args args = {.dtor = disown};
    pthread_t threads[3];
    void *all[500];

    errno = 0;
    CHECK(!kmem_cache_create_args("no ctor", sizeof(struct owner), &args) && errno == EINVAL);
    args.ctor = own;
    made = 0;
    inner = kmem_cache_create("inner", 64, 0, 0, NULL);
    struct kmem_cache *cache = kmem_cache_create_args("owner", sizeof(struct owner), &args);
    CHECK(inner && cache);
    for (int round = 0; round < 3; round++) {
        CHECK(kmem_cache_alloc_bulk(cache, 0, 500, all) == 500);
        int before = ended;
        CHECK(made - ended >= 500);
        kmem_cache_free_bulk(cache, 500, all);
        kmem_cache_shrink(cache);
        CHECK(ended > before);
    }
    struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(cache, 0, 40);
    CHECK(sheaf);
    kmem_cache_free(cache, kmem_cache_alloc_from_sheaf(cache, 0, sheaf));
    kmem_cache_return_sheaf(cache, 0, sheaf);
    CHECK(made > ended);
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_create(&threads[i], NULL, own_and_free, cache));
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(kmem_cache_destroy(cache) == 0);
    CHECK(made == ended && made > 500);
    /* What they held is free: its cache has no live object. */
    CHECK(kmem_cache_destroy(inner) == 0);
    made = 0;
}

static void constructor(void)
{
    struct kmem_cache *cache = kmem_cache_create("made", 40, 0, 0, construct);
    unsigned char fresh[40];
    void *all[200];

    memset(fresh, 0x5a, 40);
    for (int i = 0; i < 200; i++) {
        all[i] = kmem_cache_alloc(cache, 0);
        CHECK(all[i] && !memcmp(all[i], fresh, 40));
    }
    CHECK(made == 200);
    /* The constructed contents survive. Every other object stays live, so the slabs stay too. */
    for (int i = 0; i < 200; i += 2) {
        memset(all[i], 0x77, 20);
        kmem_cache_free(cache, all[i]);
    }
    memset(fresh, 0x77, 20);
    int before = made, again = 0;
    for (int i = 0; i < 200; i += 2) {
        all[i] = kmem_cache_alloc(cache, 0);
        CHECK(all[i]);
        again += !memcmp(all[i], fresh, 40);
    }
    CHECK(again + made - before == 100 && (again >= 40 || wrapped()));
    kmem_cache_free_bulk(cache, 200, all);
    errno = 0;
    CHECK(!kmem_cache_alloc(cache, KMEM_ZERO) && errno == EINVAL);
    CHECK(kmem_cache_destroy(cache) == 0);
}

struct spares {
    struct kmem_cache *cache;
    void *kept[10];
    size_t count, asked;
};

static size_t let_go(size_t wanted, void *argument)
{
    struct spares *spares = argument;
    size_t given = 0;

    spares->asked += wanted;
    while (given < wanted && spares->count > 0) {
        kmem_cache_free(spares->cache, spares->kept[--spares->count]);
        given++;
    }
    return given;
}

static void limits(void)
{
    struct kmem_cache_args args = {.max_objects = 10};
    struct kmem_cache *cache = kmem_cache_create_args("limited", 64, &args);
    struct kmem_cache_stats stats;
    struct spares spares = {.cache = cache};
    void *more[3];

    while (spares.count < 10) {
        spares.kept[spares.count] = kmem_cache_alloc(cache, 0);
        CHECK(spares.kept[spares.count++]);
    }
    errno = 0;
    CHECK(!kmem_cache_alloc(cache, 0) && errno == EDQUOT);
    errno = 0;
    CHECK(kmem_cache_alloc_bulk(cache, 0, 3, more) == 0 && errno == EDQUOT);
    kmem_cache_get_stats(cache, &stats);
    CHECK(stats.active == 10 && stats.limit == 10);

    struct kmem_shrinker *shrinker = kmem_register_shrinker(cache, let_go, &spares);
    CHECK(kmem_cache_alloc_bulk(cache, 0, 3, more) == 3 && spares.asked == 3 && spares.count == 7);
    CHECK(kmem_shrink_all() < (size_t)1 << 40 && spares.count == 0);
    kmem_unregister_shrinker(shrinker);
    kmem_cache_free_bulk(cache, 3, more);
    CHECK(kmem_cache_destroy(cache) == 0);

    /* All or none, also for more than one batch. */
    void *too_many[60];
    args.max_objects = 50;
    cache = kmem_cache_create_args("all or none", 64, &args);
    errno = 0;
    CHECK(kmem_cache_alloc_bulk(cache, 0, 60, too_many) == 0 && errno == EDQUOT);
    errno = 0;
    CHECK(!kmem_cache_prefill_sheaf(cache, 0, 60) && errno == EDQUOT);
    CHECK(kmem_cache_alloc_bulk(cache, 0, 50, too_many) == 50);
    kmem_cache_free_bulk(cache, 50, too_many);
    CHECK(kmem_cache_destroy(cache) == 0);

    struct kmem_cache_args by_bytes = {.max_bytes = 1000};
    cache = kmem_cache_create_args("by bytes", 100, &by_bytes);
    kmem_cache_get_stats(cache, &stats);
    CHECK(stats.limit == 1000 / stats.spaced_bytes);
    CHECK(kmem_cache_destroy(cache) == 0);
}

static void sheaves(void)
{
    struct kmem_cache *cache = kmem_cache_create("ahead", 40, 0, 0, construct);
    int before = made;
    struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(cache, 0, 100);
    void *all[100];

    CHECK(sheaf && kmem_cache_sheaf_size(sheaf) == 100 && made == before + 100);
    for (int i = 0; i < 60; i++)
        CHECK((all[i] = kmem_cache_alloc_from_sheaf(cache, 0, sheaf)));
    CHECK(kmem_cache_sheaf_size(sheaf) == 40 && made == before + 100);
    kmem_cache_return_sheaf(cache, 0, sheaf);
    kmem_cache_free_bulk(cache, 60, all);
    sheaf = kmem_cache_prefill_sheaf(cache, 0, 1);
    CHECK((all[0] = kmem_cache_alloc_from_sheaf(cache, 0, sheaf)));
    CHECK(!kmem_cache_alloc_from_sheaf(cache, 0, sheaf));
    kmem_cache_return_sheaf(cache, 0, sheaf);
    kmem_cache_free(cache, all[0]);
    CHECK(kmem_cache_destroy(cache) == 0);
}

static void remaining(void)
{
    struct kmem_cache *cache = kmem_cache_create("remaining", 72, 0, 0, NULL);
    void *all[3];

    CHECK(kmem_cache_alloc_bulk(cache, 0, 3, all) == 3);
    errno = 0;
    CHECK(kmem_cache_destroy(cache) == -1 && errno == EBUSY);
    /* The cache can still be used. */
    void *fourth = kmem_cache_alloc(cache, 0);
    CHECK(fourth);
    kmem_cache_free(cache, fourth);
    kmem_cache_free_bulk(cache, 3, all);
    CHECK(kmem_cache_destroy(cache) == 0);
}

#define SHARED 64
static struct kmem_cache *shared;
static void *_Atomic mailbox[SHARED];

static void *churn(void *argument)
{
    unsigned seed = (uintptr_t)argument;

    for (int i = 0; i < 50000; i++) {
        uintptr_t *object = kmem_cache_alloc(shared, 0);
        CHECK(object);
        for (int at = 0; at < 8; at++)
            object[at] = (uintptr_t)object;
        object = __atomic_exchange_n((void **)&mailbox[rand_r(&seed) % SHARED], object, __ATOMIC_ACQ_REL);
        if (object) {
            for (int at = 0; at < 8; at++)
                CHECK(object[at] == (uintptr_t)object);
            kmem_cache_free(shared, object);
        }
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];

    shared = kmem_cache_create("shared", 64, 0, 0, NULL);
    for (int round = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(pthread_create(&all[i], NULL, churn, (void *)(i + 1)) == 0);
        /* A child has the objects of its parent, and none of the parent's other threads. */
        for (int i = 0; i < 20; i++) {
            pid_t child = fork();
            int status;
            if (child == 0) {
                for (int n = 0; n < 100; n++)
                    kmem_cache_free(shared, kmem_cache_alloc(shared, 0));
                _exit(0);
            }
            CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        }
        for (int i = 0; i < 4; i++)
            CHECK(pthread_join(all[i], NULL) == 0);
    }
    for (int i = 0; i < SHARED; i++)
        kmem_cache_free(shared, mailbox[i]);
    CHECK(kmem_cache_destroy(shared) == 0);
}

/* A child may destroy a cache while its parent's other threads do upkeep of it. */
static volatile int trims;

static void *trimming(void *argument)
{
    while (trims)
        malloc_trim(0);
    return argument;
}

static void children_that_destroy(void)
{
    struct kmem_cache *cache = kmem_cache_create("destroyed", 64, 0, 0, NULL);
    pthread_t threads[2];

    trims = 1;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, trimming, NULL) == 0);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            alarm(20);
            kmem_cache_free(cache, kmem_cache_alloc(cache, 0));
            _exit(kmem_cache_destroy(cache) == 0 ? 0 : 1);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    trims = 0;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(kmem_cache_destroy(cache) == 0);
}

/* A child may register a shrinker, even if another thread of its parent registered or unregistered one at the
 * fork. */
static volatile int registers;

static size_t nothing(size_t wanted, void *argument)
{
    (void)wanted, (void)argument;
    return 0;
}

static void *registering(void *argument)
{
    while (registers)
        kmem_unregister_shrinker(kmem_register_shrinker(NULL, nothing, NULL));
    return argument;
}

static void children_that_register(void)
{
    pthread_t threads[2];

    registers = 1;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, registering, NULL) == 0);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            alarm(20);
            kmem_unregister_shrinker(kmem_register_shrinker(NULL, nothing, NULL));
            kmem_shrink_all();
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    registers = 0;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Destroying a cache frees the objects in the slots of threads that still run. */
static pthread_barrier_t both;

static void *idle(void *argument)
{
    void *object = kmem_cache_alloc(argument, 0);

    kmem_cache_free(argument, object);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return NULL;
}

static void live_slots(void)
{
    struct kmem_cache *cache = kmem_cache_create("live", 1000, 0, 0, NULL);
    pthread_t thread;

    pthread_barrier_init(&both, NULL, 2);
    CHECK(pthread_create(&thread, NULL, idle, cache) == 0);
    pthread_barrier_wait(&both);
    CHECK(kmem_cache_destroy(cache) == 0);
    pthread_barrier_wait(&both);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void many(void)
{
    struct kmem_cache *all[400];
    char name[20];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 400; i++) {
            snprintf(name, sizeof name, "many-%d", i);
            all[i] = kmem_cache_create(name, 16 + i, 0, 0, NULL);
            CHECK(all[i]);
            kmem_cache_free(all[i], kmem_cache_alloc(all[i], 0));
        }
        for (int i = 0; i < 400; i++)
            CHECK(kmem_cache_destroy(all[i]) == 0);
    }
}

/* Heaps beside malloc, with debugging around the engine and without. */
static void heaps(void)
{
    static const char *const engines[] = {"slub@7.1", "slub@6.1,debug=FZPU", "slqb,quarantine=8K",
                                          "slab@6.1,harden=random"};

    errno = 0;
    CHECK(!slab_heap_create("slurb") && errno == EINVAL);
    errno = 0;
    CHECK(!slab_heap_create("slob") && errno == EINVAL);
    errno = 0;
    CHECK(!slab_heap_create(NULL) && errno == EINVAL);
    for (int i = 0; i < 4; i++) {
        struct slab_heap *heap = slab_heap_create(engines[i]);
        char *blocks[200];
        CHECK(heap);
        for (int n = 0; n < 200; n++) {
            size_t bytes = 1 + n * n;
            blocks[n] = n % 2 ? slab_heap_malloc(heap, bytes) : slab_heap_calloc(heap, n + 1, n + 1);
            CHECK(blocks[n] && slab_heap_usable_size(heap, blocks[n]) >= bytes);
            memset(blocks[n], n, bytes);
        }
        for (int n = 0; n < 200; n++) {
            blocks[n] = slab_heap_realloc(heap, blocks[n], 40000 - n * n);
            CHECK(blocks[n] && blocks[n][0] == (char)n);
        }
        for (int n = 0; n < 200; n++)
            slab_heap_free(heap, blocks[n]);
        char *aligned = slab_heap_aligned_alloc(heap, 4096, 100);
        CHECK(aligned && (uintptr_t)aligned % 4096 == 0);
        CHECK(!slab_heap_realloc(heap, aligned, 0));
        slab_heap_free(heap, slab_heap_realloc(heap, NULL, 100));
        slab_heap_free(heap, NULL);
        CHECK(slab_heap_usable_size(heap, NULL) == 0);
        errno = 0;
        CHECK(!slab_heap_aligned_alloc(heap, 24, 100) && errno == EINVAL);
        errno = 0;
        CHECK(!slab_heap_malloc(heap, SIZE_MAX) && errno == ENOMEM);
        errno = 0;
        CHECK(!slab_heap_calloc(heap, SIZE_MAX / 2, 3) && errno == ENOMEM);
    }
}

/* A block of a heap: freed twice, freed by malloc, written behind. */
static void heap_fault(const char *name)
{
    struct slab_heap *heap = slab_heap_create(strcmp(name, "behind") ? "slab@6.1" : "slab@6.1,debug=FZU");
    char *block = slab_heap_malloc(heap, 60);

    printf("%p %s\n", (void *)block, name);
    fflush(stdout);
    if (!strcmp(name, "twice")) {
        slab_heap_free(heap, block);
        slab_heap_free(heap, block);
    } else if (!strcmp(name, "by malloc")) {
        free(block);
    } else if (!strcmp(name, "of malloc")) {
        slab_heap_free(heap, malloc(60));
    } else if (!strcmp(name, "behind")) {
        block[64] = 1;
        slab_heap_free(heap, block);
        exit(3);
    }
}

/* Faults that only the debugging flags of a cache find. A fault that is repaired does not end the program. */
static void watched(const char *name)
{
    unsigned flags = strcmp(name, "poison") ? KMEM_RED_ZONE | KMEM_STORE_USER : KMEM_POISON;
    struct kmem_cache *cache = kmem_cache_create("watched", 60, 0, flags | KMEM_CONSISTENCY_CHECKS, NULL);
    char *stays = kmem_cache_alloc(cache, 0), *object = kmem_cache_alloc(cache, 0);

    CHECK(stays && object);
    printf("%p\n", (void *)object);
    fflush(stdout);
    if (!strcmp(name, "behind"))
        object[60] = 'A';
    else if (!strcmp(name, "before"))
        object[-1] = 'A';
    kmem_cache_free(cache, object);
    if (!strcmp(name, "poison")) {
        object[7] = 'A';
        for (int i = 0; i < 200; i++)
            CHECK(kmem_cache_alloc(cache, 0));
    } else if (!strcmp(name, "twice")) {
        kmem_cache_free(cache, object);
    }
    exit(0);
}

static void fault(const char *name)
{
    struct kmem_cache *plain = kmem_cache_create("plain", 64, 0, 0, NULL);
    struct kmem_cache *other = kmem_cache_create("other", 64, 0, 0, NULL);
    struct kmem_cache *kept = kmem_cache_create("kept", 64, 0, 0, construct);
    char *object = kmem_cache_alloc(plain, 0), *stays = kmem_cache_alloc(plain, 0);
    char *whole;
    static long elsewhere[4];
    void *twice[2] = {object, object};

    if (!strncmp(name, "watched: ", 9))
        watched(name + 9);
    if (!strncmp(name, "heap: ", 6))
        return heap_fault(name + 6);
    whole = kmem_cache_alloc(kept, 0);
    printf("%p %p\n", (void *)object, (void *)stays);
    fflush(stdout);
    if (!strcmp(name, "double free")) {
        kmem_cache_free(plain, object);
        kmem_cache_free(plain, object);
    } else if (!strcmp(name, "double free, kept")) {
        kmem_cache_free(kept, whole);
        kmem_cache_free(kept, whole);
    } else if (!strcmp(name, "double free, bulk")) {
        kmem_cache_free_bulk(plain, 2, twice);
    } else if (!strcmp(name, "of malloc")) {
        kmem_cache_free(plain, malloc(100));
    } else if (!strcmp(name, "to malloc")) {
        free(object);
    } else if (!strcmp(name, "of another cache")) {
        kmem_cache_free(other, object);
    } else if (!strcmp(name, "foreign")) {
        kmem_cache_free(plain, elsewhere);
    } else if (!strcmp(name, "inside")) {
        kmem_cache_free(plain, object + 8);
    } else if (!strcmp(name, "not aligned")) {
        kmem_cache_free(plain, object + 3);
    } else if (!strcmp(name, "never allocated")) {
        struct kmem_cache_stats stats;
        char *never = object;
        kmem_cache_get_stats(plain, &stats);
        do
            never += (uintptr_t)object % stats.slab_bytes > stats.slab_bytes / 2 ? -stats.spaced_bytes
                                                                                 : stats.spaced_bytes;
        while (never == stays);
        kmem_cache_free(plain, never);
    } else if (!strcmp(name, "empty slab")) {
        kmem_cache_free(plain, stays);
        kmem_cache_free(plain, object);
        kmem_cache_shrink(plain);
        kmem_cache_free(plain, object);
    } else if (!strcmp(name, "behind its end")) {
        memset(whole, 1, 72);
        kmem_cache_free(kept, whole);
    } else if (!strcmp(name, "behind a free object")) {
        struct kmem_cache_args args = {.ctor = construct, .dtor = construct};
        struct kmem_cache *ended = kmem_cache_create_args("ended", 64, &args);
        whole = kmem_cache_alloc(ended, 0);
        kmem_cache_free(ended, whole);
        memset(whole, 1, 72);
        kmem_cache_destroy(ended);
    } else if (!strncmp(name, "damaged list", 12)) {
        /* A write into a freed object hides its second free from the library: the engine finds it. */
        kmem_cache_free(plain, stays);
        kmem_cache_free(plain, object);
        ((volatile long *)object)[1] = 0;
        kmem_cache_free(plain, object);
        if (!strcmp(name, "damaged list, destroy"))
            kmem_cache_destroy(plain);
        kmem_cache_shrink(plain);
    } else if (!strcmp(name, "remaining")) {
        kmem_cache_destroy(plain);
        abort();
    }
}

int main(int count, char **arguments)
{
    if (count > 1) {
        fault(arguments[1]);
        return 0;
    }
    creation();
    bytes();
    constructor();
    destructor();
    limits();
    sheaves();
    remaining();
    threads();
    children_that_destroy();
    children_that_register();
    live_slots();
    many();
    heaps();
    puts("all holds");
    return 0;
}
