/* A process with SLABLAB_BACKGROUND=1: when it has a second thread, and what that thread withstands. Exits
 * with 1 and a line if something does not hold.
 *
 *     helper below      a process that stays below 16 MB of idle memory has no helper
 *     helper sleeps     one above has one while it sleeps, which handles no signal, gives back, and ends
 *     helper forks      a child has no helper, gets its own, and can allocate
 *     helper execs      the program that takes the process's place has one thread
 *     helper rights     setuid and setgid change the rights of all threads
 *     helper sandbox    where a filter refuses new threads, the process goes on without */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(what)                                                \
    do {                                                           \
        if (!(what)) {                                             \
            dprintf(2, "helper.c:%d: %s\n", __LINE__, #what);      \
            _exit(1);                                              \
        }                                                          \
    } while (0)

enum { BLOCKS = 60000, BYTES = 1000 };

/* Threads of the process, without a call of malloc. */
static int threads(void) {
    char text[4096] = "";
    int file = open("/proc/self/status", O_RDONLY);
    HOLDS(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    return atoi(strstr(text, "Threads:") + 8);
}

static long resident(void) {
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    HOLDS(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    long pages = 0;
    sscanf(text, "%*d %ld", &pages);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

/* Allocates and frees `count` blocks in a loop, so that the process knows that it takes them again, and keeps
 * them. */
static void swing(int count) {
    static char *blocks[BLOCKS];
    for (int turn = 0; turn < 5; turn++) {
        for (int at = 0; at < count; at++) {
            HOLDS((blocks[at] = malloc(BYTES)) != NULL);
            memset(blocks[at], 1, BYTES);
        }
        for (int at = 0; at < count; at++) free(blocks[at]);
    }
}

/* Sleeps until the process has so many threads; for 10 s at most. */
static int has(int count) {
    for (int turn = 0; turn < 1000 && threads() != count; turn++) usleep(10000);
    return threads() == count;
}

static pid_t main_thread;
static volatile int handled;

static void handler(int signal) {
    (void)signal;
    HOLDS(syscall(SYS_gettid) == main_thread);
    handled++;
}

static void ends(void) {
    HOLDS(has(1));
    HOLDS(resident() < 24);
}

static void sleeps(void) {
    signal(SIGUSR1, handler);
    swing(BLOCKS);
    HOLDS(threads() == 2);
    HOLDS(resident() > 40);
    for (int turn = 0; turn < 20; turn++) {
        kill(getpid(), SIGUSR1);
        usleep(1000);
    }
    HOLDS(handled > 0);
    ends();
    /* It starts again. */
    swing(BLOCKS);
    HOLDS(threads() == 2);
    ends();
}

static void forks(void) {
    swing(BLOCKS);
    HOLDS(threads() == 2);
    for (int turn = 0; turn < 20; turn++) {
        pid_t child = fork();
        HOLDS(child >= 0);
        if (child == 0) {
            alarm(20);
            HOLDS(threads() == 1);
            if (turn % 10 == 0) {
                swing(BLOCKS);
                HOLDS(threads() == 2);
                ends();
            }
            _exit(0);
        }
        int status;
        HOLDS(waitpid(child, &status, 0) == child && status == 0);
    }
    ends();
}

/* The rights of all threads, by the kernel. */
static void rights(void) {
    swing(BLOCKS);
    HOLDS(threads() == 2);
    int is_root = getuid() == 0;
    uid_t user = is_root ? 65534 : getuid();
    HOLDS(setgid(is_root ? 65534 : getgid()) == 0 && setuid(user) == 0);
    char path[300], text[4096];
    DIR *tasks = opendir("/proc/self/task");
    HOLDS(tasks != NULL);
    int seen = 0;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        int file = open(path, O_RDONLY);
        if (file < 0) continue;
        ssize_t got = read(file, text, sizeof text - 1);
        close(file);
        if (got <= 0) continue;
        text[got] = 0;
        HOLDS((uid_t)atoi(strstr(text, "Uid:") + 4) == user);
        seen++;
    }
    closedir(tasks);
    HOLDS(seen >= 1);
    HOLDS(has(1));
}

/* Has the kernel refuse clone and clone3 by EPERM. */
static void sandbox(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    HOLDS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOLDS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    errno = 77;
    swing(BLOCKS);
    HOLDS(errno == 77);
    HOLDS(threads() == 1);
    swing(BLOCKS);
    HOLDS(threads() == 1);
}

int main(int count, char **arguments) {
    HOLDS(count == 2);
    alarm(60);
    main_thread = syscall(SYS_gettid);
    const char *what = arguments[1];
    if (strcmp(what, "below") == 0) {
        swing(8000);
        HOLDS(threads() == 1);
    } else if (strcmp(what, "sleeps") == 0) {
        sleeps();
    } else if (strcmp(what, "forks") == 0) {
        forks();
    } else if (strcmp(what, "execs") == 0) {
        swing(BLOCKS);
        HOLDS(threads() == 2);
        execl("/proc/self/exe", arguments[0], "below", NULL);
        HOLDS(0);
    } else if (strcmp(what, "rights") == 0) {
        rights();
    } else if (strcmp(what, "sandbox") == 0) {
        sandbox();
    }
    printf("helper.c: %s: all holds\n", what);
    return 0;
}
