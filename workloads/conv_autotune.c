/* Auto-tuning: 3x3 convolutions (stride 1, padding 1) whose algorithms are chosen by
 * time, y[n,h,w,k] = sum over kh,kw,c of x[n, h+kh-1, w+kw-1, c] * w[kh,kw,c,k]. The
 * channels k of y are those of four branches side by side, as in an Inception block: four
 * convolutions of one input, each with an algorithm of its own.
 *
 * Every algorithm here is deterministic and adds the same products, each in an order of
 * its own: the choice is the only source of a difference.  They do the same number of
 * instructions, so hardly anything but chance tells their times apart.
 *
 * `cached` stores the choice once for each environment and case; choice.h says where. */
#include "workloads/conv_autotune.h"

#include <stdio.h>
#include <string.h>

#include "workloads/shared/probing.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/tuning/choice.h"
#include "workloads/workload.h"

enum { TILE = 16, STEPS_MAX = 144, NAME_SIZE = 24 };

/* A loop nest over rows and columns of taps and over blocks of input channels, from the
 * outside in; within a block channels follow in order.  "back" counts the nest down. */
struct algorithm {
    const char *nest; /* a permutation of "hwc" */
    int64_t block;    /* input channels, which it needs a multiple of */
    bool back;
};

/* Those with the larger blocks are faster and can do less. */
static const struct algorithm algorithms[] = {
    { "chw", 16, false }, { "cwh", 16, false }, { "hcw", 16, false },
    { "wch", 16, false }, { "hwc", 16, false }, { "whc", 16, false },
    { "chw", 16, true },  { "cwh", 16, true },  { "hcw", 16, true },
    { "wch", 16, true },  { "hwc", 16, true },  { "whc", 16, true },
    { "chw", 4, false },  { "hcw", 4, false },  { "hwc", 4, false },
    { "chw", 4, true },   { "hcw", 4, true },   { "hwc", 4, true },
};

static const char *const algorithm_names[] = {
    "direct-chw-16",      "direct-cwh-16",      "direct-hcw-16",
    "direct-wch-16",      "direct-hwc-16",      "direct-whc-16",
    "direct-chw-16-back", "direct-cwh-16-back", "direct-hcw-16-back",
    "direct-wch-16-back", "direct-hwc-16-back", "direct-whc-16-back",
    "direct-chw-4",       "direct-hcw-4",       "direct-hwc-4",
    "direct-chw-4-back",  "direct-hcw-4-back",  "direct-hwc-4-back",
};

enum { ALGORITHMS = COUNT_OF(algorithms) };

/* One turn of the nest. */
struct step {
    int32_t tap, channel;
};

struct plan {
    int64_t block;
    int64_t steps;
    struct step step[STEPS_MAX];
};

struct conv_autotune {
    const struct autotune_shape *shape;
    const float *x, *w;
    float *y;
    float *trial_y; /* the output of a trial: one row of pixels */
    struct plan plans[ALGORITHMS];
    int chosen[BRANCHES];
    char names[BRANCHES * NAME_SIZE]; /* of the chosen */
};

typedef float lanes
    __attribute__((vector_size(TILE * sizeof(float)), aligned(sizeof(float)), may_alias));

static bool algorithm_works(int algorithm, const struct autotune_shape *shape)
{
    return shape->in_channels % algorithms[algorithm].block == 0;
}

static void plan_make(int algorithm, const struct autotune_shape *shape,
                      struct plan *ret_plan)
{
    const char *nest = algorithms[algorithm].nest;
    bool back = algorithms[algorithm].back;
    int64_t block = algorithms[algorithm].block, trips[3], at[3], turn = 0;

    for (int i = 0; i < 3; i++) {
        trips[i] = nest[i] == 'c' ? shape->in_channels / block : AUTOTUNE_SIDE;
    }
    ret_plan->block = block;
    ret_plan->steps = trips[0] * trips[1] * trips[2];
    for (at[0] = 0; at[0] < trips[0]; at[0]++) {
        for (at[1] = 0; at[1] < trips[1]; at[1]++) {
            for (at[2] = 0; at[2] < trips[2]; at[2]++, turn++) {
                int64_t row = at[strchr(nest, 'h') - nest];
                int64_t column = at[strchr(nest, 'w') - nest];
                int64_t channel = at[strchr(nest, 'c') - nest] * block;

                ret_plan->step[back ? ret_plan->steps - 1 - turn : turn] =
                    (struct step){ (int32_t)(row * AUTOTUNE_SIDE + column),
                                   (int32_t)channel };
            }
        }
    }
}

/* Output channels [K, K + TILE) of one pixel. */
static void tile_compute(const struct conv_autotune *conv, const struct plan *plan,
                         int64_t image, int64_t h, int64_t w, int64_t k, float *y)
{
    const struct autotune_shape *s = conv->shape;
    lanes sum = { 0 };

    for (int64_t i = 0; i < plan->steps; i++) {
        const struct step *step = &plan->step[i];
        int64_t row = h + step->tap / AUTOTUNE_SIDE - 1,
                column = w + step->tap % AUTOTUNE_SIDE - 1;
        const float *x =
            conv->x + ((image * s->height + row) * s->width + column) * s->in_channels +
            step->channel;
        const float *weights =
            conv->w + (step->tap * s->in_channels + step->channel) * s->out_channels + k;

        if (row < 0 || row >= s->height || column < 0 || column >= s->width) {
            continue;
        }
        for (int64_t c = 0; c < plan->block; c++) {
            sum += x[c] * *(const lanes *)(weights + c * s->out_channels);
        }
    }
    *(lanes *)y = sum;
}

/* One row of pixels of one branch. */
static void row_compute(const struct conv_autotune *conv, int algorithm, int64_t branch,
                        int64_t image, int64_t h, float *y)
{
    const struct autotune_shape *s = conv->shape;
    int64_t channels = s->out_channels / BRANCHES;

    for (int64_t w = 0; w < s->width; w++) {
        for (int64_t k = branch * channels; k < (branch + 1) * channels; k += TILE) {
            tile_compute(conv, &conv->plans[algorithm], image, h, w, k,
                         y + w * s->out_channels + k);
        }
    }
}

static void conv_probe(struct run *run)
{
    const struct conv_autotune *conv = run->state;
    const struct autotune_shape *s = conv->shape;
    int64_t pixels = s->images * s->height * s->width;
    int64_t channels = s->in_channels * s->out_channels;
    const struct probe_value in[] = {
        probe_floats("x", conv->x, pixels * s->in_channels),
        probe_floats("w", conv->w, AUTOTUNE_TAPS * channels),
        probe_ints("algorithms", conv->chosen, BRANCHES),
    };
    struct probe_value out = probe_floats("y", conv->y, pixels * s->out_channels);

    if (run_probing(run, 0)) {
        run_probe(run, 0, "algorithm/branches", NULL, 0, &in[2], 1);
        run_probe(run, 0, "conv/forward", in, COUNT_OF(in), &out, 1);
    }
}

static void compute(struct run *run)
{
    const struct conv_autotune *conv = run->state;
    const struct autotune_shape *s = conv->shape;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t row = 0; row < s->images * s->height; row++) {
        for (int64_t branch = 0; branch < BRANCHES; branch++) {
            row_compute(conv, conv->chosen[branch], branch, row / s->height,
                        row % s->height, conv->y + row * s->width * s->out_channels);
        }
    }
    conv_probe(run);
}

struct trial {
    const struct conv_autotune *conv;
    int64_t branch;
};

static void trial_cb(void *context, int algorithm)
{
    const struct trial *trial = context;

    row_compute(trial->conv, algorithm, trial->branch, 0, trial->conv->shape->height / 2,
                trial->conv->trial_y);
}

static void choose_by_time(struct conv_autotune *conv)
{
    int working[ALGORITHMS], count = 0;

    for (int i = 0; i < ALGORITHMS; i++) {
        if (algorithm_works(i, conv->shape)) {
            working[count++] = i;
        }
    }
    for (int branch = 0; branch < BRANCHES; branch++) {
        struct trial trial = { conv, branch };

        conv->chosen[branch] = choice_by_time(trial_cb, &trial, working, count);
    }
}

static void choose_first(struct conv_autotune *conv)
{
    int algorithm = 0;

    while (!algorithm_works(algorithm, conv->shape)) {
        algorithm++;
    }
    for (int branch = 0; branch < BRANCHES; branch++) {
        conv->chosen[branch] = algorithm;
    }
}

static void choose(struct run *run, struct conv_autotune *conv)
{
    if (strcmp(run->variant->name, "autotune") == 0) {
        choose_by_time(conv);
    } else if (strcmp(run->variant->name, "cached") != 0) {
        choose_first(conv);
    } else if (!choice_load(run, algorithm_names, ALGORITHMS, BRANCHES, conv->chosen)) {
        choose_by_time(conv);
        choice_store(run, algorithm_names, ALGORITHMS, BRANCHES, conv->chosen);
    }
    conv->names[0] = '\0';
    for (int branch = 0; branch < BRANCHES; branch++) {
        size_t length = strlen(conv->names);

        snprintf(conv->names + length, sizeof conv->names - length, "%s%s",
                 branch ? " " : "", algorithm_names[conv->chosen[branch]]);
    }
    run->algorithm = conv->names;
}

static const char *single_unsupported(const struct run *run)
{
    return algorithm_works(0, run->size->params)
               ? NULL
               : "No algorithm worked!  The only deterministic one needs a multiple of "
                 "16 input channels";
}

static void setup(struct run *run)
{
    const struct autotune_shape *s = run->size->params;
    struct conv_autotune *conv = run_host_alloc(sizeof *conv);
    int64_t x_shape[] = { s->images, s->height, s->width, s->in_channels };
    int64_t w_shape[] = { AUTOTUNE_SIDE, AUTOTUNE_SIDE, s->in_channels, s->out_channels };
    int64_t y_shape[] = { s->images, s->height, s->width, s->out_channels };

    conv->shape = s;
    conv->x = run_input_f32(run, "x", 4, x_shape, FILL_WIDE);
    conv->w = run_input_f32(run, "w", 4, w_shape, FILL_UNIFORM);
    conv->y = run_output_f32(run, "y", 4, y_shape);
    conv->trial_y = run_alloc_f32(run, s->height * s->width * s->out_channels);
    for (int i = 0; i < ALGORITHMS; i++) {
        if (algorithm_works(i, s)) {
            plan_make(i, s, &conv->plans[i]);
        }
    }
    choose(run, conv);
    run->state = conv;
}

void conv_autotune_reference(const struct run *run, const struct tensor *inputs,
                             const struct tensor *output, double *ret_expected,
                             double *ret_bound)
{
    const struct autotune_shape *s = run->size->params;
    const float *x = inputs[0].data, *weights = inputs[1].data;
    struct exact_sums exact =
        sums_begin(run, AUTOTUNE_TAPS * s->in_channels, output, ret_expected, ret_bound);

    for (int64_t pixel = 0; pixel < tensor_elements(output) / s->out_channels; pixel++) {
        int64_t h = pixel / s->width % s->height, w = pixel % s->width;

        for (int64_t tap = 0; tap < AUTOTUNE_TAPS; tap++) {
            int64_t down = tap / AUTOTUNE_SIDE - 1, right = tap % AUTOTUNE_SIDE - 1;
            const float *from = x + (pixel + down * s->width + right) * s->in_channels;

            if (h + down < 0 || h + down >= s->height || w + right < 0 ||
                w + right >= s->width) {
                continue;
            }
            for (int64_t c = 0; c < s->in_channels; c++) {
                sums_add_scaled(&exact, pixel * s->out_channels, from[c],
                                weights + (tap * s->in_channels + c) * s->out_channels,
                                s->out_channels);
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "autotune",
      .summary = "each process times every algorithm and takes the fastest",
      .models = "TensorFlow's auto-tuning: cudnnFindConvolutionForwardAlgorithm and its "
                "kin, at the first step of a process",
      .algorithm = "the fastest of those that work",
      .control = true,
      .kind = "choice",
      .compute = compute },
    { .name = "fixed",
      .summary = "the first of a fixed list of algorithms that works",
      .models = "TF_CUDNN_DETERMINISTIC and TF_DETERMINISTIC_OPS: no auto-tuning, a list "
                "of deterministic algorithms (TF 2.2, NGC 19.12)",
      .algorithm = "the first of those that work",
      .compute = compute },
    { .name = "single",
      .summary = "one algorithm or none: \"No algorithm worked!\" where it cannot",
      .models = "TF_CUDNN_DETERMINISTIC before TF 2.2 and NGC 19.12: one deterministic "
                "algorithm",
      .algorithm = "direct-chw-16",
      .compute = compute,
      .unsupported = single_unsupported },
    { .name = "cached",
      .summary = "a timed choice, made once for each environment and case, then stored",
      .models = "timing caches: a choice stored for device, libraries and shape",
      .algorithm = "the stored choice",
      .compute = compute },
};

static const struct workload_size sizes[] = {
    { "small", "x[4,14,14,32] w[3,3,32,64] y[4,14,14,64]",
      &(const struct autotune_shape){ 4, 14, 14, 32, 64 } },
    { "narrow", "x[4,14,14,24] w[3,3,24,64] y[4,14,14,64]",
      &(const struct autotune_shape){ 4, 14, 14, 24, 64 } },
    { "medium", "x[64,28,28,64] w[3,3,64,64] y[64,28,28,64]",
      &(const struct autotune_shape){ 64, 28, 28, 64, 64 } },
    { "large", "x[128,56,56,64] w[3,3,64,64] y[128,56,56,64]",
      &(const struct autotune_shape){ 128, 56, 56, 64, 64 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(24747, "TF_CUDNN_DETERMINISTIC turns auto-tuning off", "merged 2020-06",
                  "TF 1.14"),
    TENSORFLOW_COMMIT(c27909ea, 80e8823dbf4f7176ab69991a630356a1,
                      "tests without auto-tuning", "merged 2020-06", "TF 1.14"),
    TENSORFLOW_NOTE(29667, "release note about TF_CUDNN_DETERMINISTIC", "merged 2020-06",
                    "TF 1.14"),
    TENSORFLOW_NOTE(31389, "the same release note, made more precise", "merged 2020-06",
                    "TF 1.14"),
    TENSORFLOW_NOTE(33483, "a slip in the release note of v2.0.0", "merged 2020-06",
                    "TF 2.1"),
    TENSORFLOW_NOTE(32979, "the same slip; closed without being merged", "closed 2020-06",
                    NULL),
    TENSORFLOW_PR(34951,
                  "several deterministic algorithms instead of one: no more \"No "
                  "algorithm worked!\"",
                  "merged 2020-06", "TF 2.2"),
    TENSORFLOW_ISSUE(
        53771,
        "the choice is timed again since TF 2.5, unless TF_CUDNN_USE_FRONTEND is 1",
        "open 2023-07", "TF 2.8"),
    TENSORFLOW_COMMIT(
        ced762bd, 4986dfad83ccf6d57e4e4fa3e47bd3fe,
        "the choice no longer depends on time when determinism is asked for",
        "merged 2023-07", "TF 2.8"),
    GTC_SLIDES("slide 29", "auto-tuning as a source, TF_CUDNN_DETERMINISTIC", NULL),
    GTC_SLIDES("slide 47", "inference: turn auto-tuning off", NULL),
    TENSORFLOW_PR(53826, "the same change, for the branch of TF 2.8", "merged 2023-07",
                  "TF 2.8"),
    TENSORFLOW_NOTE(53847, "release note about the choice of algorithms",
                    "merged 2023-07", "TF 2.8"),
};

static const struct workload conv_autotune = {
    .name = "conv_autotune",
    .version = 1,
    .title = "TF auto-tuning of cuDNN convolution algorithms",
    .summary = "four 3x3 convolutions, each by one of 18 deterministic algorithms",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of y",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = conv_autotune_reference,
};
WORKLOAD_REGISTER(conv_autotune);
