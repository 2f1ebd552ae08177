/* Sums over the entries of a hash table in the order of its slots:
 * sums[c] = sum over keys of values[key,c].  The order of the slots depends on the seed
 * of the hash function.  A process draws one when it starts, unless it is given one, as
 * Python does to protect from crafted collisions.  That draw is the subject here, not an
 * injected one: nothing varies within a process, or with threads. */
#include "workloads/hash_seed_order.h"

#include <string.h>
#include <sys/random.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { FREE = -1 };

struct hash_seed_order {
    const struct table_shape *shape;
    const int64_t *keys;
    const float *values; /* [keys][width] */
    float *sums;
    uint64_t seed;  /* of the process */
    int64_t slots;  /* a power of two, twice the keys */
    int32_t *table; /* [slots]: index of the key in it, or FREE */
    int32_t *order; /* [keys]: indices of keys, in the order in which they are added */
};

/* Open addressing with linear probing. */
static void table_fill(const struct hash_seed_order *hash, uint64_t seed)
{
    for (int64_t slot = 0; slot < hash->slots; slot++) {
        hash->table[slot] = FREE;
    }
    for (int64_t i = 0; i < hash->shape->keys; i++) {
        uint64_t slot = hash_slot(hash->keys[i], seed);

        while (hash->table[slot % (uint64_t)hash->slots] != FREE) {
            slot++;
        }
        hash->table[slot % (uint64_t)hash->slots] = (int32_t)i;
    }
}

static void table_walk(const struct hash_seed_order *hash)
{
    int64_t count = 0;

    for (int64_t slot = 0; slot < hash->slots; slot++) {
        if (hash->table[slot] != FREE) {
            hash->order[count++] = hash->table[slot];
        }
    }
}

static void rows_add(const struct hash_seed_order *hash)
{
    int64_t width = hash->shape->width;

    memset(hash->sums, 0, (size_t)width * sizeof(float));
    for (int64_t i = 0; i < hash->shape->keys; i++) {
        const float *values = hash->values + hash->order[i] * width;

#pragma omp simd
        for (int64_t c = 0; c < width; c++) {
            hash->sums[c] += values[c];
        }
    }
}

static void compute_process_seed(struct run *run)
{
    const struct hash_seed_order *hash = run->state;

    table_fill(hash, hash->seed);
    table_walk(hash);
    rows_add(hash);
}

static void compute_fixed_seed(struct run *run)
{
    const struct hash_seed_order *hash = run->state;

    table_fill(hash, HASH_FIXED_SEED);
    table_walk(hash);
    rows_add(hash);
}

static int key_compare(const void *a, const void *b, void *keys)
{
    const int64_t *of = keys;
    int32_t first = *(const int32_t *)a, second = *(const int32_t *)b;

    if (of[first] != of[second]) {
        return of[first] < of[second] ? -1 : 1;
    }
    return first < second ? -1 : first > second;
}

static void compute_sorted(struct run *run)
{
    const struct hash_seed_order *hash = run->state;

    table_fill(hash, hash->seed);
    table_walk(hash);
    qsort_r(hash->order, (size_t)hash->shape->keys, sizeof *hash->order, key_compare,
            (void *)(uintptr_t)hash->keys);
    rows_add(hash);
}

static void setup(struct run *run)
{
    const struct table_shape *shape = run->size->params;
    struct hash_seed_order *hash = run_host_alloc(sizeof *hash);
    int64_t values_shape[] = { shape->keys, shape->width };

    hash->shape = shape;
    hash->slots = 2 * shape->keys;
    hash->keys =
        run_input(run, "keys", DTYPE_INT64, 1, values_shape, FILL_INDEX, INT64_MAX)->data;
    hash->values = run_input_f32(run, "values", 2, values_shape, FILL_WIDE);
    hash->sums = run_output_f32(run, "sums", 1, &shape->width);
    hash->table = run_alloc(run, (size_t)hash->slots * sizeof *hash->table);
    hash->order = run_alloc(run, (size_t)shape->keys * sizeof *hash->order);
    if (getrandom(&hash->seed, sizeof hash->seed, 0) != sizeof hash->seed) {
        run_infra(run, "the kernel gave no seed for the hash function");
    }
    run->state = hash;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct table_shape *shape = run->size->params;
    const float *values = inputs[1].data;
    struct exact_sums exact =
        sums_begin(run, shape->keys, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < shape->keys * shape->width; i++) {
        sums_add(&exact, i % shape->width, values[i]);
    }
}

static const struct workload_variant variants[] = {
    { .name = "process_seed",
      .summary = "the hash function's seed is drawn when the process starts",
      .models = "Python without PYTHONHASHSEED: the order of sets differs between "
                "processes",
      .algorithm = "slots in order, seed of the process",
      .control = true,
      .kind = "entropy",
      .compute = compute_process_seed },
    { .name = "fixed_seed",
      .summary = "the hash function's seed is always the same",
      .models = "PYTHONHASHSEED set before the process starts",
      .algorithm = "slots in order, fixed seed",
      .compute = compute_fixed_seed },
    { .name = "sorted",
      .summary = "keys are sorted before their values are added",
      .models = "sorted() around the container, whatever the seed",
      .algorithm = "keys in order",
      .compute = compute_sorted },
};

static const struct workload_size sizes[] = {
    { "small", "4096 keys of 128 values", &(const struct table_shape){ 4096, 128 } },
    { "medium", "65536 keys of 128 values", &(const struct table_shape){ 65536, 128 } },
    { "large", "524288 keys of 128 values", &(const struct table_shape){ 524288, 128 } },
};

static const struct workload_reference references[] = {
    README_2020("Seeds", "seeds", "set PYTHONHASHSEED", NULL),
    PYTORCH_PAGE("Seeds", "seeds",
                 "PYTHONHASHSEED must be set before the process starts"),
    STACK_OVERFLOW("PYTHONHASHSEED is set before the process starts"),
};

static const struct workload hash_seed_order = {
    .name = "hash_seed_order",
    .version = 1,
    .title = "Order of a hash table (PYTHONHASHSEED)",
    .summary = "values added in the order of the slots of a hash table",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(hash_seed_order);
