/* Rows scattered to indices with duplicates, added and assigned:
 * added[v,c] = sum over rows r with indices[r] == v of updates[r,c];
 * updated[v,c] = updates[r,c] of the last such row, params[v,c] if there is none.
 * Which row is the last depends on the variant. */
#include "workloads/scatter_nd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/scatter.h"
#include "workloads/workload.h"

struct scatter_nd {
    struct scatter scatter; /* its sums are `added` */
    const float *params;
    float *updated;
};

static void task_assign(const struct scatter_nd *nd, int64_t task)
{
    const struct scatter *scatter = &nd->scatter;

    for (int64_t i = 0; i < SCATTER_TASK_ROWS; i++) {
        int64_t row =
            task * SCATTER_TASK_ROWS + (task % 2 ? SCATTER_TASK_ROWS - 1 - i : i);
        const float *from = scatter_row(scatter, row);
        float *to = nd->updated + scatter->index[row] * scatter->width;

        for (int64_t c = 0; c < scatter->width; c++) {
#pragma omp atomic write
            to[c] = from[c];
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct scatter_nd *nd = run->state;
    const struct scatter *scatter = &nd->scatter;
    int64_t elements = scatter->destinations * scatter->width;

    memcpy(nd->updated, nd->params, (size_t)elements * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
        scatter_clear(scatter);
        scatter_add_atomically(scatter);
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < scatter->rows / SCATTER_TASK_ROWS; task++) {
            task_assign(nd, task);
        }
    }
}

static void entry_assign(const struct scatter_nd *nd, int64_t entry)
{
    const struct scatter *scatter = &nd->scatter;
    int64_t end = scatter_end(scatter, entry);
    const float *from = nd->params + entry * scatter->width;

    if (end > scatter_begin(scatter, entry)) {
        from = scatter_row(scatter, scatter->sorted[end - 1]);
    }
    memcpy(nd->updated + entry * scatter->width, from,
           (size_t)scatter->width * sizeof(float));
}

static void compute_ordered(struct run *run)
{
    const struct scatter_nd *nd = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        scatter_sort(&nd->scatter);
        scatter_add_in_order(&nd->scatter);
#pragma omp for
        for (int64_t entry = 0; entry < nd->scatter.destinations; entry++) {
            entry_assign(nd, entry);
        }
    }
}

static void compute_serial(struct run *run)
{
    const struct scatter_nd *nd = run->state;
    const struct scatter *scatter = &nd->scatter;
    int64_t width = scatter->width;
    size_t bytes = (size_t)(scatter->destinations * width) * sizeof(float);

    memset(scatter->sums, 0, bytes);
    memcpy(nd->updated, nd->params, bytes);
    for (int64_t row = 0; row < scatter->rows; row++) {
        const float *from = scatter_row(scatter, row);
        float *sums = scatter->sums + scatter->index[row] * width;

#pragma omp simd
        for (int64_t c = 0; c < width; c++) {
            sums[c] += from[c];
        }
        memcpy(nd->updated + scatter->index[row] * width, from,
               (size_t)width * sizeof(float));
    }
}

static void setup(struct run *run)
{
    struct scatter_nd *nd = run_host_alloc(sizeof *nd);
    const int64_t *params;

    scatter_nd_tensors(run, &nd->scatter);
    scatter_init(run, &nd->scatter);
    params = run->outputs[0].shape;
    nd->params = run_input_f32(run, "params", 2, params, FILL_UNIFORM);
    nd->updated = run_output_f32(run, "updated", 2, params);
    run->state = nd;
}

/* Expects the update of the last row; for a control any row of the entry is as right, so
 * there the bound is the distance to the farthest. */
static void reference_updated(const struct run *run, const struct tensor *inputs,
                              double *ret_expected, double *ret_bound)
{
    const struct scatter_nd_shape *shape = run->size->params;
    const int32_t *indices = inputs[0].data;
    const float *updates = inputs[1].data, *params = inputs[2].data;

    for (int64_t i = 0; i < shape->entries * shape->width; i++) {
        ret_expected[i] = params[i];
        ret_bound[i] = 0;
    }
    for (int64_t i = 0; i < shape->rows * shape->width; i++) {
        ret_expected[indices[i / shape->width] * shape->width + i % shape->width] =
            updates[i];
    }
    for (int64_t i = 0; i < shape->rows * shape->width && run->variant->control; i++) {
        int64_t to = indices[i / shape->width] * shape->width + i % shape->width;

        ret_bound[to] = fmax(ret_bound[to], fabs(updates[i] - ret_expected[to]));
    }
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    if (output == &run->outputs[0]) {
        scatter_reference(run, &inputs[0], NULL, &inputs[1], output, ret_expected,
                          ret_bound);
    } else {
        reference_updated(run, inputs, ret_expected, ret_bound);
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "atomic adds and plain stores: the last writer wins",
      .models = "TensorFlow's scatter on GPU before TF 2.7",
      .algorithm = "atomic adds, last writer",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by entry, stably; each entry has one owner",
      .models = "scatter under enable_op_determinism since TF 2.8, XLA's too",
      .algorithm = "counting sort, entries in order of rows, last row",
      .compute = compute_ordered },
    { .name = "serial",
      .summary = "one thread, row after row",
      .models = "TensorFlow 2.7 under TF_DETERMINISTIC_OPS: scatter moved to the CPU",
      .algorithm = "one thread, rows in order",
      .compute = compute_serial },
};

static const struct workload_size sizes[] = {
    { "small", "updates[16384,64] indices[16384] params[4096,64]",
      &(const struct scatter_nd_shape){ 16384, 64, 4096 } },
    { "medium", "updates[131072,64] indices[131072] params[16384,64]",
      &(const struct scatter_nd_shape){ 131072, 64, 16384 } },
    { "large", "updates[1048576,128] indices[1048576] params[131072,128]",
      &(const struct scatter_nd_shape){ 1048576, 128, 131072 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_COMMIT(
        eb95f615, 7f949cd848910cb63f8cd5b1767af5d2,
        "scatter raises when determinism is asked for, until it was deterministic",
        "merged 2023-07", NULL),
    TENSORFLOW_COMMIT(03ba364e, ffe173d0b185977f0c14a48863d1f277,
                      "deterministic scatter: copied to the CPU and back",
                      "merged 2023-07", "TF 2.7"),
    TENSORFLOW_COMMIT(4dc6d4d5, 9008b4558040afa1a5a5993f583bb48e,
                      "XLA: deterministic scatter", "merged 2023-07", "TF 2.8"),
};

static const struct workload scatter_nd = {
    .name = "scatter_nd",
    .version = 1,
    .title = "tf.scatter_nd and tf.tensor_scatter_nd_*",
    .summary = "rows added to, and assigned to, entries that several rows name",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of added",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(scatter_nd);
