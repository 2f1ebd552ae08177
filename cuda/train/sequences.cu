#include "cuda/train/sequences.h"

#include "cuda/kernels/kernel.h"
#include "workloads/shared/ctc_labels.h"

enum { THREADS = 64 /* of a sequence; not fewer than hidden units */ };

#define THREAD_FOR(i, count) for (int i = (int)threadIdx.x; i < (count); i += THREADS)

/* One sequence, in shared memory. */
struct sequence {
    float v[RNN_VARIABLES];
    float x[RNN_TIME][RNN_FEATURES];
    float hidden[RNN_TIME + 1][RNN_HIDDEN]; /* hidden[0] is zero */
    float log_probs[RNN_TIME][RNN_SYMBOLS]; /* before: the logits */
    float d_logits[RNN_TIME][RNN_SYMBOLS];
    float log_paths[RNN_TIME][RNN_POSITIONS];
    float d_sums[RNN_TIME][RNN_HIDDEN];
    float onward[RNN_HIDDEN]; /* from the time after: beta, then gradients */
    int32_t labels[RNN_LABELS];
};

__device__ static void load(const struct rnn *rnn, int64_t step, struct sequence *s)
{
    int64_t b = blockIdx.x;
    const int32_t *labels =
        rnn->labels + (step * rnn->shape.batch + b) * (int64_t)RNN_LABELS;
    const float *noise = rnn->noises + b * RNN_TIME * RNN_FEATURES;

    THREAD_FOR(i, RNN_VARIABLES)
    {
        s->v[i] = rnn->variables[i];
    }
    THREAD_FOR(i, RNN_TIME * RNN_FEATURES)
    {
        s->x[i / RNN_FEATURES][i % RNN_FEATURES] =
            rnn_frame(rnn->patterns, noise, labels, i / RNN_FEATURES, i % RNN_FEATURES);
    }
    THREAD_FOR(i, RNN_LABELS)
    {
        s->labels[i] = labels[i];
    }
    THREAD_FOR(i, RNN_HIDDEN)
    {
        s->hidden[0][i] = s->onward[i] = 0;
    }
    __syncthreads();
}

/* Logits to their log softmax. */
__device__ static void symbols_scale(float *logits)
{
    float most = -INFINITY, sum = 0;

    for (int k = 0; k < RNN_SYMBOLS; k++) {
        most = logits[k] > most ? logits[k] : most;
    }
    for (int k = 0; k < RNN_SYMBOLS; k++) {
        sum += exp_f32(logits[k] - most);
    }
    for (int k = 0; k < RNN_SYMBOLS; k++) {
        logits[k] = logits[k] - most - log_f32(sum);
    }
}

__device__ static void forward(struct sequence *s)
{
    for (int t = 0; t < RNN_TIME; t++) {
        THREAD_FOR(i, RNN_HIDDEN)
        {
            float sum = s->v[RNN_BIAS + i];

            for (int f = 0; f < RNN_FEATURES; f++) {
                sum += s->x[t][f] * s->v[RNN_INPUT + f * RNN_HIDDEN + i];
            }
            for (int j = 0; j < RNN_HIDDEN; j++) {
                sum += s->hidden[t][j] * s->v[RNN_RECURRENT + j * RNN_HIDDEN + i];
            }
            s->hidden[t + 1][i] = rnn_tanh(sum);
        }
        __syncthreads();
    }
    THREAD_FOR(n, RNN_TIME * RNN_SYMBOLS)
    {
        int t = n / RNN_SYMBOLS, k = n % RNN_SYMBOLS;
        float sum = 0;

        for (int i = 0; i < RNN_HIDDEN; i++) {
            sum += s->hidden[t + 1][i] * s->v[RNN_OUTPUT + i * RNN_SYMBOLS + k];
        }
        s->log_probs[t][k] = sum;
    }
    __syncthreads();
    THREAD_FOR(t, RNN_TIME)
    {
        symbols_scale(s->log_probs[t]);
    }
    __syncthreads();
}

/* Leaves alpha in log_paths; returns log p, to all threads. */
__device__ static float paths_forward(struct sequence *s)
{
    for (int t = 0; t < RNN_TIME; t++) {
        THREAD_FOR(i, RNN_POSITIONS)
        {
            float before = i < 2 ? 0 : -INFINITY;

            if (t > 0) {
                before = rnn_log_add_three(s->log_paths[t - 1], i, -1, i >= 1,
                                           ctc_may_skip(s->labels, i));
            }
            s->log_paths[t][i] = before + s->log_probs[t][ctc_symbol_at(s->labels, i)];
        }
        __syncthreads();
    }
    return rnn_log_add(s->log_paths[RNN_TIME - 1][RNN_POSITIONS - 1],
                       s->log_paths[RNN_TIME - 1][RNN_POSITIONS - 2]);
}

/* Adds beta to log_paths. */
__device__ static void paths_backward(struct sequence *s)
{
    int i = (int)threadIdx.x;
    bool skips = i + 2 < RNN_POSITIONS && ctc_may_skip(s->labels, (int64_t)i + 2);

    for (int t = RNN_TIME - 1; t >= 0; t--) {
        float beta = i >= RNN_POSITIONS - 2 ? 0 : -INFINITY;

        if (i < RNN_POSITIONS && t < RNN_TIME - 1) {
            beta = rnn_log_add_three(s->onward, i, 1, i + 1 < RNN_POSITIONS, skips);
        }
        __syncthreads();
        if (i < RNN_POSITIONS) {
            s->onward[i] = beta + s->log_probs[t][ctc_symbol_at(s->labels, i)];
            s->log_paths[t][i] += beta;
        }
        __syncthreads();
    }
}

__device__ static void classify(struct sequence *s, float log_p, int64_t batch)
{
    THREAD_FOR(n, RNN_TIME * RNN_SYMBOLS)
    {
        int t = n / RNN_SYMBOLS, k = n % RNN_SYMBOLS;
        float d_logit = exp_f32(s->log_probs[t][k]);

        for (int i = 0; i < RNN_POSITIONS; i++) {
            if (ctc_symbol_at(s->labels, i) == k) {
                d_logit -= exp_f32(s->log_paths[t][i] - log_p);
            }
        }
        s->d_logits[t][k] = d_logit / (float)batch;
    }
    THREAD_FOR(i, RNN_HIDDEN)
    {
        s->onward[i] = 0;
    }
    __syncthreads();
}

/* Back through time. */
__device__ static void backward(struct sequence *s)
{
    int i = (int)threadIdx.x;

    for (int t = RNN_TIME - 1; t >= 0; t--) {
        if (i < RNN_HIDDEN) {
            float hidden = s->hidden[t + 1][i], sum = s->onward[i];

            for (int k = 0; k < RNN_SYMBOLS; k++) {
                sum += s->d_logits[t][k] * s->v[RNN_OUTPUT + i * RNN_SYMBOLS + k];
            }
            s->d_sums[t][i] = sum * (1 - hidden * hidden);
        }
        __syncthreads();
        if (i < RNN_HIDDEN) {
            float sum = 0;

            for (int k = 0; k < RNN_HIDDEN; k++) {
                sum += s->v[RNN_RECURRENT + i * RNN_HIDDEN + k] * s->d_sums[t][k];
            }
            s->onward[i] = sum; /* read by this thread only */
        }
    }
}

/* What time T adds to the gradient of variable N. */
__device__ static float term(const struct sequence *s, int t, int n)
{
    int i = n % RNN_HIDDEN;

    if (n >= RNN_OUTPUT) {
        n -= RNN_OUTPUT;
        return s->hidden[t + 1][n / RNN_SYMBOLS] * s->d_logits[t][n % RNN_SYMBOLS];
    }
    if (n >= RNN_BIAS) {
        return s->d_sums[t][i];
    }
    if (n >= RNN_RECURRENT) {
        return s->hidden[t][n / RNN_HIDDEN - RNN_FEATURES] * s->d_sums[t][i];
    }
    return s->x[t][n / RNN_HIDDEN] * s->d_sums[t][i];
}

__device__ static void keep(float *to, const float *from, int count)
{
    THREAD_FOR(i, count)
    {
        to[(int64_t)blockIdx.x * count + i] = from[i];
    }
}

__device__ static void sequence_keep(const struct rnn *rnn, const struct sequence *s)
{
    keep(rnn->x, s->x[0], RNN_TIME * RNN_FEATURES);
    keep(rnn->hidden, s->hidden[0], (RNN_TIME + 1) * RNN_HIDDEN);
    keep(rnn->log_probs, s->log_probs[0], RNN_TIME * RNN_SYMBOLS);
    keep(rnn->d_logits, s->d_logits[0], RNN_TIME * RNN_SYMBOLS);
}

__global__ static void sequence_kernel(struct rnn rnn, int64_t step, bool racing,
                                       bool probing)
{
    __shared__ struct sequence s;
    float log_p;

    load(&rnn, step, &s);
    forward(&s);
    log_p = paths_forward(&s);
    paths_backward(&s);
    classify(&s, log_p, rnn.shape.batch);
    backward(&s);
    THREAD_FOR(n, RNN_VARIABLES)
    {
        float sum = 0;

        for (int t = RNN_TIME - 1; t >= 0; t--) {
            sum += term(&s, t, n);
        }
        if (racing) {
            atomicAdd(&rnn.gradient[n], sum);
        } else {
            rnn.parts[(int64_t)blockIdx.x * RNN_VARIABLES + n] = sum;
        }
    }
    if (probing) {
        sequence_keep(&rnn, &s);
    }
    if (threadIdx.x == 0) {
        rnn.losses[blockIdx.x] = -log_p;
    }
}

void sequences_compute(const struct rnn *rnn, int64_t step, bool racing, bool probing)
{
    LAUNCH(sequence_kernel, (unsigned)rnn->shape.batch, THREADS, 0, 0, *rnn, step, racing,
           probing);
}
