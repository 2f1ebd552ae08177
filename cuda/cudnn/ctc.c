#include "cuda/cudnn/ctc.h"

#include <stdio.h>

#include "cuda/cudnn/describe.h"

static cudnnCTCLossAlgo_t algorithm(const struct cudnn_ctc_task *task)
{
    return task->deterministic ? CUDNN_CTC_LOSS_ALGO_DETERMINISTIC
                               : CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC;
}

/* As cudnn_ctc makes it, for the function that is not told the longest label. */
static cudnnCTCLossDescriptor_t describe_ex(struct run *run)
{
    cudnnCTCLossDescriptor_t ctc;

    CUDNN_CALL(run, cudnnCreateCTCLossDescriptor, &ctc);
    CUDNN_CALL(run, cudnnSetCTCLossDescriptorEx, ctc, CUDNN_DATA_FLOAT,
               CUDNN_LOSS_NORMALIZATION_SOFTMAX, CUDNN_NOT_PROPAGATE_NAN);
    return ctc;
}

void cudnn_ctc_describe(struct run *run, struct cudnn_ctc_task *task)
{
    const int extents[] = { task->time, task->batch, task->symbols };

    task->rows = cudnn_tensor_nd(run, DTYPE_FLOAT32, COUNT_OF(extents), extents);
    task->how = task->v8 ? cudnn_ctc(run, task->most_labels) : describe_ex(run);
}

void cudnn_ctc_prepare(struct run *run, struct cudnn_ctc_task *task)
{
    if (task->v8) {
        CUDNN_CALL(run, cudnnGetCTCLossWorkspaceSize_v8, cudnn_handle(run),
                   algorithm(task), task->how, task->rows, task->rows,
                   &task->workspace_bytes);
    } else {
        CUDNN_CALL(run, cudnnGetCTCLossWorkspaceSize, cudnn_handle(run), task->rows,
                   task->rows, task->labels, task->label_lengths, task->time_lengths,
                   algorithm(task), task->how, &task->workspace_bytes);
    }
    task->workspace = cudnn_workspace(run, task->workspace_bytes);
    snprintf(
        task->description, sizeof task->description,
        "CUDNN_CTC_LOSS_ALGO_%sDETERMINISTIC, cudnnCTCLoss%s, workspace of %zu bytes",
        task->deterministic ? "" : "NON_", task->v8 ? "_v8" : "", task->workspace_bytes);
    run->algorithm = task->description;
}

void cudnn_ctc_compute(struct run *run, const struct cudnn_ctc_task *task)
{
    if (task->v8) {
        CUDNN_CALL(run, cudnnCTCLoss_v8, cudnn_handle(run), algorithm(task), task->how,
                   task->rows, task->logits, task->labels, task->label_lengths,
                   task->time_lengths, task->losses, task->rows, task->gradient,
                   task->workspace_bytes, task->workspace);
    } else {
        CUDNN_CALL(run, cudnnCTCLoss, cudnn_handle(run), task->rows, task->logits,
                   task->labels, task->label_lengths, task->time_lengths, task->losses,
                   task->rows, task->gradient, algorithm(task), task->how,
                   task->workspace, task->workspace_bytes);
    }
}
