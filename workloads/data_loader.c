/* A parallel data loader that augments what it loads at random.
 *
 * An item is decoded (in blocks of 8x8 coefficients, by a separable transform, as JPEG
 * does), cropped, mirrored or not, and made brighter or darker.  Each of these stages
 * draws its parameter when it is reached.  If the threads share one pseudorandom number
 * generator, the order in which they come decides which item gets which numbers.  The
 * sequence of numbers is the same in every run; who gets them is not. */
#include "workloads/data_loader.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shared/probing.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

struct data_loader {
    int64_t items;
    const float *coefficients; /* [items][channels][3][3][8][8] */
    const float *basis;        /* [8][8] */
    const int64_t *seed;
    float *images;       /* [items][16][16][channels] */
    int32_t *parameters; /* [items][parameters] */
    float *decoded;      /* for each thread [channels][side][side] */
};

typedef uint64_t state_fn(uint64_t seed, int64_t item, int parameter);

/* Where the parameters of an item come from: a generator that all threads share, or
 * a number's place alone; neither: they were drawn before. */
struct source {
    uint64_t *shared;
    state_fn *state;
};

static int32_t parameter_draw(const struct data_loader *loader,
                              const struct source *source, int64_t item, int parameter)
{
    int32_t *to = &loader->parameters[item * LOADER_PARAMETERS + parameter];

    if (source->shared) {
        *to = loader_number(
            __atomic_add_fetch(source->shared, LOADER_INCREMENT, __ATOMIC_RELAXED),
            parameter);
    } else if (source->state) {
        *to = loader_number(source->state((uint64_t)*loader->seed, item, parameter),
                            parameter);
    }
    return *to;
}

/* decoded = transposed basis * coefficients * basis, block after block. */
static void channel_decode(const float *coefficients, const float *basis, float *decoded)
{
    for (int block = 0; block < LOADER_BLOCKS * LOADER_BLOCKS; block++) {
        const float *from = coefficients + block * LOADER_BLOCK * LOADER_BLOCK;
        float *to = decoded + block / LOADER_BLOCKS * LOADER_BLOCK * LOADER_SIDE +
                    block % LOADER_BLOCKS * LOADER_BLOCK;
        float half[LOADER_BLOCK][LOADER_BLOCK] = { { 0 } };

        for (int u = 0; u < LOADER_BLOCK; u++) {
            for (int v = 0; v < LOADER_BLOCK; v++) {
                for (int x = 0; x < LOADER_BLOCK; x++) {
                    half[u][x] +=
                        from[u * LOADER_BLOCK + v] * basis[v * LOADER_BLOCK + x];
                }
            }
        }
        for (int y = 0; y < LOADER_BLOCK; y++) {
            for (int x = 0; x < LOADER_BLOCK; x++) {
                float sum = 0;

                for (int u = 0; u < LOADER_BLOCK; u++) {
                    sum += basis[u * LOADER_BLOCK + y] * half[u][x];
                }
                to[y * LOADER_SIDE + x] = sum;
            }
        }
    }
}

static void item_load(const struct data_loader *loader, const struct source *source,
                      int64_t item)
{
    float *decoded =
        loader->decoded + (int64_t)omp_get_thread_num() * LOADER_COEFFICIENTS;
    const float *coefficients = loader->coefficients + item * LOADER_COEFFICIENTS;
    float *image = loader->images + item * LOADER_IMAGE, brightness;
    int32_t row, column, mirror;

    channel_decode(coefficients, loader->basis, decoded);
    row = parameter_draw(loader, source, item, LOADER_ROW);
    channel_decode(coefficients + LOADER_PIXELS, loader->basis, decoded + LOADER_PIXELS);
    column = parameter_draw(loader, source, item, LOADER_COLUMN);
    channel_decode(coefficients + 2 * LOADER_PIXELS, loader->basis,
                   decoded + 2 * LOADER_PIXELS);
    mirror = parameter_draw(loader, source, item, LOADER_MIRROR);
    for (int64_t i = 0; i < LOADER_IMAGE; i++) {
        image[i] = decoded[loader_crop_from(i, row - 1, column - 1, mirror == 2)];
    }
    brightness = (float)parameter_draw(loader, source, item, LOADER_BRIGHTNESS) / 128;
    for (int64_t i = 0; i < LOADER_IMAGE; i++) {
        image[i] *= brightness;
    }
}

enum { SEED = 1, PARAMETERS, COEFFICIENTS, BASIS, IMAGES, VALUES };

static const struct place places[] = {
    { "rng/parameters", { SEED }, { PARAMETERS } },
    { "data/batch", { COEFFICIENTS, BASIS, PARAMETERS }, { IMAGES } },
};

static void items_probe(struct run *run)
{
    const struct data_loader *loader = run->state;
    int64_t n = loader->items;
    const struct probe_value values[VALUES] = {
        [SEED] = { DTYPE_INT64, 1, loader->seed, "seed" },
        [PARAMETERS] =
            probe_ints("parameters", loader->parameters, n * LOADER_PARAMETERS),
        [COEFFICIENTS] =
            probe_floats("coefficients", loader->coefficients, n * LOADER_COEFFICIENTS),
        [BASIS] = probe_floats("basis", loader->basis, LOADER_BLOCK * LOADER_BLOCK),
        [IMAGES] = probe_floats("images", loader->images, n * LOADER_IMAGE),
    };

    if (run_probing(run, 0)) {
        places_probe(run, 0, values, places, COUNT_OF(places));
    }
}

static void items_load(struct run *run, const struct source *source, int threads)
{
    const struct data_loader *loader = run->state;

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t item = 0; item < loader->items; item++) {
        item_load(loader, source, item);
    }
    items_probe(run);
}

static void compute_unordered(struct run *run)
{
    const struct data_loader *loader = run->state;
    uint64_t shared = (uint64_t)*loader->seed;

    items_load(run, &(struct source){ .shared = &shared }, run->threads);
}

static void compute_per_item(struct run *run)
{
    items_load(run, &(struct source){ .state = loader_state_of_item }, run->threads);
}

static void compute_sharded(struct run *run)
{
    items_load(run, &(struct source){ .state = loader_state_of_shard }, run->threads);
}

static void compute_one_thread(struct run *run)
{
    const struct data_loader *loader = run->state;
    uint64_t shared = (uint64_t)*loader->seed;

    items_load(run, &(struct source){ .shared = &shared }, 1);
}

static void compute_drawn_serially(struct run *run)
{
    const struct data_loader *loader = run->state;
    uint64_t shared = (uint64_t)*loader->seed;

    for (int64_t i = 0; i < loader->items * LOADER_PARAMETERS; i++) {
        parameter_draw(loader, &(struct source){ .shared = &shared },
                       i / LOADER_PARAMETERS, (int)(i % LOADER_PARAMETERS));
    }
    items_load(run, &(struct source){ .shared = NULL }, run->threads);
}

/* A worker loads items for training, the main thread those for validation. */
static void pipelines_load(struct run *run, uint64_t *training, uint64_t *validation)
{
    const struct data_loader *loader = run->state;
    int64_t begin = loader_validation_begin(loader->items);

#pragma omp parallel sections num_threads(run->threads)
    {
        for (int64_t item = 0; item < begin; item++) {
            item_load(loader, &(struct source){ .shared = training }, item);
        }
#pragma omp section
        for (int64_t item = begin; item < loader->items; item++) {
            item_load(loader, &(struct source){ .shared = validation }, item);
        }
    }
    items_probe(run);
}

static void compute_validation_shares(struct run *run)
{
    const struct data_loader *loader = run->state;
    uint64_t shared = (uint64_t)*loader->seed;

    pipelines_load(run, &shared, &shared);
}

static void compute_validation_apart(struct run *run)
{
    const struct data_loader *loader = run->state;
    uint64_t own[LOADER_PIPELINES];

    for (int pipeline = 0; pipeline < LOADER_PIPELINES; pipeline++) {
        own[pipeline] = loader_seed_of_pipeline((uint64_t)*loader->seed, pipeline);
    }
    pipelines_load(run, &own[0], &own[1]);
}

static void setup(struct run *run)
{
    struct data_loader *loader = run_host_alloc(sizeof *loader);
    int64_t items = *(const int64_t *)run->size->params, one = 1;
    int64_t coefficients[] = { items,         LOADER_CHANNELS, LOADER_BLOCKS,
                               LOADER_BLOCKS, LOADER_BLOCK,    LOADER_BLOCK };
    int64_t basis[] = { LOADER_BLOCK, LOADER_BLOCK };
    int64_t images[] = { items, LOADER_CROP, LOADER_CROP, LOADER_CHANNELS };
    int64_t parameters[] = { items, LOADER_PARAMETERS };

    loader->items = items;
    loader->coefficients =
        run_input_f32(run, "coefficients", 6, coefficients, FILL_UNIFORM);
    loader->basis = run_input_f32(run, "basis", 2, basis, FILL_UNIFORM);
    loader->seed = run_input(run, "generator_seed", DTYPE_INT64, 1, &one, FILL_INDEX,
                             INT64_C(1) << 40)
                       ->data;
    loader->images = run_output_f32(run, "images", 4, images);
    loader->parameters = run_output(run, "parameters", DTYPE_INT32, 2, parameters)->data;
    loader->decoded =
        run_alloc(run, (size_t)run->threads * LOADER_COEFFICIENTS * sizeof(float));
    run->state = loader;
}

static bool is_number(int32_t drawn, int parameter)
{
    return drawn >= 1 && drawn <= loader_limit(parameter);
}

/* What the generators of the controls hand out: number POSITION, each once. */
struct handed_out {
    const int32_t *drawn; /* [items][parameters] */
    int64_t count;        /* of numbers */
    int64_t training;     /* of these, those for training */
    uint64_t seed;
};

static bool is_handed_out(const struct handed_out *all, int64_t slot, int64_t position)
{
    int parameter = (int)(slot % LOADER_PARAMETERS);

    return all->drawn[slot] ==
           loader_number(loader_state_at(all->seed, position), parameter);
}

/* The counts of numbers that may have gone to training so far: those of `may` from `low`
 * to `high`. */
struct counts {
    bool *may;
    int64_t low, high;
};

/* The slot that would be next for training, and for validation, if COUNT of the numbers
 * before POSITION went to training; -1: that pipeline is done. */
static int64_t next_slot(const struct handed_out *all, int64_t position, int64_t count,
                         bool validation)
{
    int64_t slot = validation ? all->training + position - count : count;

    return slot < (validation ? all->count : all->training) ? slot : -1;
}

/* What the number at POSITION leaves of NOW; false: nothing. */
static bool hand_out(const struct handed_out *all, int64_t position,
                     const struct counts *now, struct counts *next)
{
    next->low = now->high + 1;
    next->high = -1;
    memset(&next->may[now->low], false, (size_t)(now->high - now->low) + 2);
    for (int64_t i = now->low; i <= now->high; i++) {
        for (int validation = 0; now->may[i] && validation < 2; validation++) {
            int64_t slot = next_slot(all, position, i, validation);
            int64_t count = i + !validation;

            if (slot >= 0 && is_handed_out(all, slot, position)) {
                next->may[count] = true;
                next->low = count < next->low ? count : next->low;
                next->high = count > next->high ? count : next->high;
            }
        }
    }
    return next->high >= 0;
}

/* Marks the slots that no order of the two pipelines explains.  Each draws for its items
 * in their order, so what both got is the sequence of numbers, interleaved. */
static void mark_interleaving(const struct handed_out *all, bool *wrong)
{
    struct counts now = { .may = run_host_alloc((size_t)all->training + 2) };
    struct counts next = { .may = run_host_alloc((size_t)all->training + 2) };
    int64_t position = 0;

    now.may[0] = true;
    while (position < all->count && hand_out(all, position, &now, &next)) {
        struct counts before = now;

        now = next;
        next = before;
        position++;
    }
    for (int64_t i = now.low; position < all->count && i <= now.high; i++) {
        for (int validation = 0; now.may[i] && validation < 2; validation++) {
            int64_t slot = next_slot(all, position, i, validation);

            if (slot >= 0) {
                wrong[slot] = true;
            }
        }
    }
    free(now.may);
    free(next.may);
}

/* Marks the slots that have a number which was handed out less often.  Any thread may get
 * any number, so one that may have come for another item is not seen. */
static void mark_excess(const struct handed_out *all, bool *wrong)
{
    enum { LIMIT = 256 };
    int64_t left[LOADER_PARAMETERS][LIMIT + 1] = { { 0 } };

    for (int64_t position = 0; position < all->count; position++) {
        for (int parameter = 0; parameter < LOADER_PARAMETERS; parameter++) {
            left[parameter]
                [loader_number(loader_state_at(all->seed, position), parameter)]++;
        }
    }
    for (int64_t slot = 0; slot < all->count; slot++) {
        int parameter = (int)(slot % LOADER_PARAMETERS);

        if (is_number(all->drawn[slot], parameter)) {
            wrong[slot] = --left[parameter][all->drawn[slot]] < 0;
        }
    }
}

/* Of a control it is known which numbers there are, and not who gets them: what may have
 * been drawn is right, within the range; of what may not, nothing is. */
static void reference_drawn(const struct run *run, const struct tensor *inputs,
                            int64_t items, double *ret_expected, double *ret_bound)
{
    const struct handed_out all = {
        .drawn = run->outputs[1].data,
        .count = items * LOADER_PARAMETERS,
        .training = loader_validation_begin(items) * LOADER_PARAMETERS,
        .seed = (uint64_t) * (const int64_t *)inputs[2].data,
    };
    bool *wrong = run_host_alloc((size_t)all.count);

    memset(wrong, false, (size_t)all.count);
    if (strcmp(run->variant->name, "validation_shares") == 0) {
        mark_interleaving(&all, wrong);
    } else {
        mark_excess(&all, wrong);
    }
    for (int64_t i = 0; i < all.count; i++) {
        int limit = loader_limit((int)(i % LOADER_PARAMETERS));

        ret_expected[i] = wrong[i] ? 0 : (limit + 1) / 2.0;
        ret_bound[i] = wrong[i] ? 0 : (limit - 1) / 2.0;
    }
    free(wrong);
}

/* The parameter that RUN must have drawn.  Of a control it is the one that was drawn,
 * which reference_drawn judges; one that is none would be no place in an image. */
static int32_t expected_parameter(const struct run *run, const struct tensor *inputs,
                                  int64_t item, int parameter)
{
    uint64_t seed = (uint64_t) * (const int64_t *)inputs[2].data;
    const int32_t *drawn = run->outputs[1].data;
    int64_t begin = loader_validation_begin(run->outputs[1].shape[0]);
    const char *variant = run->variant->name;

    if (run->variant->control) {
        int32_t number = drawn[item * LOADER_PARAMETERS + parameter];

        return is_number(number, parameter) ? number : 1;
    }
    if (strcmp(variant, "prng_per_item") == 0) {
        return loader_number(loader_state_of_item(seed, item, parameter), parameter);
    }
    if (strcmp(variant, "sharded") == 0) {
        return loader_number(loader_state_of_shard(seed, item, parameter), parameter);
    }
    if (strcmp(variant, "validation_apart") == 0) {
        seed = loader_seed_of_pipeline(seed, item >= begin);
        item -= item >= begin ? begin : 0;
    }
    return loader_number(loader_state_at(seed, item * LOADER_PARAMETERS + parameter),
                         parameter);
}

static void reference_parameters(const struct run *run, const struct tensor *inputs,
                                 int64_t items, double *ret_expected, double *ret_bound)
{
    for (int64_t i = 0; i < items * LOADER_PARAMETERS; i++) {
        ret_bound[i] = 0;
        ret_expected[i] = expected_parameter(run, inputs, i / LOADER_PARAMETERS,
                                             (int)(i % LOADER_PARAMETERS));
    }
}

/* A pixel of the image before cropping, and the sum of the magnitudes of its terms. */
static double decoded_pixel(const float *coefficients, const float *basis, int64_t at,
                            double *ret_magnitude)
{
    int64_t y = at % LOADER_PIXELS / LOADER_SIDE, x = at % LOADER_SIDE,
            c = at / LOADER_PIXELS;
    const float *from = coefficients + c * LOADER_PIXELS +
                        (y / LOADER_BLOCK * LOADER_BLOCKS + x / LOADER_BLOCK) *
                            LOADER_BLOCK * LOADER_BLOCK;
    double sum = 0;

    *ret_magnitude = 0;
    for (int u = 0; u < LOADER_BLOCK; u++) {
        for (int v = 0; v < LOADER_BLOCK; v++) {
            double term = (double)basis[u * LOADER_BLOCK + y % LOADER_BLOCK] *
                          from[u * LOADER_BLOCK + v] *
                          basis[v * LOADER_BLOCK + x % LOADER_BLOCK];

            sum += term;
            *ret_magnitude += fabs(term);
        }
    }
    return sum;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    int64_t items = output->shape[0], image = LOADER_IMAGE;
    /* Two sums of 8 products, and the brightness. */
    double gamma = rounding_gamma(run->dtype, 2 * (LOADER_BLOCK + 1) + 2);

    if (output->rank == 2 && run->variant->control) {
        reference_drawn(run, inputs, items, ret_expected, ret_bound);
        return;
    }
    if (output->rank == 2) {
        reference_parameters(run, inputs, items, ret_expected, ret_bound);
        return;
    }
    for (int64_t i = 0; i < items * image; i++) {
        int64_t item = i / image;
        int64_t at = loader_crop_from(
            i % image, expected_parameter(run, inputs, item, LOADER_ROW) - 1,
            expected_parameter(run, inputs, item, LOADER_COLUMN) - 1,
            expected_parameter(run, inputs, item, LOADER_MIRROR) == 2);
        double scale = expected_parameter(run, inputs, item, LOADER_BRIGHTNESS) / 128.0;
        double magnitude;

        ret_expected[i] = scale * decoded_pixel((const float *)inputs[0].data +
                                                    item * LOADER_COEFFICIENTS,
                                                inputs[1].data, at, &magnitude);
        ret_bound[i] = gamma * scale * magnitude;
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "the threads share one pseudorandom number generator",
      .models = "a stateful pipeline in several threads, with numpy's default generator",
      .algorithm = "shared generator, drawn when a stage is reached",
      .control = true,
      .compute = compute_unordered },
    { .name = "prng_per_item",
      .summary = "each item has a generator of its own",
      .models = "a generator for each object that works in parallel",
      .algorithm = "generator an item",
      .compute = compute_per_item },
    { .name = "drawn_serially",
      .summary = "one thread draws all parameters, then all threads work without state",
      .models = "parameters drawn in one thread, stateless parallel work",
      .algorithm = "drawn by one thread, used by all",
      .compute = compute_drawn_serially },
    { .name = "one_thread",
      .summary = "one thread loads everything",
      .models = "workers=1, or 0 with validation; since TF 2.7 num_parallel_calls=1 for "
                "a stateful map",
      .algorithm = "shared generator, one thread",
      .compute = compute_one_thread },
    { .name = "sharded",
      .summary = "four shards, each with its own generator, interleaved in a fixed order",
      .models = "Dataset.shard, deterministic from at least TF 2.2",
      .algorithm = "generator a shard, four shards",
      .compute = compute_sharded },
    { .name = "validation_shares",
      .summary = "one worker trains, the main thread validates: they share one generator",
      .models =
          "validation in the main thread on the stateful pipeline of training, with "
          "workers=1",
      .algorithm = "shared generator, training beside validation",
      .control = true,
      .compute = compute_validation_shares },
    { .name = "validation_apart",
      .summary = "training and validation each have a generator of their own",
      .models = "a pipeline for validation that shares no state with that of training",
      .algorithm = "generator a pipeline, training beside validation",
      .compute = compute_validation_apart },
};

static const struct workload_size sizes[] = {
    { "small", "images[384,16,16,3] from 24x24", &(const int64_t){ 384 } },
    { "medium", "images[4096,16,16,3] from 24x24", &(const int64_t){ 4096 } },
    { "large", "images[65536,16,16,3] from 24x24", &(const int64_t){ 65536 } },
};

static const struct workload_reference references[] = {
    README_2020("Data-Loader Parallelism", "data-loader-parallelism",
                "threads must not share the state of a generator, or must be one", NULL),
    README_2020("Data-Loader Parallelism, validation", "data-loader-parallelism",
                "validation runs in the main thread: workers=0 where it shares the "
                "pipeline",
                NULL),
    README_2020("Dataset Sharding", "dataset-sharding",
                "asks not to shard; deterministic from TF 2.2 at the latest, says its "
                "newest text",
                "TF 2.2"),
    PYTORCH_PAGE("Data Loader", "data-loader",
                 "no shared generator; a new seed for each epoch"),
    TENSORFLOW_ISSUE(13932, "Dataset.map with random ops varies", "closed 2020-06", NULL),
    TENSORFLOW_ISSUE(29101, "random seed not set in the graph of Dataset.map",
                     "open 2020-06", "TF 1.14, perhaps"),
    TENSORFLOW_ISSUE(38197, "MirroredStrategy and a data set shuffled anew in each epoch",
                     "open 2020-06, closed 2023-07", "TF 2.3"),
    TENSORFLOW_COMMIT(fc91e5ca, f3e9c807de4b0312ef456d7b57e1a876,
                      "stateful maps run in one thread when determinism is asked for",
                      "merged 2023-07", "TF 2.7"),
    GITHUB_ISSUE("framework-reproducibility", "NVIDIA/framework-reproducibility", 36,
                 "a data loader that varies; parameters drawn serially", NULL, NULL),
    TENSORFLOW_COMMIT(c0e2e65e, 155fabd9bdfd5c41b4b816d9efac8e1f,
                      "the same for MapAndBatch", "merged 2023-07", "TF 2.7"),
    TENSORFLOW_ISSUE(53846, "sample_from_datasets varies with several GPUs",
                     "open 2023-07", NULL),
};

static const struct workload data_loader = {
    .name = "data_loader",
    .version = 1,
    .title = "Data-Loader Parallelism",
    .summary = "items decoded and augmented at random by several threads",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the images",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(data_loader);
