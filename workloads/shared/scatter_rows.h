/* Rows and the destinations that an index names for them: the state that scatter.h and
 * its twin in cuda/kernels add up.  A GPU has other scratch memory. */
#ifndef WORKLOADS_SHARED_SCATTER_ROWS_H
#define WORKLOADS_SHARED_SCATTER_ROWS_H

#include "workloads/workload.h"

struct scatter {
    int64_t rows, width, destinations;
    int64_t share;         /* so many neighbouring rows have the same values; 1: none */
    const int32_t *picked; /* [rows]: which row of the values each is; NULL: by share */
    const int32_t *index;  /* [rows]: destination of each row; negative: left out */
    const float *values;   /* [rows / share][width], or what `picked` picks from */
    float *sums;           /* [destinations][width] */
    int32_t *starts; /* on a CPU, [SCATTER_SLOTS + 1][destinations]: where in `sorted` a
                        slot's rows of a destination begin; the last: where all end */
    int32_t *sorted; /* on a CPU: rows by destination, in order of rows; scratch */
};

#endif
