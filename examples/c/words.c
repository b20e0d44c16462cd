/* The native world from C: counts the words of its standard input, with malloc, realloc and free.
 *
 *     cargo build --release -p slablab-c
 *     crates/c/install.sh "$PWD/installed"
 *     cc -O2 examples/c/words.c -o words -Linstalled/lib -lslablab
 *     LD_LIBRARY_PATH=installed/lib ./words < README.md
 *
 * SLABLAB_ENGINE=slqb chooses another engine, SLABLAB_STATS=1 prints the caches at the end. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    struct word *next;
    unsigned long count;
    char *text;
};

static struct word *table[1024];

static void *or_die(void *at) {
    if (at == NULL) {
        perror("words");
        exit(1);
    }
    return at;
}

static void add(const char *text, size_t length) {
    unsigned hash = 5381;
    for (size_t i = 0; i < length; i++) hash = hash * 33 + (unsigned char)text[i];
    struct word **at = &table[hash % 1024];
    for (struct word *word = *at; word != NULL; word = word->next)
        if (strcmp(word->text, text) == 0) {
            word->count++;
            return;
        }
    struct word *word = or_die(malloc(sizeof *word));
    word->text = or_die(malloc(length + 1));
    memcpy(word->text, text, length + 1);
    word->count = 1;
    word->next = *at;
    *at = word;
}

static int by_count(const void *one, const void *other) {
    const struct word *a = *(struct word *const *)one, *b = *(struct word *const *)other;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : strcmp(a->text, b->text);
}

int main(void) {
    size_t room = 8, length = 0;
    char *text = or_die(malloc(room));
    int byte;
    do {
        byte = getchar();
        if (byte != EOF && isalpha(byte)) {
            if (length + 1 == room) text = or_die(realloc(text, room *= 2));
            text[length++] = (char)tolower(byte);
        } else if (length > 0) {
            text[length] = 0;
            add(text, length);
            length = 0;
        }
    } while (byte != EOF);
    free(text);

    size_t words = 0;
    struct word **sorted = NULL;
    for (size_t i = 0; i < 1024; i++)
        for (struct word *word = table[i]; word != NULL; word = word->next) {
            sorted = or_die(realloc(sorted, (words + 1) * sizeof *sorted));
            sorted[words++] = word;
        }
    if (words > 0) qsort(sorted, words, sizeof *sorted, by_count);
    for (size_t i = 0; i < words; i++) {
        if (i < 3) printf("%6lu %s\n", sorted[i]->count, sorted[i]->text);
        free(sorted[i]->text);
        free(sorted[i]);
    }
    free(sorted);
    return 0;
}
