/* cuDNN's functions as one table of typed pointers, for cuDNN 8 and 9 alike: no type in
 * the prototype of a function of the list differs between the two.
 *
 * The numbers of cudnnStatus_t do differ: a status is compared with 0 only, everything
 * else through cudnn/outcome.h. */
#ifndef CUDA_CUDNN_API_H
#define CUDA_CUDNN_API_H

#include "cuda/cudnn/abi.h"
#include "cuda/cudnn/functions.h"
#include "cuda/library/library.h"

#define CUDNN_DECLARE(function) LIBRARY_POINTER(function) function;
struct cudnn_table {
    CUDNN_FUNCTIONS(CUDNN_DECLARE)
    CUDNN_OPTIONAL_FUNCTIONS(CUDNN_DECLARE)
};
#undef CUDNN_DECLARE

#endif
