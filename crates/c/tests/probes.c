/* A profiler by OpenTelemetry's contract: finds the probes of a library by its notes (.note.stapsdt), counts itself
 * in their semaphores in a program's memory, and stops at them by breakpoints, as a kernel does for a profiler.
 *
 *   probes LIBRARY        starts itself with "works" under the library, and profiles it
 *   probes works          allocates known bytes, and frees nine of ten objects of each size
 *
 * The weights of what is sampled must add up to the bytes, size by size; what is sampled and not freed, to the live
 * ones. An address is freed once, and only if it was sampled. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                                                         \
    do {                                                                                                    \
        if (!(what)) {                                                                                      \
            fprintf(stderr, "probes.c:%d: not so: %s\n", __LINE__, #what);                                  \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

/* --- The program ------------------------------------------------------------------------------------------ */

/* Sizes, and how many objects of each: some 128 MB a size. Every tenth stays live. */
static const size_t SIZES[] = {24, 100, 700, 4000, 30000, 100000, 600000000};
enum { KINDS = sizeof SIZES / sizeof *SIZES, LIVE = 10 };

static size_t count_of(int kind) {
    size_t most = (size_t)128 << 20;
    return SIZES[kind] > most ? LIVE : most / SIZES[kind] / LIVE * LIVE;
}

static void swing(int kind) {
    /* So many are there at a time: more than sheaves hold. */
    enum { AT_A_TIME = 1000 };
    static char *objects[AT_A_TIME];
    size_t size = SIZES[kind], count = count_of(kind);
    for (size_t first = 0; first < count; first += AT_A_TIME) {
        size_t some = count - first < AT_A_TIME ? count - first : AT_A_TIME;
        for (size_t at = 0; at < some; at++) {
            objects[at] = kind % 3 == 1 ? calloc(1, size) : malloc(size);
            HOLDS(objects[at] != NULL);
            for (size_t byte = 0; kind % 3 == 1 && byte < size; byte += 50) HOLDS(objects[at][byte] == 0);
            if (size < 1 << 20) memset(objects[at], 7, size);
        }
        for (size_t at = 0; at < some; at++) {
            HOLDS(size > 1 << 20 || (objects[at][0] == 7 && objects[at][size - 1] == 7));
            if (at % LIVE != 0) free(objects[at]);
        }
    }
}

/* What sampled objects must go through as all others do. */
static void others(void) {
    for (int round = 0; round < 20000; round++) {
        char *at = malloc(40);
        strcpy(at, "sampled or not");
        at = realloc(at, 40 + round % 5000);
        HOLDS(strcmp(at, "sampled or not") == 0);
        void *aligned = aligned_alloc(256, 1024);
        HOLDS((uintptr_t)aligned % 256 == 0);
        free(aligned);
        free(at);
    }
}

static void *by_thread(void *argument) {
    swing(2);
    return argument;
}

static int works(void) {
    /* The profiler attaches here. */
    raise(SIGSTOP);
    for (int kind = 0; kind < KINDS; kind++) {
        pthread_t thread;
        if (kind == 2) {
            HOLDS(pthread_create(&thread, NULL, by_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
        } else {
            swing(kind);
        }
    }
    raise(SIGSTOP);
    others();
    return 0;
}

/* --- The profiler ----------------------------------------------------------------------------------------- */

/* A probe of the library: addresses as they are in the file. */
struct probe {
    uint64_t at, semaphore;
    int found;
};

static struct probe probes[2];
static const char *NAMES[2] = {"alloc", "free"};
static const char *ARGUMENTS[2] = {"8@%rdi 8@%rsi 8@%rdx", "8@%rdi"};

/* Reads the notes of the library, as a profiler does. */
static void read_notes(const char *library) {
    int file = open(library, O_RDONLY);
    struct stat status;
    HOLDS(file >= 0 && fstat(file, &status) == 0);
    const char *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    HOLDS(bytes != MAP_FAILED);
    const Elf64_Ehdr *elf = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + elf->e_shoff);
    const char *names = bytes + sections[elf->e_shstrndx].sh_offset;
    for (int at = 0; at < elf->e_shnum; at++) {
        if (strcmp(names + sections[at].sh_name, ".note.stapsdt") != 0) continue;
        HOLDS(sections[at].sh_type == SHT_NOTE);
        for (uint64_t offset = 0; offset < sections[at].sh_size;) {
            const Elf64_Nhdr *note = (const void *)(bytes + sections[at].sh_offset + offset);
            const char *owner = (const char *)(note + 1);
            const char *rest = owner + (note->n_namesz + 3) / 4 * 4;
            HOLDS(note->n_type == 3 && strcmp(owner, "stapsdt") == 0);
            uint64_t words[3];
            memcpy(words, rest, sizeof words);
            const char *provider = rest + sizeof words, *name = provider + strlen(provider) + 1;
            const char *arguments = name + strlen(name) + 1;
            for (int which = 0; which < 2; which++) {
                if (strcmp(provider, "otel_memory") != 0 || strcmp(name, NAMES[which]) != 0) continue;
                HOLDS(words[1] == 0);
                HOLDS(strcmp(arguments, ARGUMENTS[which]) == 0);
                probes[which] = (struct probe){words[0], words[2], probes[which].found + 1};
            }
            offset += sizeof *note + (note->n_namesz + 3) / 4 * 4 + (note->n_descsz + 3) / 4 * 4;
        }
    }
    HOLDS(probes[0].found == 1 && probes[1].found == 1);
}

/* The exit code of a child that may not be traced. */
enum { SKIPPED = 77 };

static pid_t child;
static int memory;

/* How far the library's addresses are from those in the file. */
static uint64_t moved_by(const char *library) {
    char path[64], line[1024], whole[4096];
    HOLDS(realpath(library, whole) != NULL);
    snprintf(path, sizeof path, "/proc/%d/maps", child);
    FILE *maps = fopen(path, "r");
    HOLDS(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, whole) != NULL) {
            fclose(maps);
            return strtoull(line, NULL, 16);
        }
    }
    HOLDS(!"the library is loaded");
    return 0;
}

static uint16_t semaphore(int which, uint64_t moved, int change) {
    uint16_t count = 0;
    HOLDS(pread(memory, &count, sizeof count, moved + probes[which].semaphore) == sizeof count);
    count += change;
    if (change != 0) HOLDS(pwrite(memory, &count, sizeof count, moved + probes[which].semaphore) == sizeof count);
    return count;
}

/* Sampled objects that are live: their addresses, sizes and weights. */
enum { MOST = 1 << 16 };
static struct { uint64_t at, size, weight; } live[MOST];
static uint64_t sampled[KINDS], weights[KINDS], hits, others_size;

static int kind_of(uint64_t size) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (SIZES[kind] == size) return kind;
    }
    return -1;
}

static void on_alloc(uint64_t at, uint64_t size, uint64_t weight) {
    int place = at / 4096 % MOST, kind = kind_of(size);
    HOLDS(size <= weight);
    while (live[place].at != 0) {
        HOLDS(live[place].at != at);
        place = (place + 1) % MOST;
    }
    live[place].at = at, live[place].size = size, live[place].weight = weight;
    if (kind >= 0) sampled[kind]++, weights[kind] += weight;
    else others_size++;
}

static void on_free(uint64_t at) {
    for (int place = at / 4096 % MOST, looked = 0; looked < MOST; looked++, place = (place + 1) % MOST) {
        if (live[place].at == at) {
            live[place].at = 0;
            return;
        }
    }
    HOLDS(!"what is freed was sampled");
}

/* Runs the program until it stops itself or ends; the status that it has then. */
static int go_on(uint64_t moved) {
    pid_t who = child;
    int signal = 0, status;
    for (;;) {
        HOLDS(ptrace(PTRACE_CONT, who, NULL, signal) == 0);
        who = waitpid(-1, &status, __WALL);
        HOLDS(who > 0);
        /* A thread begins or ends. */
        while (who != child && (WIFEXITED(status) || WIFSIGNALED(status))) {
            who = waitpid(-1, &status, __WALL);
            HOLDS(who > 0);
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) return status;
        signal = WSTOPSIG(status);
        if (signal == SIGTRAP && status >> 16 == 0) {
            struct user_regs_struct registers;
            HOLDS(ptrace(PTRACE_GETREGS, who, NULL, &registers) == 0);
            uint64_t at = registers.rip - 1 - moved;
            HOLDS(at == probes[0].at || at == probes[1].at);
            hits++;
            if (at == probes[0].at) on_alloc(registers.rdi, registers.rsi, registers.rdx);
            else on_free(registers.rdi);
            signal = 0;
        } else if (signal == SIGTRAP || (signal == SIGSTOP && who != child)) {
            /* An event of ptrace; a new thread. */
            signal = 0;
        } else if (signal == SIGSTOP) {
            return status;
        }
    }
}

/* By Poisson's law the count of samples deviates by its root; allowed are five times as much. */
static void check(const char *what, uint64_t found, uint64_t all, uint64_t samples) {
    double error = fabs((double)found - all) / all, allowed = 5 / sqrt(samples > 0 ? samples : 1);
    printf("%s: %lu of %lu MB by %lu samples\n", what, found >> 20, all >> 20, samples);
    if (error > allowed) {
        fprintf(stderr, "probes.c: %s: %.1f %% off, allowed %.1f\n", what, 100 * error, 100 * allowed);
        exit(1);
    }
}

static void profile(const char *program, const char *library) {
    read_notes(library);
    child = fork();
    HOLDS(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(SKIPPED);
        setenv("LD_PRELOAD", library, 1);
        execl(program, program, "works", NULL);
        HOLDS(0);
    }
    int status;
    HOLDS(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        printf("probes.c: no process may be traced here: skipped; all holds\n");
        return;
    }
    HOLDS(WIFSTOPPED(status));
    HOLDS(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) == 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    memory = open(path, O_RDWR);
    HOLDS(memory >= 0);
    status = go_on(0);
    HOLDS(WIFSTOPPED(status));
    uint64_t moved = moved_by(library);
    for (int which = 0; which < 2; which++) {
        uint8_t nop = 0, trap = 0xcc;
        HOLDS(pread(memory, &nop, 1, moved + probes[which].at) == 1 && nop == 0x90);
        HOLDS(pwrite(memory, &trap, 1, moved + probes[which].at) == 1);
        HOLDS(semaphore(which, moved, 1) == 1);
    }
    status = go_on(moved);
    HOLDS(WIFSTOPPED(status));
    uint64_t live_bytes = 0, live_weight = 0, live_samples = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        char what[32];
        uint64_t all = SIZES[kind] * count_of(kind);
        snprintf(what, sizeof what, "%zu bytes", SIZES[kind]);
        check(what, weights[kind], all, sampled[kind]);
        /* Some half a MiB a sample, or as much as 61 objects are. */
        HOLDS(sampled[kind] >= (SIZES[kind] > 8192 && SIZES[kind] < 32768 ? 30 : SIZES[kind] > 1 << 20 ? LIVE : 150));
        if (SIZES[kind] < 1 << 20) live_bytes += all / LIVE;
    }
    for (int place = 0; place < MOST; place++) {
        if (live[place].at != 0 && live[place].size < 1 << 20) live_weight += live[place].weight, live_samples++;
    }
    check("live", live_weight, live_bytes, live_samples);
    /* Nobody listens any more: no probe is reached. But for the frees, whose semaphore stays. */
    HOLDS(semaphore(0, moved, -1) == 0);
    uint64_t before = others_size;
    status = go_on(moved);
    HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    HOLDS(others_size == before);
    printf("probes.c: %lu stops; all holds\n", hits);
}

int main(int count, char **arguments) {
    HOLDS(count == 2);
    alarm(300);
    if (strcmp(arguments[1], "works") == 0) return works();
    profile(arguments[0], arguments[1]);
    return 0;
}
