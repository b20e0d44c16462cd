// Allocations of operator new, with and without an alignment.
#include <cstdio>
#include <new>

struct alignas(256) Wide {
    char bytes[3000];
};

__attribute__((noinline)) static char *plain() { return new char[2500]; }

__attribute__((noinline)) static Wide *wide() { return new Wide; }

int main() {
    char *first = plain();
    Wide *second = wide();
    std::printf("%d\n", first != nullptr && second != nullptr);
    delete[] first;
    delete second;
}
