/* REPROD_HD: a function that is defined in a header and serves the host and, under nvcc,
 * the device, so that both backends share one definition and therefore one set of bits.
 */
#ifndef WORKLOADS_INSTRUMENTS_HD_H
#define WORKLOADS_INSTRUMENTS_HD_H

#ifdef __CUDACC__
#define REPROD_HD static inline __host__ __device__ __attribute__((unused))
#else
#define REPROD_HD static inline __attribute__((unused))
#endif

#endif
