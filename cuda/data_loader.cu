/* A data loader that augments at random; workloads/data_loader.c defines the operation.
 * A block loads an item: what blocks share is what threads share on the CPU.  All but the
 * control draw the CPU's numbers and compute with them in its order, so they have its
 * bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/data_loader.h"

enum { THREADS = LOADER_PIXELS / 3, AREA = LOADER_BLOCK * LOADER_BLOCK };

/* Where the parameters of an item come from. */
enum source {
    SHARED, /* a generator that all blocks share */
    ITEM,   /* a generator an item */
    SHARD,  /* a generator a shard */
    DRAWN   /* they were drawn before */
};

struct data_loader {
    int64_t items;
    uint64_t seed;
    const float *coefficients; /* [items][channels][3][3][8][8] */
    const float *basis;        /* [8][8] */
    float *images;             /* [items][16][16][channels] */
    int32_t *parameters;       /* [items][parameters] */
    unsigned long long *state; /* [pipelines]: of the shared generators */
};

/* In the memory of a block. */
struct desk {
    float basis[AREA];
    float half[LOADER_PIXELS]; /* decoded along rows: [block][u][x] */
    float decoded[LOADER_COEFFICIENTS];
    int32_t drawn[LOADER_PARAMETERS];
};

/* By one thread of the block, while the others go on. */
__device__ static void parameter_draw(const struct data_loader *loader, enum source from,
                                      int64_t item, int parameter, int32_t *ret_drawn)
{
    int32_t *to = &loader->parameters[item * LOADER_PARAMETERS + parameter];

    if (threadIdx.x > 0) {
        return;
    }
    if (from == SHARED) {
        *to = loader_number(atomicAdd(loader->state, LOADER_INCREMENT) + LOADER_INCREMENT,
                            parameter);
    } else if (from == ITEM) {
        *to =
            loader_number(loader_state_of_item(loader->seed, item, parameter), parameter);
    } else if (from == SHARD) {
        *to = loader_number(loader_state_of_shard(loader->seed, item, parameter),
                            parameter);
    }
    *ret_drawn = *to;
}

/* decoded = transposed basis * coefficients * basis, block after block. */
__device__ static void channel_decode(const float *coefficients, struct desk *desk,
                                      float *decoded)
{
    for (int i = (int)threadIdx.x; i < LOADER_PIXELS; i += THREADS) {
        const float *from = coefficients + i / LOADER_BLOCK * LOADER_BLOCK;
        float sum = 0;

        for (int v = 0; v < LOADER_BLOCK; v++) {
            sum += from[v] * desk->basis[v * LOADER_BLOCK + i % LOADER_BLOCK];
        }
        desk->half[i] = sum;
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < LOADER_PIXELS; i += THREADS) {
        int block = i / AREA, y = i % AREA / LOADER_BLOCK, x = i % LOADER_BLOCK;
        int row = block / LOADER_BLOCKS * LOADER_BLOCK + y;
        int column = block % LOADER_BLOCKS * LOADER_BLOCK + x;
        float sum = 0;

        for (int u = 0; u < LOADER_BLOCK; u++) {
            sum += desk->basis[u * LOADER_BLOCK + y] *
                   desk->half[block * AREA + u * LOADER_BLOCK + x];
        }
        decoded[row * LOADER_SIDE + column] = sum;
    }
    __syncthreads();
}

__device__ static void item_load(const struct data_loader *loader, enum source from,
                                 int64_t item, struct desk *desk)
{
    const float *coefficients = loader->coefficients + item * LOADER_COEFFICIENTS;
    float *image = loader->images + item * LOADER_IMAGE;

    for (int channel = 0; channel < LOADER_CHANNELS; channel++) {
        channel_decode(coefficients + channel * LOADER_PIXELS, desk,
                       desk->decoded + channel * LOADER_PIXELS);
        parameter_draw(loader, from, item, channel, &desk->drawn[channel]);
    }
    parameter_draw(loader, from, item, LOADER_BRIGHTNESS,
                   &desk->drawn[LOADER_BRIGHTNESS]);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < LOADER_IMAGE; i += THREADS) {
        int64_t at = loader_crop_from(i, desk->drawn[LOADER_ROW] - 1,
                                      desk->drawn[LOADER_COLUMN] - 1,
                                      desk->drawn[LOADER_MIRROR] == 2);

        image[i] = desk->decoded[at] * ((float)desk->drawn[LOADER_BRIGHTNESS] / 128);
    }
    __syncthreads();
}

__global__ static void load_kernel(struct data_loader loader, enum source from)
{
    __shared__ struct desk desk;

    for (int i = (int)threadIdx.x; i < AREA; i += THREADS) {
        desk.basis[i] = loader.basis[i];
    }
    __syncthreads();
    for (int64_t item = blockIdx.x; item < loader.items; item += gridDim.x) {
        item_load(&loader, from, item, &desk);
    }
}

static void items_load(const struct data_loader *loader, enum source from, int64_t blocks)
{
    LAUNCH(load_kernel, (unsigned)blocks, THREADS, 0, 0, *loader, from);
}

__global__ static void seed_kernel(struct data_loader loader)
{
    *loader.state = loader.seed;
}

/* Block 0 loads items for training, block 1 those for validation.  PIPELINES generators
 * are there for them. */
__global__ static void pipelines_kernel(struct data_loader loader, int64_t pipelines)
{
    int64_t begin = loader_validation_begin(loader.items);
    int64_t first = blockIdx.x ? begin : 0, end = blockIdx.x ? loader.items : begin;
    __shared__ struct desk desk;

    for (int i = (int)threadIdx.x; i < AREA; i += THREADS) {
        desk.basis[i] = loader.basis[i];
    }
    loader.state += blockIdx.x % pipelines;
    __syncthreads();
    for (int64_t item = first; item < end; item++) {
        item_load(&loader, SHARED, item, &desk);
    }
}

__global__ static void pipelines_seed_kernel(struct data_loader loader)
{
    loader.state[threadIdx.x] = loader_seed_of_pipeline(loader.seed, threadIdx.x);
}

static void compute_validation_shares(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;

    LAUNCH(seed_kernel, 1, 1, 0, 0, *loader);
    LAUNCH(pipelines_kernel, LOADER_PIPELINES, THREADS, 0, 0, *loader, 1);
}

static void compute_validation_apart(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;

    LAUNCH(pipelines_seed_kernel, 1, LOADER_PIPELINES, 0, 0, *loader);
    LAUNCH(pipelines_kernel, LOADER_PIPELINES, THREADS, 0, 0, *loader, LOADER_PIPELINES);
}

static void compute_unordered(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;

    LAUNCH(seed_kernel, 1, 1, 0, 0, *loader);
    items_load(loader, SHARED, loader->items);
}

static void compute_per_item(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;

    items_load(loader, ITEM, loader->items);
}

static void compute_sharded(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;

    items_load(loader, SHARD, loader->items);
}

static void compute_one_thread(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;

    LAUNCH(seed_kernel, 1, 1, 0, 0, *loader);
    items_load(loader, SHARED, 1);
}

/* The one thread is the host's, as in the frameworks. */
static void compute_drawn_serially(struct run *run)
{
    const struct data_loader *loader = (const struct data_loader *)run->state;
    int64_t count = loader->items * LOADER_PARAMETERS;
    static int32_t *drawn;

    if (!drawn) {
        drawn = (int32_t *)run_host_alloc((size_t)count * sizeof *drawn);
    }
    for (int64_t i = 0; i < count; i++) {
        drawn[i] =
            loader_number(loader_state_at(loader->seed, i), (int)(i % LOADER_PARAMETERS));
    }
    CUDA_TRY(cudaMemcpyAsync(loader->parameters, drawn, (size_t)count * sizeof *drawn,
                             cudaMemcpyHostToDevice));
    items_load(loader, DRAWN, loader->items);
}

static void setup(struct run *run)
{
    struct data_loader *loader = (struct data_loader *)run_host_alloc(sizeof *loader);
    int64_t items = *(const int64_t *)run->size->params, one = 1;
    int64_t coefficients[] = { items,         LOADER_CHANNELS, LOADER_BLOCKS,
                               LOADER_BLOCKS, LOADER_BLOCK,    LOADER_BLOCK };
    int64_t basis[] = { LOADER_BLOCK, LOADER_BLOCK };
    int64_t images[] = { items, LOADER_CROP, LOADER_CROP, LOADER_CHANNELS };
    int64_t parameters[] = { items, LOADER_PARAMETERS };
    const void *seed;

    loader->items = items;
    loader->coefficients =
        run_input_f32(run, "coefficients", 6, coefficients, FILL_UNIFORM);
    loader->basis = run_input_f32(run, "basis", 2, basis, FILL_UNIFORM);
    seed = run_input(run, "generator_seed", DTYPE_INT64, 1, &one, FILL_INDEX,
                     INT64_C(1) << 40)
               ->data;
    CUDA_TRY(
        cudaMemcpy(&loader->seed, seed, sizeof loader->seed, cudaMemcpyDeviceToHost));
    loader->images = run_output_f32(run, "images", 4, images);
    loader->parameters =
        (int32_t *)run_output(run, "parameters", DTYPE_INT32, 2, parameters)->data;
    loader->state =
        (unsigned long long *)run_alloc(run, LOADER_PIPELINES * sizeof *loader->state);
    run->state = loader;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "the blocks share one pseudorandom number generator",
      .algorithm = "shared generator, drawn when a stage is reached",
      .control = true,
      .compute = compute_unordered },
    { .name = "prng_per_item",
      .algorithm = "generator an item",
      .compute = compute_per_item },
    { .name = "drawn_serially",
      .summary = "the host draws all parameters, then all blocks work without state",
      .algorithm = "drawn by one thread, used by all",
      .compute = compute_drawn_serially },
    { .name = "one_thread",
      .summary = "one block loads everything",
      .algorithm = "shared generator, one thread",
      .compute = compute_one_thread },
    { .name = "sharded",
      .algorithm = "generator a shard, four shards",
      .compute = compute_sharded },
    { .name = "validation_shares",
      .summary = "one block trains, another validates: they share one generator",
      .algorithm = "shared generator, training beside validation",
      .control = true,
      .compute = compute_validation_shares },
    { .name = "validation_apart",
      .algorithm = "generator a pipeline, training beside validation",
      .compute = compute_validation_apart },
};

CUDA_TWIN(data_loader, 1, variants, setup);
