/* What the prototypes of cuDNN, cuBLAS and NCCL take from CUDA.  These headers declare
 * what reprod calls of the three by themselves, so that none of their headers has to be
 * there; a test holds them against those that are (tests/system/test_abi.py).
 *
 * Their functions are declared for their types alone (LIBRARY_POINTER): they are found at
 * run time, and a direct call does not link. */
#ifndef CUDA_LIBRARY_ABI_H
#define CUDA_LIBRARY_ABI_H

struct CUstream_st; /* cudaStream_t points to it */

/* libraryPropertyType under another name, because CUDA's run-time headers have that one.
 */
enum library_property { LIBRARY_MAJOR = 0, LIBRARY_MINOR = 1, LIBRARY_PATCH = 2 };

#endif
