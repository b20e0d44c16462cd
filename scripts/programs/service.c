/* A service over its day, in a minute: how much memory does it hold, beside what is live? Two threads serve the same
 * requests for every allocator, in steps that begin at the same time under each.
 *
 *     cc -O2 -pthread scripts/programs/service.c -o service
 *     LD_PRELOAD=target/dist/libslablab.so ./service 60             # seconds
 *
 * A request takes 8 to 24 blocks that it frees at its end, and a buffer that grows by realloc. One in four leaves
 * an entry in a cache, one in 64 a session, one in 512 a large buffer. Phases, in shares of the time:
 *
 *     0.00 to 0.30  the load rises
 *     0.30 to 0.60  three times the load, other sizes
 *     0.60          nine of ten entries of the cache are flushed, and all sessions end
 *     0.60 to 0.75  nearly idle: a request in each step
 *     0.75 to 1.00  work again, other sizes
 *
 * Prints a line for each of 20 parts: MB live (asked for), MB resident; then CPU seconds, page faults, the largest
 * resident set and the mean of resident over live. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, ENTRIES = 1 << 19, SESSIONS = 1 << 14, BUFFERS = 64, STEPS = 600, PARTS = 20 };
/* Requests of a thread in a step at full load. */
enum { LOAD = 600 };

struct kept {
    char *at;
    uint32_t bytes;
};

struct server {
    uint64_t random;
    struct kept entries[ENTRIES / THREADS], sessions[SESSIONS / THREADS], buffers[BUFFERS / THREADS];
    int64_t live;
};

static struct server servers[THREADS];
static double seconds;
static struct timespec began;
static pthread_barrier_t part_ends;

static uint64_t drawn(struct server *server) {
    uint64_t x = server->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return server->random = x;
}

/* Small sizes are likelier: each doubling is as likely as the next one. */
static uint32_t between(struct server *server, unsigned low_shift, unsigned high_shift) {
    uint64_t random = drawn(server);
    uint32_t low = 1u << (low_shift + random % (high_shift - low_shift));
    return low + (random >> 32) % low;
}

static char *taken(uint32_t bytes) {
    char *at = malloc(bytes);
    if (at == NULL) exit(2);
    memset(at, 1, bytes);
    return at;
}

static void put(struct server *server, struct kept *place, uint32_t bytes) {
    free(place->at);
    server->live += (int64_t)bytes - place->bytes;
    *place = (struct kept){bytes == 0 ? NULL : taken(bytes), bytes};
}

/* `far`: the sizes of another time of the day. */
static void request(struct server *server, unsigned far) {
    char *temporary[24];
    unsigned count = 8 + drawn(server) % 17;
    for (unsigned at = 0; at < count; at++) temporary[at] = taken(between(server, 4, 11 + far));
    char *buffer = taken(200);
    for (uint32_t bytes = 400, most = between(server, 9, 15); bytes < most; bytes *= 2) {
        buffer = realloc(buffer, bytes);
        if (buffer == NULL) exit(2);
        memset(buffer, 2, bytes);
    }
    uint64_t random = drawn(server);
    if (random % 4 == 0) put(server, &server->entries[(random >> 8) % (ENTRIES / THREADS)], between(server, 6, 11 + far));
    if (random % 64 == 1) put(server, &server->sessions[(random >> 8) % (SESSIONS / THREADS)], between(server, 10, 13));
    if (random % 512 == 2) put(server, &server->buffers[(random >> 8) % (BUFFERS / THREADS)], between(server, 17, 21));
    for (unsigned at = 0; at < count; at++) free(temporary[at]);
    free(buffer);
}

static void flush(struct server *server) {
    for (int at = 0; at < ENTRIES / THREADS; at++) {
        if (drawn(server) % 10 != 0) put(server, &server->entries[at], 0);
    }
    for (int at = 0; at < SESSIONS / THREADS; at++) put(server, &server->sessions[at], 0);
    for (int at = 0; at < BUFFERS / THREADS; at++) put(server, &server->buffers[at], 0);
}

/* Waits until a step is due. */
static void until(int step) {
    double due = seconds * step / STEPS;
    struct timespec time = {began.tv_sec + (time_t)due, began.tv_nsec + (long)((due - (time_t)due) * 1e9)};
    if (time.tv_nsec >= 1000000000) time.tv_sec++, time.tv_nsec -= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void *serve(void *argument) {
    struct server *server = argument;
    for (int step = 0; step < STEPS; step++) {
        until(step);
        double share = (double)step / STEPS;
        int requests = share < 0.3 ? LOAD * share / 0.3 : share < 0.6 ? 3 * LOAD : share < 0.75 ? 1 : LOAD;
        if (step == STEPS * 6 / 10) flush(server);
        for (int at = 0; at < requests; at++) request(server, share < 0.3 ? 0 : share < 0.75 ? 1 : 2);
        if ((step + 1) % (STEPS / PARTS) == 0) {
            pthread_barrier_wait(&part_ends);
            pthread_barrier_wait(&part_ends);
        }
    }
    return NULL;
}

static long resident_kb(void) {
    char text[8192];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got <= 0) exit(3);
    close(file);
    text[got] = 0;
    return atol(strstr(text, "\nRss:") + 5);
}

int main(int count, char **arguments) {
    seconds = count > 1 ? atof(arguments[1]) : 0;
    if (!(seconds >= 1)) {
        fprintf(stderr, "usage: service SECONDS, at least 1\n");
        return 2;
    }
    pthread_t running[THREADS];
    pthread_barrier_init(&part_ends, NULL, THREADS + 1);
    /* The tables are the program's own, and resident from the start. */
    memset(servers, 0, sizeof servers);
    for (int at = 0; at < THREADS; at++) servers[at].random = 88172645463325252 + 7919 * at;
    long base = resident_kb();
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int at = 0; at < THREADS; at++) {
        if (pthread_create(&running[at], NULL, serve, &servers[at]) != 0) return 2;
    }
    double over = 0;
    long most = 0;
    printf("{\"parts\":[");
    for (int part = 1; part <= PARTS; part++) {
        pthread_barrier_wait(&part_ends);
        int64_t live = 0;
        for (int at = 0; at < THREADS; at++) live += servers[at].live;
        long resident = resident_kb() - base;
        over += resident / (live / 1024.0) / PARTS;
        if (resident > most) most = resident;
        printf("%s{\"at\":%.2f,\"live_mb\":%.1f,\"resident_mb\":%.1f}", part > 1 ? "," : "", (double)part / PARTS,
               live / 1048576.0, resident / 1024.0);
        pthread_barrier_wait(&part_ends);
    }
    for (int at = 0; at < THREADS; at++) pthread_join(running[at], NULL);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("],\"cpu_s\":%.2f,\"faults\":%ld,\"most_mb\":%.1f,\"over\":%.3f}\n", cpu, usage.ru_minflt, most / 1024.0, over);
    return 0;
}
