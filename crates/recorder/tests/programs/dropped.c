/* A process of root that becomes one of nobody, and its child: 20,000 calls of 6001 bytes, 2,000 of 6002. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void calls(int count, size_t size) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(size);
        free(block);
    }
}

int main(void) {
    calls(1, 6000);
    if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        calls(1000, 6002);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    calls(10000, 6001);
    return 0;
}
