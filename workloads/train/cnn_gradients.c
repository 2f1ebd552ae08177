#include "workloads/train/cnn_gradients.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "workloads/train/cnn_image.h"

/* The layers of the network for one image, each in one fixed order, in float32.
 *
 * Convolved images are padded: [side + 2][side + 2][channels], with a border of zeros
 * that nobody writes.  Pooling has padding 1 too: window (r, c) covers rows 2r-1 .. 2r+1,
 * as far as they exist. */

/* Convolution of a padded image of SIDE * SIDE pixels with taps [FIRST_TAP, END_TAP) of
 * WEIGHTS [9][in][out].  SIDE is a multiple of 4, OUT of 8. */
struct convolution {
    int64_t side, in, out;
    int first_tap, end_tap;
    const float *weights;
    const float *bias; /* NULL: none, and no ReLU either */
};

enum { SIDE_TAPS = 3, TILE_OUT = 8, TILE_PIXELS = 4, TILE_IN = 4 };

typedef float lanes __attribute__((vector_size(TILE_OUT * sizeof(float)),
                                   aligned(sizeof(float)), may_alias));

static int64_t tap_offset(int64_t side, int64_t tap)
{
    return tap / SIDE_TAPS * (side + 2) + tap % SIDE_TAPS;
}

/* Four neighbouring pixels by eight output channels, which stay in registers. */
static void tile_convolve(const struct convolution *conv, const float *x, int64_t channel,
                          float *y)
{
    int64_t in = conv->in, out = conv->out;
    lanes sum0 = { 0 }, sum1 = { 0 }, sum2 = { 0 }, sum3 = { 0 };

    if (conv->bias) {
        sum0 = sum1 = sum2 = sum3 = *(const lanes *)(conv->bias + channel);
    }
    for (int64_t tap = conv->first_tap; tap < conv->end_tap; tap++) {
        const float *from = x + tap_offset(conv->side, tap) * in;
        const float *weights = conv->weights + tap * in * out + channel;

        for (int64_t c = 0; c < in; c++, weights += out) {
            lanes weight = *(const lanes *)weights;

            sum0 += from[c] * weight;
            sum1 += from[c + in] * weight;
            sum2 += from[c + 2 * in] * weight;
            sum3 += from[c + 3 * in] * weight;
        }
    }
    *(lanes *)y = sum0;
    *(lanes *)(y + out) = sum1;
    *(lanes *)(y + 2 * out) = sum2;
    *(lanes *)(y + 3 * out) = sum3;
}

/* Writes y[side][side][out]; with a bias, the ReLU of the sum. */
static void convolve(const struct convolution *conv, const float *x, float *y)
{
    int64_t side = conv->side, elements = side * side * conv->out;

    for (int64_t pixel = 0; pixel < side * side; pixel += TILE_PIXELS) {
        int64_t corner = pixel / side * (side + 2) + pixel % side;

        for (int64_t channel = 0; channel < conv->out; channel += TILE_OUT) {
            tile_convolve(conv, x + corner * conv->in, channel,
                          y + pixel * conv->out + channel);
        }
    }
    for (int64_t i = 0; conv->bias && i < elements; i++) {
        y[i] = y[i] > 0 ? y[i] : 0;
    }
}

/* Four input channels by eight output channels of one tap. */
static void tile_weights(const struct convolution *conv, const float *x, const float *dy,
                         float *dw)
{
    int64_t side = conv->side, in = conv->in, out = conv->out;
    lanes sum0 = { 0 }, sum1 = { 0 }, sum2 = { 0 }, sum3 = { 0 };

    for (int64_t row = 0; row < side; row++) {
        for (int64_t pixel = row * (side + 2); pixel < row * (side + 2) + side; pixel++) {
            const float *from = x + pixel * in;
            lanes gradient = *(const lanes *)(dy + (pixel + side + 3) * out);

            sum0 += from[0] * gradient;
            sum1 += from[1] * gradient;
            sum2 += from[2] * gradient;
            sum3 += from[3] * gradient;
        }
    }
    *(lanes *)dw = sum0;
    *(lanes *)(dw + out) = sum1;
    *(lanes *)(dw + 2 * out) = sum2;
    *(lanes *)(dw + 3 * out) = sum3;
}

/* One input channel by eight output channels of one tap. */
static void column_weights(const struct convolution *conv, const float *x,
                           const float *dy, float *dw)
{
    int64_t side = conv->side;
    lanes sum = { 0 };

    for (int64_t row = 0; row < side; row++) {
        for (int64_t pixel = row * (side + 2); pixel < row * (side + 2) + side; pixel++) {
            sum += x[pixel * conv->in] *
                   *(const lanes *)(dy + (pixel + side + 3) * conv->out);
        }
    }
    *(lanes *)dw = sum;
}

/* Writes the gradient of all taps' weights for the padded upstream gradient DY. */
static void convolve_weights(const struct convolution *conv, const float *x,
                             const float *dy, float *dw)
{
    for (int64_t tap = 0; tap < CNN_TAPS; tap++) {
        for (int64_t channel = 0; channel < conv->out; channel += TILE_OUT) {
            const float *from = x + tap_offset(conv->side, tap) * conv->in;
            float *to = dw + tap * conv->in * conv->out + channel;
            int64_t c = 0;

            for (; c + TILE_IN <= conv->in; c += TILE_IN) {
                tile_weights(conv, from + c, dy + channel, to + c * conv->out);
            }
            for (; c < conv->in; c++) {
                column_weights(conv, from + c, dy + channel, to + c * conv->out);
            }
        }
    }
}

static void window_pool(int64_t side, int64_t channels, const float *x, int64_t row,
                        int64_t column, float *y, uint8_t *winners)
{
    for (int64_t c = 0; c < channels; c++) {
        y[c] = -INFINITY;
    }
    for (int tap = 0; tap < CNN_TAPS; tap++) {
        int64_t h = 2 * row + tap / SIDE_TAPS - 1, w = 2 * column + tap % SIDE_TAPS - 1;
        const float *from = x + (h * side + w) * channels;

        if (h < 0 || w < 0) { /* side is even: no window ends beyond it */
            continue;
        }
        for (int64_t c = 0; c < channels; c++) {
            winners[c] = from[c] > y[c] ? (uint8_t)tap : winners[c];
            y[c] = from[c] > y[c] ? from[c] : y[c];
        }
    }
}

/* Writes the maxima of the windows to the padded image Y, and to WINNERS which tap of
 * each window was the first to have it.  SIDE is that of X [side][side][channels]. */
static void pool(int64_t side, int64_t channels, const float *x, float *y,
                 uint8_t *winners)
{
    for (int64_t row = 0; row < side / 2; row++) {
        for (int64_t column = 0; column < side / 2; column++) {
            int64_t i = (row * (side / 2) + column) * channels;

            window_pool(side, channels, x, row, column, y + padded(side / 2, channels, i),
                        winners + i);
        }
    }
}

enum { CHANNELS_MAX = 256 };

/* Neighbouring tasks go in opposite directions: two threads that add at the same time
 * meet somewhere, and nanoseconds decide where. */
static void add_atomically(float *to, const float *from, int64_t count, bool down)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t at = down ? count - 1 - i : i;

#pragma omp atomic
        to[at] += from[at];
    }
}

static struct convolution convolution1(const struct cnn *cnn)
{
    return (struct convolution){
        .side = cnn->shape->side,
        .in = 1,
        .out = cnn->shape->channels1,
        .end_tap = CNN_TAPS,
        .weights = cnn->variables + cnn->layout.weights1,
        .bias = cnn->variables + cnn->layout.bias1,
    };
}

static struct convolution convolution2(const struct cnn *cnn)
{
    return (struct convolution){
        .side = cnn->shape->side / 2,
        .in = cnn->shape->channels1,
        .out = cnn->shape->channels2,
        .end_tap = CNN_TAPS,
        .weights = cnn->variables + cnn->layout.weights2,
        .bias = cnn->variables + cnn->layout.bias2,
    };
}

/* The gradient of convolution2 with respect to its input, as a convolution. */
static struct convolution convolution2_back(const struct cnn *cnn, int first_tap,
                                            int end_tap)
{
    return (struct convolution){
        .side = cnn->shape->side / 2,
        .in = cnn->shape->channels2,
        .out = cnn->shape->channels1,
        .first_tap = first_tap,
        .end_tap = end_tap,
        .weights = cnn->flipped,
    };
}

static void image_load(const struct cnn *cnn, struct image *image, int64_t example)
{
    int64_t pixels = cnn->shape->side * cnn->shape->side;
    const float *pattern = cnn->inputs.patterns + cnn->inputs.labels[example] * pixels;
    const float *noise = cnn->inputs.noises + example * pixels;

    for (int64_t i = 0; i < pixels; i++) {
        image->x[padded(cnn->shape->side, 1, i)] = pattern[i] + CNN_NOISE * noise[i];
    }
}

/* Dropout, dense layer and loss, there and back. */
static void image_classify(const struct cnn *cnn, struct image *image, int64_t label,
                           const int32_t *drops)
{
    const struct cnn_layout *l = &cnn->layout;
    const float *weights = cnn->variables + l->weights3;
    float logits[CNN_CLASSES];

    memcpy(logits, cnn->variables + l->bias3, sizeof logits);
    for (int64_t f = 0; f < l->features; f++) {
        int64_t at = padded(cnn->shape->side / 4, cnn->shape->channels2, f);

        image->features[f] = drops[f] ? image->pooled2[at] * CNN_KEEP_SCALE : 0;
        for (int c = 0; c < CNN_CLASSES; c++) {
            logits[c] += image->features[f] * weights[f * CNN_CLASSES + c];
        }
    }
    *image->loss = cross_entropy(logits, CNN_CLASSES, label, cnn->shape->batch);
    for (int64_t f = 0; f < l->features; f++) {
        float sum = 0;

        for (int c = 0; c < CNN_CLASSES; c++) {
            sum += logits[c] * weights[f * CNN_CLASSES + c];
            image->part[l->weights3 + f * CNN_CLASSES + c] =
                image->features[f] * logits[c];
        }
        image->d_features[f] = drops[f] ? sum * CNN_KEEP_SCALE : 0;
    }
    memcpy(image->part + l->bias3, logits, sizeof logits);
    memcpy(image->d_logits, logits, sizeof logits);
}

static void image_forward(const struct cnn *cnn, int64_t step, int64_t b)
{
    const struct cnn_shape *s = cnn->shape;
    struct image *image = &cnn->images[b];
    struct convolution first = convolution1(cnn), second = convolution2(cnn);
    int64_t at = step * s->batch + b, example = cnn->inputs.order[at];
    int64_t half = s->side / 2 + 2, whole = s->side + 2;

    image_load(cnn, image, example);
    convolve(&first, image->x, image->active1);
    pool(s->side, s->channels1, image->active1, image->pooled1, image->winners1);
    convolve(&second, image->pooled1, image->active2);
    pool(s->side / 2, s->channels2, image->active2, image->pooled2, image->winners2);
    image_classify(cnn, image, cnn->inputs.labels[example],
                   cnn->inputs.drops + at * cnn->layout.features);
    memset(image->d_sum2, 0, (size_t)(half * half * s->channels2) * sizeof(float));
    memset(image->d_sum1, 0, (size_t)(whole * whole * s->channels1) * sizeof(float));
    memset(image->d_pooled1, 0,
           (size_t)(s->side / 2 * (s->side / 2) * s->channels1) * sizeof(float));
}

/* A pooling layer's backward pass: each window of rows [BEGIN, END) adds to its winner.
 */
struct unpooling {
    int64_t side, channels;
    const uint8_t *winners;
    const float *dy;
    float *dx;
};

static struct unpooling unpooling1(const struct cnn *cnn, const struct image *image)
{
    return (struct unpooling){ cnn->shape->side, cnn->shape->channels1, image->winners1,
                               image->d_pooled1, image->d_sum1 };
}

static struct unpooling unpooling2(const struct cnn *cnn, const struct image *image)
{
    return (struct unpooling){ cnn->shape->side / 2, cnn->shape->channels2,
                               image->winners2, image->d_features, image->d_sum2 };
}

static void unpool(const struct unpooling *u)
{
    int64_t count = u->side / 2 * (u->side / 2) * u->channels;

    for (int64_t i = 0; i < count; i++) {
        u->dx[pool_winner(u->side, u->channels, i, u->winners[i])] += u->dy[i];
    }
}

static void unpool_row_atomically(const struct unpooling *u, int64_t row)
{
    int64_t count = u->side / 2 * u->channels;

    for (int64_t step = 0; step < count; step++) {
        int64_t i = row * count + (row % 2 ? count - 1 - step : step);
        float *dx = u->dx + pool_winner(u->side, u->channels, i, u->winners[i]);

#pragma omp atomic
        *dx += u->dy[i];
    }
}

/* Where the ReLU was shut nothing comes back. */
static void relu_mask(int64_t side, int64_t channels, const float *active, float *d_sum)
{
    int64_t row_elements = side * channels;

    for (int64_t row = 0; row < side; row++) {
        float *to = d_sum + ((row + 1) * (side + 2) + 1) * channels;

        for (int64_t i = 0; i < row_elements; i++) {
            to[i] = active[row * row_elements + i] > 0 ? to[i] : 0;
        }
    }
}

/* The bias gradient of one image: row by row into TO, with atomic adds or, beginning with
 * zeros, in order. */
static void bias_gradient(int64_t side, int64_t channels, const float *d_sum, float *to,
                          bool atomically, bool down)
{
    float row_sum[CHANNELS_MAX];

    if (!atomically) {
        memset(to, 0, (size_t)channels * sizeof(float));
    }
    for (int64_t row = 0; row < side; row++) {
        const float *from = d_sum + ((row + 1) * (side + 2) + 1) * channels;

        memset(row_sum, 0, (size_t)channels * sizeof(float));
        for (int64_t i = 0; i < side; i++) {
            for (int64_t c = 0; c < channels; c++) {
                row_sum[c] += from[i * channels + c];
            }
        }
        if (atomically) {
            add_atomically(to, row_sum, channels, down);
        }
        for (int64_t c = 0; c < channels && !atomically; c++) {
            to[c] += row_sum[c];
        }
    }
}

static void image_bias_gradients(const struct cnn *cnn, int64_t b, int layer, bool racing)
{
    const struct cnn_shape *s = cnn->shape;
    const struct image *image = &cnn->images[b];
    float *to = racing ? cnn->gradient : image->part;

    if (layer == 1) {
        bias_gradient(s->side, s->channels1, image->d_sum1, to + cnn->layout.bias1,
                      racing, b % 2);
    } else {
        bias_gradient(s->side / 2, s->channels2, image->d_sum2, to + cnn->layout.bias2,
                      racing, b % 2);
    }
}

/* Everything about one image, by one thread.  Only bias gradients may race. */
static void image_gradients(const struct cnn *cnn, int64_t step, int64_t b, bool racing)
{
    const struct cnn_shape *s = cnn->shape;
    struct image *image = &cnn->images[b];
    struct unpooling first = unpooling1(cnn, image), second = unpooling2(cnn, image);
    struct convolution conv1 = convolution1(cnn), conv2 = convolution2(cnn);
    struct convolution back = convolution2_back(cnn, 0, CNN_TAPS);

    image_forward(cnn, step, b);
    unpool(&second);
    relu_mask(s->side / 2, s->channels2, image->active2, image->d_sum2);
    image_bias_gradients(cnn, b, 2, racing);
    convolve_weights(&conv2, image->pooled1, image->d_sum2,
                     image->part + cnn->layout.weights2);
    convolve(&back, image->d_sum2, image->d_pooled1);
    unpool(&first);
    relu_mask(s->side, s->channels1, image->active1, image->d_sum1);
    image_bias_gradients(cnn, b, 1, racing);
    convolve_weights(&conv1, image->x, image->d_sum1, image->part + cnn->layout.weights1);
    if (racing) {
        add_atomically(cnn->gradient + cnn->layout.bias3, image->part + cnn->layout.bias3,
                       CNN_CLASSES, b % 2);
    }
}

/* The gradients of one layer's weights and biases from one image, with atomic adds. */
static void image_layer_atomically(const struct cnn *cnn, int64_t b, int layer)
{
    const struct image *image = &cnn->images[b];
    struct convolution conv = layer == 1 ? convolution1(cnn) : convolution2(cnn);
    int64_t first = layer == 1 ? cnn->layout.weights1 : cnn->layout.weights2;

    convolve_weights(&conv, layer == 1 ? image->x : image->pooled1,
                     layer == 1 ? image->d_sum1 : image->d_sum2, image->part + first);
    image_bias_gradients(cnn, b, layer, true);
    add_atomically(cnn->gradient + first, image->part + first,
                   CNN_TAPS * conv.in * conv.out, b % 2);
}

/* The gradient of the second convolution's input, a row of taps each task. */
static void back_atomically(const struct cnn *cnn, int64_t b, int tap_row)
{
    struct convolution back = convolution2_back(cnn, 3 * tap_row, 3 * tap_row + 3);
    float *part = cnn->scratch + omp_get_thread_num() * cnn->scratch_floats;

    convolve(&back, cnn->images[b].d_sum2, part);
    add_atomically(cnn->images[b].d_pooled1, part, back.side * back.side * back.out,
                   tap_row % 2);
}

/* What is done with an image, one stage after the other; the tasks of a stage meet in
 * atomic adds.  No stage waits for another image: a barrier after each would leave a team
 * on a loaded machine taking turns, one stage each, and that is an order. */
enum stage { FORWARD, UNPOOL2, LAYER2, UNPOOL1, LAYER1, STAGES };

static int stage_tasks(const struct cnn *cnn, enum stage stage)
{
    switch (stage) {
    case UNPOOL2:
        return (int)cnn->shape->side / 4;
    case LAYER2:
        return 4;
    case UNPOOL1:
        return (int)cnn->shape->side / 2;
    default:
        return 1;
    }
}

static void task_run(const struct cnn *cnn, int64_t step, int64_t b, enum stage stage,
                     int task)
{
    const struct image *image = &cnn->images[b];
    struct unpooling u =
        stage == UNPOOL2 ? unpooling2(cnn, image) : unpooling1(cnn, image);

    if (stage == FORWARD) {
        image_forward(cnn, step, b);
        add_atomically(cnn->gradient + cnn->layout.bias3, image->part + cnn->layout.bias3,
                       CNN_CLASSES, b % 2);
    } else if (stage == UNPOOL2 || stage == UNPOOL1) {
        unpool_row_atomically(&u, task);
    } else if (stage == LAYER2 && task < 3) {
        back_atomically(cnn, b, task);
    } else {
        image_layer_atomically(cnn, b, stage == LAYER1 ? 1 : 2);
    }
}

/* Hands out the tasks of STAGE; whoever ends its last one goes on with the next stage. */
static void stage_begin(const struct cnn *cnn, int64_t step, int64_t b, enum stage stage)
{
    const struct cnn_shape *s = cnn->shape;
    struct image *image = &cnn->images[b];
    int tasks = stage_tasks(cnn, stage);

    if (stage == LAYER2) {
        relu_mask(s->side / 2, s->channels2, image->active2, image->d_sum2);
    }
    if (stage == LAYER1) {
        relu_mask(s->side, s->channels1, image->active1, image->d_sum1);
    }
    image->pending = tasks;
    for (int task = 0; task < tasks; task++) {
#pragma omp task firstprivate(cnn, image, step, b, stage, task)
        {
            task_run(cnn, step, b, stage, task);
            if (__atomic_sub_fetch(&image->pending, 1, __ATOMIC_ACQ_REL) == 0 &&
                stage + 1 < STAGES) {
                stage_begin(cnn, step, b, stage + 1);
            }
        }
    }
}

static void gradients_unordered(const struct cnn *cnn, int64_t step)
{
#pragma omp single
    for (int64_t b = 0; b < cnn->shape->batch; b++) {
        stage_begin(cnn, step, b, FORWARD);
    }
}

static void gradients_by_image(const struct cnn *cnn, int64_t step, bool racing)
{
#pragma omp for schedule(dynamic, 1)
    for (int64_t b = 0; b < cnn->shape->batch; b++) {
        image_gradients(cnn, step, b, racing);
    }
}

void cnn_gradients(const struct cnn *cnn, int64_t step, enum racing racing)
{
    if (racing == RACING_ALL) {
        gradients_unordered(cnn, step);
    } else {
        gradients_by_image(cnn, step, racing == RACING_BIAS);
    }
}
