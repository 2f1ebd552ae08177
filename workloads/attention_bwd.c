/* Gradients of softmax attention, head by head:
 *   p = softmax over keys of q k^T / sqrt(depth),  delta[i] = do[i] . (p v)[i],
 *   ds = p * (do v^T - delta),
 *   dq = ds k / sqrt(depth),  dk = ds^T q / sqrt(depth),  dv = p^T do.
 * Work is split into blocks of keys.  A block owns its rows of dk and dv, but every block
 * adds to all of dq. */
#include "workloads/attention_bwd.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shared/probing.h"
#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { KEY_BLOCK = 4 };

struct attention_bwd {
    const struct attention_shape *shape;
    float scale; /* 1 / sqrt(depth) */
    const float *q, *k, *v, *upstream;
    float *dq, *dk, *dv;
    float *most, *sum; /* of each query's scores: the largest, and the sum of exp */
    float *delta;
    float *parts; /* dq of each block of keys, for the ordered variant */
};

static float dot(const float *a, const float *b, int64_t depth)
{
    float sum = 0;

    for (int64_t d = 0; d < depth; d++) {
        sum += a[d] * b[d];
    }
    return sum;
}

static void add_scaled(float *to, float factor, const float *from, int64_t depth)
{
#pragma omp simd
    for (int64_t d = 0; d < depth; d++) {
        to[d] += factor * from[d];
    }
}

/* What the forward pass saves: most, sum and delta of query I (counted over all heads).
 */
static void query_prepare(const struct attention_bwd *attention, int64_t i)
{
    const struct attention_shape *s = attention->shape;
    int64_t keys = i / s->length * s->length, depth = s->depth;
    const float *q = attention->q + i * depth;
    float most = -INFINITY, sum = 0, delta = 0;

    for (int64_t j = keys; j < keys + s->length; j++) {
        float score = dot(q, attention->k + j * depth, depth) * attention->scale;

        most = score > most ? score : most;
    }
    for (int64_t j = keys; j < keys + s->length; j++) {
        float score = dot(q, attention->k + j * depth, depth) * attention->scale;
        float weight = expf(score - most);

        sum += weight;
        delta += weight *
                 dot(attention->upstream + i * depth, attention->v + j * depth, depth);
    }
    attention->most[i] = most;
    attention->sum[i] = sum;
    attention->delta[i] = delta / sum;
}

/* The pair of query I and key J: adds to dk and dv, and returns what k[J] is to be
 * multiplied with in dq[I]. */
static float pair_add(const struct attention_bwd *attention, int64_t i, int64_t j)
{
    int64_t depth = attention->shape->depth;
    const float *q = attention->q + i * depth,
                *upstream = attention->upstream + i * depth;
    float score = dot(q, attention->k + j * depth, depth) * attention->scale;
    float p = expf(score - attention->most[i]) / attention->sum[i];
    float ds = p * (dot(upstream, attention->v + j * depth, depth) - attention->delta[i]);

    add_scaled(attention->dv + j * depth, p, upstream, depth);
    add_scaled(attention->dk + j * depth, ds * attention->scale, q, depth);
    return ds * attention->scale;
}

/* Key block BLOCK, for each query of its head: the products for dq[I] go to PART, and
 * then, unless they may stay there, atomically to dq.  Neighbouring blocks go through the
 * queries in opposite directions: two threads meet somewhere, and where depends on
 * nanoseconds. */
static void block_add(const struct attention_bwd *attention, int64_t block, float *part,
                      bool atomically)
{
    const struct attention_shape *s = attention->shape;
    int64_t first_key = block * KEY_BLOCK, depth = s->depth;
    int64_t first_query = first_key / s->length * s->length;
    size_t bytes = (size_t)depth * sizeof(float);

    memset(attention->dk + first_key * depth, 0, KEY_BLOCK * bytes);
    memset(attention->dv + first_key * depth, 0, KEY_BLOCK * bytes);
    for (int64_t n = 0; n < s->length; n++) {
        int64_t query = atomically && block % 2 ? s->length - 1 - n : n;
        float *sum = atomically ? part : part + query * depth;
        float *dq = attention->dq + (first_query + query) * depth;

        memset(sum, 0, bytes);
        for (int64_t j = first_key; j < first_key + KEY_BLOCK; j++) {
            add_scaled(sum, pair_add(attention, first_query + query, j),
                       attention->k + j * depth, depth);
        }
        for (int64_t d = 0; atomically && d < depth; d++) {
#pragma omp atomic
            dq[d] += sum[d];
        }
    }
}

static void queries_prepare(const struct attention_bwd *attention)
{
    const struct attention_shape *s = attention->shape;

#pragma omp for schedule(dynamic, 8)
    for (int64_t i = 0; i < s->heads * s->length; i++) {
        query_prepare(attention, i);
        memset(attention->dq + i * s->depth, 0, (size_t)s->depth * sizeof(float));
    }
}

enum { Q = 1, K, V, UPSTREAM, MOST, SUM, DELTA, DQ, DK, DV, VALUES };

static const struct place places[] = {
    { "scores/forward", { Q, K }, { MOST, SUM } },
    { "delta/backward", { Q, K, V, UPSTREAM }, { DELTA } },
    { "gradient/v", { Q, K, UPSTREAM, MOST, SUM }, { DV } },
    { "gradient/k", { Q, K, V, UPSTREAM, MOST, SUM, DELTA }, { DK } },
    { "gradient/q", { Q, K, V, UPSTREAM, MOST, SUM, DELTA }, { DQ } },
};

static void attention_probe(struct run *run)
{
    const struct attention_bwd *a = run->state;
    const struct attention_shape *s = a->shape;
    int64_t queries = s->heads * s->length, elements = queries * s->depth;
    const struct probe_value values[VALUES] = {
        [Q] = probe_floats("q", a->q, elements),
        [K] = probe_floats("k", a->k, elements),
        [V] = probe_floats("v", a->v, elements),
        [UPSTREAM] = probe_floats("upstream", a->upstream, elements),
        [MOST] = probe_floats("most", a->most, queries),
        [SUM] = probe_floats("sum", a->sum, queries),
        [DELTA] = probe_floats("delta", a->delta, queries),
        [DQ] = probe_floats("dq", a->dq, elements),
        [DK] = probe_floats("dk", a->dk, elements),
        [DV] = probe_floats("dv", a->dv, elements),
    };

    if (run_probing(run, 0)) {
        places_probe(run, 0, values, places, COUNT_OF(places));
    }
}

static void compute_unordered(struct run *run)
{
    const struct attention_bwd *attention = run->state;
    const struct attention_shape *s = attention->shape;

#pragma omp parallel num_threads(run->threads)
    {
        float *part = attention->parts + omp_get_thread_num() * s->depth;

        queries_prepare(attention);
#pragma omp for schedule(dynamic, 1)
        for (int64_t block = 0; block < s->heads * s->length / KEY_BLOCK; block++) {
            block_add(attention, block, part, true);
        }
    }
    attention_probe(run);
}

static void compute_ordered(struct run *run)
{
    const struct attention_bwd *attention = run->state;
    const struct attention_shape *s = attention->shape;
    int64_t blocks = s->length / KEY_BLOCK, part = s->length * s->depth;

#pragma omp parallel num_threads(run->threads)
    {
        queries_prepare(attention);
#pragma omp for schedule(dynamic, 1)
        for (int64_t block = 0; block < s->heads * blocks; block++) {
            block_add(attention, block, attention->parts + block * part, false);
        }
#pragma omp for
        for (int64_t i = 0; i < s->heads * s->length; i++) {
            for (int64_t block = 0; block < blocks; block++) {
                add_scaled(attention->dq + i * s->depth, 1,
                           attention->parts + (i / s->length * blocks + block) * part +
                               i % s->length * s->depth,
                           s->depth);
            }
        }
    }
    attention_probe(run);
}

static void setup(struct run *run)
{
    const struct attention_shape *s = run->size->params;
    struct attention_bwd *attention = run_host_alloc(sizeof *attention);
    int64_t shape[] = { s->heads, s->length, s->depth };
    int64_t queries = s->heads * s->length;
    int64_t parts = queries / KEY_BLOCK * s->length * s->depth;

    if (parts < run->threads * s->depth) {
        parts = run->threads * s->depth;
    }
    attention->shape = s;
    attention->scale = 1 / sqrtf((float)s->depth);
    attention->q = run_input_f32(run, "q", 3, shape, FILL_UNIFORM);
    attention->k = run_input_f32(run, "k", 3, shape, FILL_UNIFORM);
    attention->v = run_input_f32(run, "v", 3, shape, FILL_UNIFORM);
    attention->upstream = run_input_f32(run, "upstream", 3, shape, FILL_WIDE);
    attention->dq = run_output_f32(run, "dq", 3, shape);
    attention->dk = run_output_f32(run, "dk", 3, shape);
    attention->dv = run_output_f32(run, "dv", 3, shape);
    attention->most = run_alloc_f32(run, queries);
    attention->sum = run_alloc_f32(run, queries);
    attention->delta = run_alloc_f32(run, queries);
    attention->parts = run_alloc_f32(run, parts);
    run->state = attention;
}

/* One query in float64, for each key of its head. */
struct query_reference {
    double *p, *ds;
    double *slack;  /* the error of ds */
    double p_error; /* of p, relative */
};

static double dot_reference(const float *a, const float *b, int64_t depth,
                            double *ret_magnitude)
{
    double sum = 0;

    *ret_magnitude = 0;
    for (int64_t d = 0; d < depth; d++) {
        sum += (double)a[d] * b[d];
        *ret_magnitude += fabs((double)a[d] * b[d]);
    }
    return sum;
}

/* p of query I, and its relative error.  A score is off by e; its distance to the largest
 * is rounded once more.  So exp is off by a factor of at most exp(e + u * distance), in
 * the numerator and in the sum under it; gamma has the roundings of expf (below one ulp),
 * sum and quotient. */
static void probabilities(const struct run *run, const struct tensor *inputs, int64_t i,
                          struct query_reference *query)
{
    const struct attention_shape *s = run->size->params;
    const float *q = inputs[0].data, *k = inputs[1].data;
    double scale = 1 / sqrt((double)s->depth), most = 0, error = 0, sum = 0;

    for (int64_t j = 0; j < s->length; j++) {
        int64_t key = i / s->length * s->length + j;
        double magnitude;

        query->p[j] = scale * dot_reference(q + i * s->depth, k + key * s->depth,
                                            s->depth, &magnitude);
        most = fmax(most, fabs(query->p[j]));
        error = fmax(error, scale * magnitude);
    }
    error *= rounding_gamma(run->dtype, s->depth + 1);
    error += 2 * (most + error) * rounding_unit(run->dtype);
    for (int64_t j = 0; j < s->length; j++) {
        sum += query->p[j] = exp(query->p[j] - most);
    }
    for (int64_t j = 0; j < s->length; j++) {
        query->p[j] /= sum;
    }
    query->p_error =
        1.01 * (expm1(2 * error) + rounding_gamma(run->dtype, s->length + 12));
}

/* ds of query I.  With M = sum |do v| and D = sum p M, both dp and delta are off by their
 * roundings of M and D and by the error of p; so ds is off by twice either, relative to
 * p * (M + D).  1.1 covers products of errors. */
static void scores_gradient(const struct run *run, const struct tensor *inputs, int64_t i,
                            struct query_reference *query)
{
    const struct attention_shape *s = run->size->params;
    const float *v = inputs[2].data, *upstream = inputs[3].data;
    double gamma = rounding_gamma(run->dtype, s->length + s->depth + 12);
    double delta = 0, magnitude = 0;

    for (int64_t j = 0; j < s->length; j++) {
        int64_t key = i / s->length * s->length + j;

        query->ds[j] = dot_reference(upstream + i * s->depth, v + key * s->depth,
                                     s->depth, &query->slack[j]);
        delta += query->p[j] * query->ds[j];
        magnitude += query->p[j] * query->slack[j];
    }
    for (int64_t j = 0; j < s->length; j++) {
        query->ds[j] = query->p[j] * (query->ds[j] - delta);
        query->slack[j] = 1.1 * 2 * (query->p_error + 2 * gamma) * query->p[j] *
                          (query->slack[j] + magnitude);
    }
}

static void element_add(double *expected, double *bound, double factor, double error,
                        double value)
{
    *expected += factor * value;
    *bound += error * fabs(value);
}

/* The twofold gamma in the error of ds also pays for the sums over keys or queries; what
 * dv sums is p itself. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct attention_shape *s = run->size->params;
    const float *q = inputs[0].data, *k = inputs[1].data, *upstream = inputs[3].data;
    double scale = 1 / sqrt((double)s->depth);
    double gamma = 1.01 * rounding_gamma(run->dtype, s->length + 4);
    size_t bytes = (size_t)s->length * sizeof(double);
    struct query_reference query = { run_host_alloc(bytes), run_host_alloc(bytes),
                                     run_host_alloc(bytes), 0 };

    for (int64_t e = 0; e < tensor_elements(output); e++) {
        ret_expected[e] = ret_bound[e] = 0;
    }
    for (int64_t i = 0; i < s->heads * s->length; i++) {
        probabilities(run, inputs, i, &query);
        scores_gradient(run, inputs, i, &query);
        for (int64_t e = 0; e < s->length * s->depth; e++) {
            int64_t j = e / s->depth, d = e % s->depth;
            int64_t to_query = i * s->depth + d;
            int64_t to_key = (i / s->length * s->length + j) * s->depth + d;

            if (output->name[1] == 'q') {
                element_add(ret_expected + to_query, ret_bound + to_query,
                            scale * query.ds[j], scale * query.slack[j], k[to_key]);
            } else if (output->name[1] == 'k') {
                element_add(ret_expected + to_key, ret_bound + to_key,
                            scale * query.ds[j], scale * query.slack[j], q[to_query]);
            } else {
                element_add(ret_expected + to_key, ret_bound + to_key, query.p[j],
                            query.p[j] * (1.01 * query.p_error + gamma),
                            upstream[to_query]);
            }
        }
    }
    free(query.p);
    free(query.ds);
    free(query.slack);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "blocks of keys add to the gradient of the queries with atomic adds",
      .models = "fused attention back-propagation that is parallel over keys: dq by "
                "atomicAdd",
      .algorithm = "blocks of 4 keys, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "a part of dq for each block of keys, added in the order of the blocks",
      .models = "the deterministic modes of fused attention: a dq for each block, then a "
                "sum in order",
      .algorithm = "blocks of 4 keys, in order",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "q,k,v[8,128,16]", &(const struct attention_shape){ 8, 128, 16 } },
    { "medium", "q,k,v[8,256,64]", &(const struct attention_shape){ 8, 256, 64 } },
    { "large", "q,k,v[32,512,64]", &(const struct attention_shape){ 32, 512, 64 } },
};

static const struct workload_reference references[] = {
    GITHUB_PR("TransformerEngine", "NVIDIA/TransformerEngine", 2584,
              "deterministic attention back-propagation on Blackwell", NULL,
              "cuDNN 9.18.1"),
    GITHUB_PR("llm.c", "karpathy/llm.c", 652,
              "attention back-propagation of cuDNN 9.2 that varies", NULL, NULL),
    GITHUB_PR("pytorch", "pytorch/pytorch", 182551,
              "determinism of the back ends of attention", NULL, NULL),
};

static const struct workload attention_bwd = {
    .name = "attention_bwd",
    .version = 1,
    .title = "Scaled dot-product attention backprop",
    .summary = "gradients of softmax attention: queries, keys and values",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dq",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(attention_bwd);
