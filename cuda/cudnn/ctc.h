/* CTC loss of cuDNN and its gradient, by either function and either algorithm.  Float32;
 * logits and gradient are (time, example, symbol), the blank is symbol 0.  What cuDNN
 * refuses ends the run (loader.h). */
#ifndef CUDA_CUDNN_CTC_H
#define CUDA_CUDNN_CTC_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnnTensorStruct;
struct cudnnCTCLossStruct;

enum { CUDNN_CTC_DESCRIPTION_SIZE = 120 };

struct cudnn_ctc_task {
    int time, batch, symbols;
    int most_labels;    /* of an example */
    bool deterministic; /* CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, not …_NON_DETERMINISTIC */
    bool v8;            /* cudnnCTCLoss_v8, not cudnnCTCLoss */
    const float *logits;

    /* Labels of all examples, one after the other without gaps, 1 …; how many each
     * example has of them and of times.  Host memory, with v8 device memory; borrowed. */
    const int *labels, *label_lengths, *time_lengths;
    float *losses;
    float *gradient; /* with respect to the logits; cuDNN writes nothing past a length */

    /* The rest is written here. */
    struct cudnnTensorStruct *rows;
    struct cudnnCTCLossStruct *how;
    size_t workspace_bytes;
    void *workspace;
    char description[CUDNN_CTC_DESCRIPTION_SIZE];
};

/* Makes the descriptors, which needs no GPU. */
void cudnn_ctc_describe(struct run *run, struct cudnn_ctc_task *task);

/* Takes the workspace, and reports the algorithm as the run's. */
void cudnn_ctc_prepare(struct run *run, struct cudnn_ctc_task *task);

void cudnn_ctc_compute(struct run *run, const struct cudnn_ctc_task *task);

#ifdef __cplusplus
}
#endif

#endif
