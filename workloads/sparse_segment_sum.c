/* Sums of the rows that indices pick, by segment:
 * sums[s,c] = sum over i with segment_ids[i] == s of data[indices[i],c].  The segment ids
 * are sorted, as the operation demands: a segment is one stretch of the indices. */
#include "workloads/sparse_segment_sum.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/scatter.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { OWNED = 4 /* segments that a task owns */ };

/* Row i of a segment goes to lane i mod SPARSE_LANES, lanes join by a tree. */
static void segment_reduce(const struct scatter *scatter, int64_t segment)
{
    float lanes[SPARSE_LANES * SPARSE_WIDTH_MAX] = { 0 };
    int64_t width = scatter->width;
    int64_t begin = sparse_segment_begin(scatter->index, scatter->rows, segment);
    int64_t end = sparse_segment_begin(scatter->index, scatter->rows, segment + 1);

    for (int64_t i = begin; i < end; i++) {
        const float *from = scatter_row(scatter, i);
        float *lane = lanes + (i - begin) % SPARSE_LANES * width;

#pragma omp simd
        for (int64_t c = 0; c < width; c++) {
            lane[c] += from[c];
        }
    }
    tree_sum(lanes, SPARSE_LANES, width, 0, width);
    memcpy(scatter->sums + segment * width, lanes, (size_t)width * sizeof(float));
}

static void compute_ordered(struct run *run)
{
    const struct scatter *scatter = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, OWNED)
    for (int64_t segment = 0; segment < scatter->destinations; segment++) {
        segment_reduce(scatter, segment);
    }
}

static void setup(struct run *run)
{
    const struct sparse_segment_shape *shape = run->size->params;
    struct scatter *scatter = run_host_alloc(sizeof *scatter);
    int64_t data[] = { shape->rows, shape->width };
    int64_t sums[] = { shape->segments, shape->width };
    const int64_t *indices = &shape->indices;
    int32_t *ids = run_host_alloc((size_t)shape->indices * sizeof *ids);

    sparse_segment_ids_fill(run, shape, ids);
    *scatter = (struct scatter){ .rows = shape->indices,
                                 .width = shape->width,
                                 .destinations = shape->segments,
                                 .share = 1 };
    scatter->index = run_values_i32(run, "segment_ids", 1, indices, ids);
    scatter->picked = run_input_i32(run, "indices", 1, indices, shape->rows);
    scatter->values = run_input_f32(run, "data", 2, data, FILL_WIDE);
    scatter->sums = run_output_f32(run, "sums", 2, sums);
    run->state = scatter;
    free(ids);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    scatter_reference(run, &inputs[0], &inputs[1], &inputs[2], output, ret_expected,
                      ret_bound);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every picked row is added to its segment with atomic adds",
      .models = "the GPU kernel of TensorFlow Recommenders Addons: atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "each segment has one owner: 8 fixed lanes of rows, joined by a tree",
      .models = "tf.sparse.segment_* on GPU, by default since they are there, TF 2.6",
      .algorithm = "owner of a segment, 8 lanes, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "data[4096,16] indices[131072] segment_ids[131072] sums[256,16]",
      &(const struct sparse_segment_shape){ 4096, 16, 131072, 256 } },
    { "medium", "data[16384,32] indices[262144] segment_ids[262144] sums[1024,32]",
      &(const struct sparse_segment_shape){ 16384, 32, 262144, 1024 } },
    { "large", "data[1048576,64] indices[4194304] segment_ids[4194304] sums[16384,64]",
      &(const struct sparse_segment_shape){ 1048576, 64, 4194304, 16384 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(44380, "asks for sparse segment sums on GPU", NULL, "TF 2.6"),
    TENSORFLOW_PR(47974, "sparse segment sums on GPU, deterministic from the beginning",
                  "merged 2023-07", "TF 2.6"),
    GITHUB_PR("recommenders-addons", "tensorflow/recommenders-addons", 55,
              "sparse segment sums on GPU with atomic adds", NULL, NULL),
};

static const struct workload sparse_segment_sum = {
    .name = "sparse_segment_sum",
    .version = 1,
    .title = "tf.sparse.segment_sum",
    .summary = "rows picked by indices, added up by sorted segment",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the segments' sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(sparse_segment_sum);
