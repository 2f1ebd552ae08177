/* CUDA on one CPU thread, for tests: what cuda/kernels/kernel.h includes instead of the
 * CUDA headers when it is compiled as C++ with -DREPROD_CUDASIM.
 *
 * Every thread of a block is a fiber; blocks run one after the other.  With the
 * environment variable REPROD_CUDASIM_SEED set to anything but 0, blocks and threads run
 * in an order drawn from it, and threads step aside at atomics, so that whatever depends
 * on order shows.  Shared memory is filled with 0xAA before each block, and lanes that a
 * shuffle must not read give 0xAA too.  A barrier that not all threads of a block reach,
 * a collective whose lanes disagree, and a deadlock end the process with a message that
 * names kernel, block and thread.
 *
 * What it is not: there is no memory model (a thread's stores are seen at once, in
 * order), no lockstep of a warp, no two blocks at a time, no PTX.  __shared__ variables
 * cannot be declared in templates.  Streams run at once.
 *
 * Nothing computed here was computed by a GPU; the device names itself "sim:0". */
#ifndef TESTS_SIMULATOR_CUDASIM_H
#define TESTS_SIMULATOR_CUDASIM_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#include "tests/simulator/cudart.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("cudasim_shared")))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1)
        : x(nx), y(ny), z(nz)
    {
    }
};

inline dim3 gridDim, blockDim, blockIdx, threadIdx;
static const int warpSize = 32;

namespace cudasim
{
/* Runs BODY once for each thread of the grid. */
void launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes,
            const std::function<void()> &body);

/* A number of blocks that is enough for any number of items, if threads take several. */
int64_t grid_limit();

/* A point where another thread may run first. */
void atomic_point();

void barrier(int line);

/* Waits for all lanes of MASK, each with its VALUE; returns the values of the 32 lanes,
 * valid until the thread's next collective. */
const uint64_t *collective(const char *name, unsigned mask, uint64_t value);

int lane();
void *dynamic_shared();

/* As in a launch, arguments are converted to the parameters' types and copied. */
template <class... P, class... A>
void launch_kernel(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                   void (*kernel)(P...), A &&...arguments)
{
    std::tuple<P...> copies(static_cast<P>(arguments)...);
    launch(name, grid, block, shared_bytes, [&] { std::apply(kernel, copies); });
}

template <class T> uint64_t pack(T value)
{
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> T unpack(uint64_t bits)
{
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Lane FROM's value, or the own one where FROM is outside the segment. */
template <class T> T pick(const uint64_t *values, int from, int width)
{
    int own = lane(), segment = own - own % width;
    return unpack<T>(values[from >= segment && from < segment + width ? from : own]);
}

template <class T, class F> T exchange(T *address, F next)
{
    atomic_point();
    T old = *address;
    *address = next(old);
    return old;
}
} // namespace cudasim

#define DYNAMIC_SHARED(type, name) type *name = (type *)cudasim::dynamic_shared()

static inline void __syncthreads(int line = __builtin_LINE())
{
    cudasim::barrier(line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    cudasim::collective("__syncwarp", mask, 0);
}

static inline void __threadfence()
{
}

static inline void __threadfence_block()
{
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = warpSize)
{
    const uint64_t *values =
        cudasim::collective("__shfl_sync", mask, cudasim::pack(value));
    int own = cudasim::lane();
    return cudasim::unpack<T>(values[own - own % width + (source & (width - 1))]);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize)
{
    const uint64_t *values =
        cudasim::collective("__shfl_up_sync", mask, cudasim::pack(value));
    return cudasim::pick<T>(values, cudasim::lane() - (int)delta, width);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize)
{
    const uint64_t *values =
        cudasim::collective("__shfl_down_sync", mask, cudasim::pack(value));
    return cudasim::pick<T>(values, cudasim::lane() + (int)delta, width);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize)
{
    const uint64_t *values =
        cudasim::collective("__shfl_xor_sync", mask, cudasim::pack(value));
    return cudasim::pick<T>(values, cudasim::lane() ^ lane_mask, width);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    const uint64_t *values = cudasim::collective("__ballot_sync", mask, predicate != 0);
    unsigned votes = 0;
    for (int i = 0; i < warpSize; i++) {
        votes |= (mask >> i & 1u) && values[i] ? 1u << i : 0u;
    }
    return votes;
}

static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) == mask;
}

template <class T> unsigned __match_any_sync(unsigned mask, T value)
{
    const uint64_t *values =
        cudasim::collective("__match_any_sync", mask, cudasim::pack(value));
    unsigned equal = 0;
    for (int i = 0; i < warpSize; i++) {
        equal |= (mask >> i & 1u) && values[i] == cudasim::pack(value) ? 1u << i : 0u;
    }
    return equal;
}

#define CUDASIM_ATOMIC(name, expression)                                                 \
    template <class T> T name(T *address, std::type_identity_t<T> value)                 \
    {                                                                                    \
        return cudasim::exchange(address,                                                \
                                 [value](T old) -> T { return (T)(expression); });       \
    }
CUDASIM_ATOMIC(atomicAdd, old + value)
CUDASIM_ATOMIC(atomicSub, old - value)
CUDASIM_ATOMIC(atomicExch, ((void)old, value))
CUDASIM_ATOMIC(atomicMax, old > value ? old : value)
CUDASIM_ATOMIC(atomicMin, old < value ? old : value)
CUDASIM_ATOMIC(atomicAnd, old &value)
CUDASIM_ATOMIC(atomicOr, old | value)
CUDASIM_ATOMIC(atomicXor, old ^ value)
CUDASIM_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUDASIM_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef CUDASIM_ATOMIC

template <class T>
T atomicCAS(T *address, std::type_identity_t<T> expected, std::type_identity_t<T> value)
{
    return cudasim::exchange(address,
                             [=](T old) { return old == expected ? value : old; });
}

template <class T> T __ldg(const T *address)
{
    return *address;
}

template <class T> T __ldcs(const T *address)
{
    return *address;
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline unsigned __float_as_uint(float value)
{
    return cudasim::unpack<unsigned>(cudasim::pack(value));
}

static inline float __uint_as_float(unsigned bits)
{
    return cudasim::unpack<float>(bits);
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

static inline int __ffs(unsigned bits)
{
    return __builtin_ffs((int)bits);
}

static inline int __clz(unsigned bits)
{
    return bits ? __builtin_clz(bits) : 32;
}

/* CUDA's own overloads; the standard's are templates that take references. */
template <class T> T min(T a, T b)
{
    return b < a ? b : a;
}

template <class T> T max(T a, T b)
{
    return a < b ? b : a;
}

#endif
