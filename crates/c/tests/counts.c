/* Holds a number of objects that the reader of statistics knows: 6,000 of 700 bytes, of which the first 4,000
 * were freed again; 40 of 24,000 bytes; 3 blocks of 1 MB; one of 4 MiB, which was larger before. Threads: one
 * more, which allocates 500 objects of 700 bytes, frees 200 of them and stays. Under the library also an object
 * cache with 77 objects of 304 bytes, whose name has a quote and an escape in it. Then it says "ready" and ends
 * when standard input does. Arguments are words that it writes to the start of a mapping first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL = 6000, FREED = 4000, LARGE = 40, BLOCKS = 3, OTHERS = 500, OTHERS_FREED = 200 };

static void *small[SMALL], *large[LARGE], *blocks[BLOCKS], *others[OTHERS];
static int begun[2], ended[2];

static void allocate(void **to, int count, size_t bytes)
{
	for (int i = 0; i < count; i++) {
		to[i] = malloc(bytes);
		if (!to[i])
			_exit(2);
		memset(to[i], 1, 64);
	}
}

static void *other(void *unused)
{
	char byte = 0;
	allocate(others, OTHERS, 700);
	for (int i = 0; i < OTHERS_FREED; i++)
		free(others[i]);
	if (write(begun[1], &byte, 1) != 1 || read(ended[0], &byte, 1) != 1)
		_exit(3);
	return unused;
}

/* Between two pages without access, so that the mapping begins with the words. */
static void map_words(int count, char **words)
{
	char *pages = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE))
		_exit(7);
	for (int i = 0; i < count; i++)
		((uint64_t *)(pages + 4096))[i] = strtoull(words[i], NULL, 10);
}

/* A block that takes the frames behind it step by step, and then leaves them: their descriptors say what was. */
static void resize_block(void)
{
	static void *volatile whole, *volatile block;
	whole = malloc(32 << 20);
	free(whole);
	block = malloc(4 << 20);
	for (size_t bytes = 4 << 20; bytes < 24 << 20; bytes += 64 << 10)
		block = realloc(block, bytes);
	block = realloc(block, 4 << 20);
	if (!block)
		_exit(9);
}

static void make_object_cache(void)
{
	void *(*create)(const char *, size_t, size_t, unsigned int, void (*)(void *));
	void *(*alloc)(void *, unsigned int);

	*(void **)&create = dlsym(RTLD_DEFAULT, "kmem_cache_create");
	*(void **)&alloc = dlsym(RTLD_DEFAULT, "kmem_cache_alloc");
	if (!create)
		return;
	void *counted = create("counted \"\033[31m", 304, 0, 0, NULL);
	for (int i = 0; i < 77; i++)
		if (!alloc(counted, 0))
			_exit(8);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte = 0;
	if (argc > 1)
		map_words(argc - 1, argv + 1);
	if (pipe(begun) || pipe(ended) || pthread_create(&thread, NULL, other, NULL))
		return 4;
	allocate(small, SMALL, 700);
	allocate(large, LARGE, 24000);
	allocate(blocks, BLOCKS, 1000000);
	resize_block();
	make_object_cache();
	for (int i = 0; i < FREED; i++)
		free(small[i]);
	if (read(begun[0], &byte, 1) != 1 || write(1, "ready\n", 6) != 6)
		return 5;
	while (read(0, &byte, 1) > 0)
		;
	/* A thread that runs has a slot, in which the statistics at the end cannot look. */
	return write(ended[1], &byte, 1) != 1 || pthread_join(thread, NULL) ? 6 : 0;
}
