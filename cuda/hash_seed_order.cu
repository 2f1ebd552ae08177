/* Sums in the order of a hash table's slots; workloads/hash_seed_order.c defines the
 * operation.  The order depends on the seed alone, so all but the control have the CPU's
 * bits: keys enter the table at once, and each slot keeps the first of those that pass,
 * which gives the table of a serial loop (Shun, Blelloch, "Phase-concurrent hash tables
 * for determinism", SPAA 2014). */
#include "cuda/kernels/column_sum.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scan.h"
#include "workloads/hash_seed_order.h"

#include <sys/random.h>

enum { FREE = INT32_MAX };

struct hash_seed_order {
    struct table_shape shape;
    const int64_t *keys;
    uint64_t seed;  /* of the process */
    int64_t slots;  /* a power of two, twice the keys */
    int32_t *table; /* [slots]: index of the key in it, or FREE */
    int32_t *order; /* [keys]: indices of keys, in the order in which they are added */
    struct scan places; /* [slots]: in the order */
    struct column_sum sum;
};

__global__ static void clear_kernel(struct hash_seed_order hash)
{
    KERNEL_FOR(slot, hash.slots)
    {
        hash.table[slot] = FREE;
    }
}

/* Goes on with the key that it drove out of a slot, from there. */
__global__ static void insert_kernel(struct hash_seed_order hash, uint64_t seed)
{
    KERNEL_FOR(i, hash.shape.keys)
    {
        uint64_t slot = hash_slot(hash.keys[i], seed);
        int32_t own = (int32_t)i;

        for (;; slot++) {
            int32_t there = atomicMin(&hash.table[slot % (uint64_t)hash.slots], own);

            if (there == FREE) {
                break;
            }
            own = there > own ? there : own;
        }
    }
}

__global__ static void taken_kernel(struct hash_seed_order hash)
{
    KERNEL_FOR(slot, hash.slots)
    {
        hash.places.values[slot] = hash.table[slot] != FREE;
    }
}

__global__ static void order_kernel(struct hash_seed_order hash)
{
    KERNEL_FOR(slot, hash.slots)
    {
        if (hash.table[slot] != FREE) {
            hash.order[hash.places.values[slot]] = hash.table[slot];
        }
    }
}

/* The keys, in the order of their slots. */
static void table_walk(const struct hash_seed_order *hash, uint64_t seed)
{
    LAUNCH_ITEMS(clear_kernel, hash->slots, *hash);
    LAUNCH_ITEMS(insert_kernel, hash->shape.keys, *hash, seed);
    LAUNCH_ITEMS(taken_kernel, hash->slots, *hash);
    scan_run(&hash->places);
    LAUNCH_ITEMS(order_kernel, hash->slots, *hash);
}

static void compute_process_seed(struct run *run)
{
    const struct hash_seed_order *hash = (const struct hash_seed_order *)run->state;

    table_walk(hash, hash->seed);
    column_sum_add(&hash->sum);
}

static void compute_fixed_seed(struct run *run)
{
    const struct hash_seed_order *hash = (const struct hash_seed_order *)run->state;

    table_walk(hash, HASH_FIXED_SEED);
    column_sum_add(&hash->sum);
}

__device__ static bool key_is_before(const int64_t *keys, int32_t a, int32_t b)
{
    return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
}

/* One layer of Batcher's bitonic network ("Sorting networks and their applications",
 * AFIPS 1968): neighbours at DISTANCE, in runs of LENGTH that go up and down in turn. */
__global__ static void exchange_kernel(struct hash_seed_order hash, int64_t length,
                                       int64_t distance)
{
    KERNEL_FOR(i, hash.shape.keys / 2)
    {
        int64_t at = 2 * i - i % distance;
        int32_t a = hash.order[at], b = hash.order[at + distance];
        bool up = (at & length) == 0;

        if (key_is_before(hash.keys, b, a) == up) {
            hash.order[at] = b;
            hash.order[at + distance] = a;
        }
    }
}

static void compute_sorted(struct run *run)
{
    const struct hash_seed_order *hash = (const struct hash_seed_order *)run->state;

    table_walk(hash, hash->seed);
    for (int64_t length = 2; length <= hash->shape.keys; length *= 2) {
        for (int64_t distance = length / 2; distance > 0; distance /= 2) {
            LAUNCH_ITEMS(exchange_kernel, hash->shape.keys / 2, *hash, length, distance);
        }
    }
    column_sum_add(&hash->sum);
}

static void setup(struct run *run)
{
    const struct table_shape *shape = (const struct table_shape *)run->size->params;
    struct hash_seed_order *hash = (struct hash_seed_order *)run_host_alloc(sizeof *hash);
    int64_t values_shape[] = { shape->keys, shape->width };

    hash->shape = *shape;
    hash->slots = 2 * shape->keys;
    hash->keys = (const int64_t *)run_input(run, "keys", DTYPE_INT64, 1, values_shape,
                                            FILL_INDEX, INT64_MAX)
                     ->data;
    hash->sum.rows = run_input_f32(run, "values", 2, values_shape, FILL_WIDE);
    hash->sum.sums = run_output_f32(run, "sums", 1, &shape->width);
    hash->table = run_alloc_i32(run, hash->slots);
    hash->order = run_alloc_i32(run, shape->keys);
    hash->sum.order = hash->order;
    hash->sum.count = shape->keys;
    hash->sum.width = shape->width;
    hash->places.count = hash->slots;
    hash->places.values = run_alloc_i32(run, hash->slots);
    scan_init(run, &hash->places);
    if (getrandom(&hash->seed, sizeof hash->seed, 0) != sizeof hash->seed) {
        run_infra(run, "the kernel gave no seed for the hash function");
    }
    run->state = hash;
}

static const struct workload_variant variants[] = {
    { .name = "process_seed",
      .algorithm = "slots in order, seed of the process",
      .control = true,
      .compute = compute_process_seed },
    { .name = "fixed_seed",
      .algorithm = "slots in order, fixed seed",
      .compute = compute_fixed_seed },
    { .name = "sorted", .algorithm = "keys in order", .compute = compute_sorted },
};

CUDA_TWIN(hash_seed_order, 1, variants, setup);
