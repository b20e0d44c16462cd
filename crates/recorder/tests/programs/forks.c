/* A parent of 100 calls of 2001 bytes, a forked child of 200 of 2002, a child of vfork that executes ls. */
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
    calls(100, 2001);
    void *inherited = malloc(2003);
    pid_t child = fork();
    if (child == 0) {
        calls(200, 2002);
        free(inherited);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0) {
        execlp("ls", "ls", "/dev/null", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    free(inherited);
    return 0;
}
