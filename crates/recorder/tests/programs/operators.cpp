// Every operator new and delete, and one that throws.
#include <cstdio>
#include <new>
#include <vector>

struct alignas(256) Wide { char bytes[512]; };

int main() {
    char *one = new char;
    delete one;
    int *many = new int[1234];
    delete[] many;
    Wide *wide = new Wide;
    delete wide;
    Wide *wides = new Wide[3];
    delete[] wides;
    long *maybe = new (std::nothrow) long[4321];
    delete[] maybe;
    volatile std::size_t most = ~std::size_t(0) >> 1;
    if (new (std::nothrow) char[most]) return 1;
    try {
        std::vector<char> all(most - 1);
    } catch (const std::bad_alloc &) {
        std::puts("thrown");
    }
    return 0;
}
