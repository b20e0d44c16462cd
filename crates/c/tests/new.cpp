// Every form of operator new and delete; bad_alloc where there is no memory; the program's new-handler before
// it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#define HOLDS(what) \
    do { \
        if (!(what)) { std::fprintf(stderr, "new.cpp:%d: %s\n", __LINE__, #what); std::exit(1); } \
    } while (0)

struct alignas(256) Wide { char bytes[300]; };
template <std::size_t align, std::size_t bytes> struct alignas(align) Aligned { char held[bytes]; };

// All stay live: slabs may start at different places, and the first slab at the best one.
template <std::size_t align, std::size_t bytes> static void aligned() {
    using One = Aligned<align, bytes>;
    std::vector<One *> all;
    for (int i = 0; i < 2000; i++) {
        all.push_back(i % 2 ? new One : new (std::nothrow) One);
        HOLDS(reinterpret_cast<std::uintptr_t>(all.back()) % align == 0);
    }
    for (One *one : all) delete one;
}

static int handled = 0;
static void handler() {
    if (++handled == 3) std::set_new_handler(nullptr);
}

int main() {
    volatile std::size_t much = SIZE_MAX / 2;
    for (int turn = 0; turn < 2; turn++) {
        bool thrown = false;
        try { ::operator delete(::operator new(much)); } catch (const std::bad_alloc &) { thrown = true; }
        HOLDS(thrown);
    }
    HOLDS(::operator new(much, std::nothrow) == nullptr);
    std::set_new_handler(handler);
    bool thrown = false;
    try { ::operator delete[](::operator new[](much)); } catch (const std::bad_alloc &) { thrown = true; }
    HOLDS(thrown && handled == 3);
    for (int i = 0; i < 100; i++) {
        Wide *one = new Wide, *many = new Wide[3];
        HOLDS(reinterpret_cast<std::uintptr_t>(one) % 256 == 0);
        HOLDS(reinterpret_cast<std::uintptr_t>(many) % 256 == 0);
        delete one;
        delete[] many;
        delete new (std::nothrow) Wide;
        delete[] new (std::nothrow) char[100];
    }
    aligned<32, 32>();
    aligned<64, 192>();
    aligned<128, 128>();
    aligned<128, 384>();
    aligned<512, 1536>();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t] {
            std::map<int, std::string> map;
            for (int i = 0; i < 20000; i++) {
                map[i % 700] = std::string(i % 90, char('a' + t));
                if (i % 3 == 0) map.erase(i % 500);
            }
            for (auto &[key, text] : map) HOLDS(text.find_first_not_of(char('a' + t)) == std::string::npos);
        });
    for (auto &thread : threads) thread.join();
    std::puts("new.cpp: all holds");
}
