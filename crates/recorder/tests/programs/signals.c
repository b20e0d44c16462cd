/* A handler that allocates interrupts a program that allocates, 2,000 times. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int handled;
static volatile int in_main;

static void handler(int signal) {
    (void)signal;
    /* glibc's malloc is not made for this: the handler calls it only outside of it. */
    if (!in_main) {
        void *volatile block = malloc(3001);
        free(block);
    }
    handled++;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 50}, {0, 50}};
    setitimer(ITIMER_REAL, &timer, NULL);
    unsigned long rounds = 0;
    while (handled < 2000) {
        in_main = 1;
        void *volatile block = malloc(3002);
        in_main = 0;
        in_main = 1;
        free(block);
        in_main = 0;
        rounds++;
    }
    return rounds == 0;
}
