/* The complement of random covers of cubes, by Shannon's expansion, as logic minimizers do it (Brayton and
 * others: Logic Minimization Algorithms for VLSI Synthesis, 1984, chapter 3). The recursion makes and frees
 * many short lists of small blocks. Prints the size and a digest of each complement, and checks random
 * points. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 20, CUBES = 100, ROUNDS = 160, POINTS = 2000, WIDEST = 160 };

/* A product of literals: bit i of `one` if variable i must be 1, of `zero` if it must be 0. */
struct cube {
	uint32_t one, zero;
	char name[]; /* Makes blocks of different sizes. */
};

struct cover {
	size_t count, room;
	struct cube **cubes;
};

static uint64_t state;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

static void *checked(void *memory)
{
	if (!memory) {
		fputs("no memory\n", stderr);
		exit(1);
	}
	return memory;
}

static struct cover *new_cover(void)
{
	struct cover *cover = checked(malloc(sizeof *cover));
	*cover = (struct cover){ 0 };
	return cover;
}

static void add(struct cover *cover, uint32_t one, uint32_t zero)
{
	size_t name = (one ^ zero) % 3 * 16;
	struct cube *cube = checked(calloc(1, sizeof *cube + name));
	cube->one = one;
	cube->zero = zero;
	if (cover->count == cover->room) {
		cover->room = cover->room ? 2 * cover->room : 4;
		cover->cubes = checked(realloc(cover->cubes, cover->room * sizeof *cover->cubes));
	}
	cover->cubes[cover->count++] = cube;
}

static void drop(struct cover *cover)
{
	while (cover->count)
		free(cover->cubes[--cover->count]);
	free(cover->cubes); /* Null if it never had a cube. */
	free(cover);
}

/* The cubes in which a variable has a value, without that literal. */
static struct cover *cofactor(const struct cover *cover, uint32_t bit, int value)
{
	struct cover *part = new_cover();
	for (size_t i = 0; i < cover->count; i++) {
		const struct cube *cube = cover->cubes[i];
		if (!((value ? cube->zero : cube->one) & bit))
			add(part, cube->one & ~bit, cube->zero & ~bit);
	}
	return part;
}

/* The variable with the most literals, first those of both forms; 0 if there is none. */
static uint32_t best_variable(const struct cover *cover)
{
	uint32_t best = 0;
	size_t most = 0;
	for (int v = 0; v < VARIABLES; v++) {
		uint32_t bit = 1u << v;
		size_t ones = 0, zeros = 0;
		for (size_t i = 0; i < cover->count; i++) {
			ones += !!(cover->cubes[i]->one & bit);
			zeros += !!(cover->cubes[i]->zero & bit);
		}
		size_t weight = ones + zeros + (ones && zeros ? cover->count : 0);
		if (weight > most) {
			most = weight;
			best = bit;
		}
	}
	return best;
}

/* Whether the first `count` cubes of a cover have one that contains the cube. */
static int contained(const struct cover *cover, size_t count, uint32_t one, uint32_t zero)
{
	for (size_t i = 0; i < count; i++) {
		const struct cube *cube = cover->cubes[i];
		if (!(cube->one & ~one) && !(cube->zero & ~zero))
			return 1;
	}
	return 0;
}

/* Adds to `all` the cubes of `half`, with the literal `bit` = `value` unless `other` contains the cube. */
static void merge(struct cover *all, const struct cover *half, const struct cover *other, uint32_t bit,
		  int value)
{
	for (size_t i = 0; i < half->count; i++) {
		uint32_t one = half->cubes[i]->one, zero = half->cubes[i]->zero;
		size_t seen = other->count < WIDEST ? other->count : WIDEST;
		if (!contained(other, seen, one, zero))
			*(value ? &one : &zero) |= bit;
		if (!contained(all, all->count < WIDEST ? all->count : WIDEST, one, zero))
			add(all, one, zero);
	}
}

static struct cover *complement(const struct cover *cover)
{
	struct cover *all = new_cover();
	for (size_t i = 0; i < cover->count; i++)
		if (!cover->cubes[i]->one && !cover->cubes[i]->zero)
			return all;
	uint32_t bit = best_variable(cover);
	if (!bit) {
		add(all, 0, 0);
		return all;
	}
	struct cover *halves[2];
	for (int value = 0; value < 2; value++) {
		struct cover *part = cofactor(cover, bit, value);
		halves[value] = complement(part);
		drop(part);
	}
	merge(all, halves[0], halves[1], bit, 0);
	merge(all, halves[1], halves[0], bit, 1);
	drop(halves[0]);
	drop(halves[1]);
	return all;
}

static int covers(const struct cover *cover, uint32_t point)
{
	for (size_t i = 0; i < cover->count; i++)
		if (!(cover->cubes[i]->one & ~point) && !(cover->cubes[i]->zero & point))
			return 1;
	return 0;
}

int main(int count, char **arguments)
{
	if (count > 1) {
		printf("%s: complements of covers; takes no arguments\n", arguments[0]);
		return 0;
	}
	for (int round = 0; round < ROUNDS; round++) {
		state = round + 1;
		struct cover *cover = new_cover();
		for (int i = 0; i < CUBES; i++) {
			uint32_t one = 0, zero = 0;
			for (int literals = 4 + draw() % 4; literals; literals--) {
				uint32_t bit = 1u << draw() % VARIABLES;
				*(draw() & 1 ? &one : &zero) |= bit;
			}
			add(cover, one & ~zero, zero & ~one);
		}
		struct cover *others = complement(cover);
		uint64_t digest = 0;
		for (size_t i = 0; i < others->count; i++)
			digest = digest * 31 + others->cubes[i]->one * 7u + others->cubes[i]->zero;
		for (int i = 0; i < POINTS; i++) {
			uint32_t point = draw() % (1u << VARIABLES);
			if (covers(cover, point) == covers(others, point)) {
				printf("wrong at %x\n", point);
				return 1;
			}
		}
		printf("%d: %zu cubes, %016llx\n", round, others->count, (unsigned long long)digest);
		drop(cover);
		drop(others);
	}
	return 0;
}
