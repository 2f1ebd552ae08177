/* The rest of CUDA's run-time library, as far as reprod calls it, for one device that is
 * none: everything has happened when a call returns, and device memory is memory of the
 * process, filled with 0xCD when it is allocated. */
#ifndef TESTS_PTX_CUDART_H
#define TESTS_PTX_CUDART_H

#include <cuda_runtime_api.h>

/* ERROR, which cudaGetLastError then gives once. */
cudaError_t cudart_failed(cudaError_t error);

/* The current device. */
int cudart_device(void);

#endif
