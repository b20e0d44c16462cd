/* Allocates once, and says who runs it. Built with FAKED, it answers getauxval(AT_SECURE) itself, for the
 * preloaded library, too: as in a process with more rights than its user, if FAKE_SECURE is set. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifdef FAKED
unsigned long getauxval(unsigned long type) {
    if (type == AT_SECURE) return getenv("FAKE_SECURE") != NULL;
    ElfW(auxv_t) entry;
    unsigned long value = 0;
    int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    while (read(file, &entry, sizeof entry) == sizeof entry && entry.a_type != AT_NULL)
        if (entry.a_type == type) value = entry.a_un.a_val;
    close(file);
    return value;
}
#endif

int main(void) {
    void *volatile at = malloc(9);
    free(at);
    printf("uid %d euid %d\n", (int)getuid(), (int)geteuid());
    return 0;
}
