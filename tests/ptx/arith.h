/* What the opcodes of PTX compute, each in the function of its name: `fma.rn.f32` is
 * fma_rn_f32. Semantics: PTX ISA, 9.7 "Instructions".  Values are bits: an f32 is the
 * uint32_t that a register holds, so that no NaN changes on its way.
 *
 * Where PTX leaves a result open, it is what a GPU was seen to give, or all ones. */
#ifndef TESTS_PTX_ARITH_H
#define TESTS_PTX_ARITH_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float as_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline double as_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
/* Single precision makes one NaN only; a double's stays as it is. */
static inline uint32_t bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fffffffu : bits;
}
static inline uint64_t bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* -- Integers: U and S are the unsigned and signed types of N bits, W twice as wide
 * --------- */

#define INTEGERS(N, U, S, WU, WS)                                                        \
    static inline U add_u##N(U a, U b)                                                   \
    {                                                                                    \
        return (U)(a + b);                                                               \
    }                                                                                    \
    static inline U sub_u##N(U a, U b)                                                   \
    {                                                                                    \
        return (U)(a - b);                                                               \
    }                                                                                    \
    static inline U mul_lo_u##N(U a, U b)                                                \
    {                                                                                    \
        return (U)((WU)a * b);                                                           \
    }                                                                                    \
    static inline U mad_lo_u##N(U a, U b, U c)                                           \
    {                                                                                    \
        return (U)((WU)a * b + c);                                                       \
    }                                                                                    \
    static inline U mul_hi_u##N(U a, U b)                                                \
    {                                                                                    \
        return (U)((WU)a * b >> N);                                                      \
    }                                                                                    \
    static inline U mul_hi_s##N(U a, U b)                                                \
    {                                                                                    \
        return (U)((WS)(S)a * (S)b >> N);                                                \
    }                                                                                    \
    static inline U div_u##N(U a, U b)                                                   \
    {                                                                                    \
        return b ? (U)(a / b) : (U)-1;                                                   \
    }                                                                                    \
    static inline U rem_u##N(U a, U b)                                                   \
    {                                                                                    \
        return b ? (U)(a % b) : a;                                                       \
    }                                                                                    \
    static inline U div_s##N(U a, U b)                                                   \
    {                                                                                    \
        return b ? (U)((WS)(S)a / (S)b) : (U)-1;                                         \
    }                                                                                    \
    static inline U rem_s##N(U a, U b)                                                   \
    {                                                                                    \
        return b ? (U)((WS)(S)a % (S)b) : a;                                             \
    }                                                                                    \
    static inline U min_u##N(U a, U b)                                                   \
    {                                                                                    \
        return a < b ? a : b;                                                            \
    }                                                                                    \
    static inline U max_u##N(U a, U b)                                                   \
    {                                                                                    \
        return a > b ? a : b;                                                            \
    }                                                                                    \
    static inline U min_s##N(U a, U b)                                                   \
    {                                                                                    \
        return (S)a < (S)b ? a : b;                                                      \
    }                                                                                    \
    static inline U max_s##N(U a, U b)                                                   \
    {                                                                                    \
        return (S)a > (S)b ? a : b;                                                      \
    }                                                                                    \
    static inline U neg_s##N(U a)                                                        \
    {                                                                                    \
        return (U)(0 - a);                                                               \
    }                                                                                    \
    static inline U abs_s##N(U a)                                                        \
    {                                                                                    \
        return (S)a < 0 ? (U)(0 - a) : a;                                                \
    }                                                                                    \
    static inline U and_b##N(U a, U b)                                                   \
    {                                                                                    \
        return a & b;                                                                    \
    }                                                                                    \
    static inline U or_b##N(U a, U b)                                                    \
    {                                                                                    \
        return a | b;                                                                    \
    }                                                                                    \
    static inline U xor_b##N(U a, U b)                                                   \
    {                                                                                    \
        return a ^ b;                                                                    \
    }                                                                                    \
    static inline U not_b##N(U a)                                                        \
    {                                                                                    \
        return (U)~a;                                                                    \
    }                                                                                    \
    /* A shift by more than the width is one by the width. */                            \
    static inline U shl_b##N(U a, uint32_t n)                                            \
    {                                                                                    \
        return n < N ? (U)((WU)a << n) : 0;                                              \
    }                                                                                    \
    static inline U shr_u##N(U a, uint32_t n)                                            \
    {                                                                                    \
        return n < N ? (U)(a >> n) : 0;                                                  \
    }                                                                                    \
    static inline U shr_s##N(U a, uint32_t n)                                            \
    {                                                                                    \
        return (U)((S)a >> (n < N ? n : N - 1));                                         \
    }                                                                                    \
    static inline bool setp_eq_u##N(U a, U b)                                            \
    {                                                                                    \
        return a == b;                                                                   \
    }                                                                                    \
    static inline bool setp_ne_u##N(U a, U b)                                            \
    {                                                                                    \
        return a != b;                                                                   \
    }                                                                                    \
    static inline bool setp_lt_u##N(U a, U b)                                            \
    {                                                                                    \
        return a < b;                                                                    \
    }                                                                                    \
    static inline bool setp_le_u##N(U a, U b)                                            \
    {                                                                                    \
        return a <= b;                                                                   \
    }                                                                                    \
    static inline bool setp_gt_u##N(U a, U b)                                            \
    {                                                                                    \
        return a > b;                                                                    \
    }                                                                                    \
    static inline bool setp_ge_u##N(U a, U b)                                            \
    {                                                                                    \
        return a >= b;                                                                   \
    }                                                                                    \
    static inline bool setp_lt_s##N(U a, U b)                                            \
    {                                                                                    \
        return (S)a < (S)b;                                                              \
    }                                                                                    \
    static inline bool setp_le_s##N(U a, U b)                                            \
    {                                                                                    \
        return (S)a <= (S)b;                                                             \
    }                                                                                    \
    static inline bool setp_gt_s##N(U a, U b)                                            \
    {                                                                                    \
        return (S)a > (S)b;                                                              \
    }                                                                                    \
    static inline bool setp_ge_s##N(U a, U b)                                            \
    {                                                                                    \
        return (S)a >= (S)b;                                                             \
    }                                                                                    \
    static inline U selp_b##N(U a, U b, bool p)                                          \
    {                                                                                    \
        return p ? a : b;                                                                \
    }
INTEGERS(16, uint16_t, int16_t, uint32_t, int32_t)
INTEGERS(32, uint32_t, int32_t, uint64_t, int64_t)
__extension__ typedef __int128 wide_signed;
__extension__ typedef unsigned __int128 wide_unsigned;
INTEGERS(64, uint64_t, int64_t, wide_unsigned, wide_signed)

static inline uint32_t mul_wide_u16(uint16_t a, uint16_t b)
{
    return (uint32_t)a * b;
}
static inline uint32_t mul_wide_s16(uint16_t a, uint16_t b)
{
    return (uint32_t)((int16_t)a * (int16_t)b);
}
static inline uint64_t mul_wide_u32(uint32_t a, uint32_t b)
{
    return (uint64_t)a * b;
}
static inline uint64_t mul_wide_s32(uint32_t a, uint32_t b)
{
    return (uint64_t)((int64_t)(int32_t)a * (int32_t)b);
}
#define mad_wide_u16(a, b, c) ((uint32_t)(mul_wide_u16(a, b) + (c)))
#define mad_wide_s16(a, b, c) ((uint32_t)(mul_wide_s16(a, b) + (c)))
#define mad_wide_u32(a, b, c) (mul_wide_u32(a, b) + (c))
#define mad_wide_s32(a, b, c) (mul_wide_s32(a, b) + (c))

static inline bool and_pred(bool a, bool b)
{
    return a && b;
}
static inline bool or_pred(bool a, bool b)
{
    return a || b;
}
static inline bool xor_pred(bool a, bool b)
{
    return a != b;
}
static inline bool not_pred(bool a)
{
    return !a;
}

/* Fields: position and length are of eight bits; what lies beyond the word is 0, or the
 * sign. */
#define FIELDS(N, U, S)                                                                  \
    static inline U bfe_u##N(U a, uint32_t pos, uint32_t len)                            \
    {                                                                                    \
        pos &= 255, len &= 255;                                                          \
        return pos >= N || len == 0 ? 0                                                  \
               : len >= N           ? a >> pos                                           \
                                    : a >> pos & (((U)1 << len) - 1);                              \
    }                                                                                    \
    static inline U bfe_s##N(U a, uint32_t pos, uint32_t len)                            \
    {                                                                                    \
        U field = bfe_u##N(a, pos, len);                                                 \
        uint32_t last = (pos & 255) + (len & 255) - 1;                                   \
        bool negative = len & 255 && a >> (last < N ? last : N - 1) & 1;                 \
        uint32_t kept = (pos & 255) >= N                ? 0                              \
                        : N - (pos & 255) < (len & 255) ? N - (pos & 255)                \
                                                        : len & 255;                     \
        return negative && kept < N ? field | (U) ~(U)0 << kept : field;                 \
    }                                                                                    \
    static inline U bfi_b##N(U a, U b, uint32_t pos, uint32_t len)                       \
    {                                                                                    \
        pos &= 255, len &= 255;                                                          \
        U mask = len >= N ? (U) ~(U)0 : ((U)1 << len) - 1;                               \
        return pos >= N ? b : (b & ~(mask << pos)) | (a & mask) << pos;                  \
    }                                                                                    \
    static inline U brev_b##N(U a)                                                       \
    {                                                                                    \
        U reversed = 0;                                                                  \
        for (int i = 0; i < N; i++) {                                                    \
            reversed = reversed << 1 | (a >> i & 1);                                     \
        }                                                                                \
        return reversed;                                                                 \
    }
FIELDS(32, uint32_t, int32_t)
FIELDS(64, uint64_t, int64_t)

static inline uint32_t popc_b32(uint32_t a)
{
    return (uint32_t)__builtin_popcount(a);
}
static inline uint32_t popc_b64(uint64_t a)
{
    return (uint32_t)__builtin_popcountll(a);
}
static inline uint32_t clz_b32(uint32_t a)
{
    return a ? (uint32_t)__builtin_clz(a) : 32;
}
static inline uint32_t clz_b64(uint64_t a)
{
    return a ? (uint32_t)__builtin_clzll(a) : 64;
}
static inline uint32_t bfind_shiftamt_u32(uint32_t a)
{
    return a ? (uint32_t)__builtin_clz(a) : UINT32_MAX;
}
/* Each nibble of the selector names one byte of b:a, or, with its highest bit, that
 * byte's sign. */
static inline uint32_t prmt_b32(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t nibble = selector >> 4 * i;
        uint32_t byte = (uint32_t)(bytes >> 8 * (nibble & 7)) & 255;
        result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return result;
}
static inline uint32_t lop3_b32(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t result = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
        result |= (table >> row & 1) << i;
    }
    return result;
}

/* -- Floating point: FN is f32 or f64, S the suffix of C's functions
 * ------------------------ */

#define FLOATS(FN, U, F, S, SIGN, NOT_A_NUMBER)                                          \
    static inline U add_rn_##FN(U a, U b)                                                \
    {                                                                                    \
        return bits_##FN(as_##FN(a) + as_##FN(b));                                       \
    }                                                                                    \
    static inline U sub_rn_##FN(U a, U b)                                                \
    {                                                                                    \
        return bits_##FN(as_##FN(a) - as_##FN(b));                                       \
    }                                                                                    \
    static inline U mul_rn_##FN(U a, U b)                                                \
    {                                                                                    \
        return bits_##FN(as_##FN(a) * as_##FN(b));                                       \
    }                                                                                    \
    static inline U div_rn_##FN(U a, U b)                                                \
    {                                                                                    \
        return bits_##FN(as_##FN(a) / as_##FN(b));                                       \
    }                                                                                    \
    static inline U fma_rn_##FN(U a, U b, U c)                                           \
    {                                                                                    \
        return bits_##FN(fma##S(as_##FN(a), as_##FN(b), as_##FN(c)));                    \
    }                                                                                    \
    static inline U fma_as_##FN(U a, U b, U c, int rounding)                             \
    {                                                                                    \
        volatile F x = as_##FN(a), y = as_##FN(b), z = as_##FN(c), result;               \
        int before = fegetround();                                                       \
        fesetround(rounding);                                                            \
        result = fma##S(x, y, z);                                                        \
        fesetround(before);                                                              \
        return bits_##FN(result);                                                        \
    }                                                                                    \
    static inline U fma_rm_##FN(U a, U b, U c)                                           \
    {                                                                                    \
        return fma_as_##FN(a, b, c, FE_DOWNWARD);                                        \
    }                                                                                    \
    static inline U fma_rp_##FN(U a, U b, U c)                                           \
    {                                                                                    \
        return fma_as_##FN(a, b, c, FE_UPWARD);                                          \
    }                                                                                    \
    static inline U fma_rz_##FN(U a, U b, U c)                                           \
    {                                                                                    \
        return fma_as_##FN(a, b, c, FE_TOWARDZERO);                                      \
    }                                                                                    \
    static inline U sqrt_rn_##FN(U a)                                                    \
    {                                                                                    \
        return bits_##FN(sqrt##S(as_##FN(a)));                                           \
    }                                                                                    \
    static inline U rcp_rn_##FN(U a)                                                     \
    {                                                                                    \
        return bits_##FN(1 / as_##FN(a));                                                \
    }                                                                                    \
    static inline U neg_##FN(U a)                                                        \
    {                                                                                    \
        return a ^ SIGN;                                                                 \
    }                                                                                    \
    static inline U abs_##FN(U a)                                                        \
    {                                                                                    \
        return a & ~SIGN;                                                                \
    }                                                                                    \
    /* A number goes before a NaN, and -0 before +0. */                                  \
    static inline U min_##FN(U a, U b)                                                   \
    {                                                                                    \
        F x = as_##FN(a), y = as_##FN(b);                                                \
        return x != x   ? (y != y ? NOT_A_NUMBER : b)                                    \
               : y != y ? a                                                              \
               : x == y ? a | b                                                          \
               : x < y  ? a                                                              \
                        : b;                                                              \
    }                                                                                    \
    static inline U max_##FN(U a, U b)                                                   \
    {                                                                                    \
        F x = as_##FN(a), y = as_##FN(b);                                                \
        return x != x   ? (y != y ? NOT_A_NUMBER : b)                                    \
               : y != y ? a                                                              \
               : x == y ? a & b                                                          \
               : x > y  ? a                                                              \
                        : b;                                                              \
    }                                                                                    \
    static inline bool setp_nan_##FN(U a, U b)                                           \
    {                                                                                    \
        return as_##FN(a) != as_##FN(a) || as_##FN(b) != as_##FN(b);                     \
    }                                                                                    \
    static inline bool setp_num_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_nan_##FN(a, b);                                                     \
    }                                                                                    \
    static inline bool setp_eq_##FN(U a, U b)                                            \
    {                                                                                    \
        return as_##FN(a) == as_##FN(b);                                                 \
    }                                                                                    \
    static inline bool setp_lt_##FN(U a, U b)                                            \
    {                                                                                    \
        return as_##FN(a) < as_##FN(b);                                                  \
    }                                                                                    \
    static inline bool setp_le_##FN(U a, U b)                                            \
    {                                                                                    \
        return as_##FN(a) <= as_##FN(b);                                                 \
    }                                                                                    \
    static inline bool setp_gt_##FN(U a, U b)                                            \
    {                                                                                    \
        return as_##FN(a) > as_##FN(b);                                                  \
    }                                                                                    \
    static inline bool setp_ge_##FN(U a, U b)                                            \
    {                                                                                    \
        return as_##FN(a) >= as_##FN(b);                                                 \
    }                                                                                    \
    static inline bool setp_neu_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_eq_##FN(a, b);                                                      \
    }                                                                                    \
    static inline bool setp_ne_##FN(U a, U b)                                            \
    {                                                                                    \
        return !setp_nan_##FN(a, b) && !setp_eq_##FN(a, b);                              \
    }                                                                                    \
    static inline bool setp_equ_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_ne_##FN(a, b);                                                      \
    }                                                                                    \
    static inline bool setp_ltu_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_ge_##FN(a, b);                                                      \
    }                                                                                    \
    static inline bool setp_leu_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_gt_##FN(a, b);                                                      \
    }                                                                                    \
    static inline bool setp_gtu_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_le_##FN(a, b);                                                      \
    }                                                                                    \
    static inline bool setp_geu_##FN(U a, U b)                                           \
    {                                                                                    \
        return !setp_lt_##FN(a, b);                                                      \
    }
FLOATS(f32, uint32_t, float, f, 0x80000000u, 0x7fffffffu)
FLOATS(f64, uint64_t, double, , 0x8000000000000000u, 0x7fffffffffffffffu)

/* Subnormal numbers are zeros of their sign. */
static inline float flushed(float value)
{
    return fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}
/* An approximation on a GPU too, and not to the same bit: whatever takes it promises no
 * bits. */
static inline uint32_t ex2_approx_ftz_f32(uint32_t a)
{
    return bits_f32(flushed(exp2f(flushed(as_f32(a)))));
}

/* -- Conversions
 * --------------------------------------------------------------------------- */

static inline uint32_t cvt_rn_f32_f64(uint64_t a)
{
    return bits_f32((float)as_f64(a));
}
static inline uint64_t cvt_f64_f32(uint32_t a)
{
    return bits_f64((double)as_f32(a));
}
/* Into [0, 1]; a NaN is 0. */
static inline uint32_t cvt_sat_f32_f32(uint32_t a)
{
    float value = as_f32(a);
    return value > 0 ? (value < 1 ? a : bits_f32(1)) : 0;
}
#define FROM_INTEGERS(N, U, S)                                                           \
    static inline uint32_t cvt_rn_f32_u##N(U a)                                          \
    {                                                                                    \
        return bits_f32((float)a);                                                       \
    }                                                                                    \
    static inline uint32_t cvt_rn_f32_s##N(U a)                                          \
    {                                                                                    \
        return bits_f32((float)(S)a);                                                    \
    }                                                                                    \
    static inline uint64_t cvt_rn_f64_u##N(U a)                                          \
    {                                                                                    \
        return bits_f64((double)a);                                                      \
    }                                                                                    \
    static inline uint64_t cvt_rn_f64_s##N(U a)                                          \
    {                                                                                    \
        return bits_f64((double)(S)a);                                                   \
    }
FROM_INTEGERS(16, uint16_t, int16_t)
FROM_INTEGERS(32, uint32_t, int32_t)
FROM_INTEGERS(64, uint64_t, int64_t)

/* Out of range is the nearest there is.  A NaN is 0 where single precision becomes 32
 * bits, and otherwise the highest bit alone. */
#define TO_INTEGER(T, C, LEAST, MOST, FN, F, U, NAN_BITS)                                \
    static inline U cvt_rzi_##T##_##FN(uint##F##_t a)                                    \
    {                                                                                    \
        double value = as_##FN(a);                                                       \
        return value != value             ? (U)NAN_BITS                                  \
               : value <= (double)(LEAST) ? (U)(LEAST)                                   \
               : value >= (double)(MOST)  ? (U)(MOST)                                    \
                                          : (U)(C)value;                                  \
    }                                                                                    \
    static inline U cvt_rni_##T##_##FN(uint##F##_t a)                                    \
    {                                                                                    \
        return as_##FN(a) != as_##FN(a) ? (U)NAN_BITS                                    \
                                        : cvt_rzi_##T##_f64(bits_f64(rint(as_##FN(a)))); \
    }
#define HIGHEST 0x8000000000000000u
TO_INTEGER(s32, int32_t, INT32_MIN, INT32_MAX, f64, 64, uint32_t, 0x80000000u)
TO_INTEGER(u32, uint32_t, 0, UINT32_MAX, f64, 64, uint32_t, 0x80000000u)
TO_INTEGER(s64, int64_t, INT64_MIN, INT64_MAX, f64, 64, uint64_t, HIGHEST)
TO_INTEGER(u64, uint64_t, 0, UINT64_MAX, f64, 64, uint64_t, HIGHEST)
TO_INTEGER(s32, int32_t, INT32_MIN, INT32_MAX, f32, 32, uint32_t, 0)
TO_INTEGER(u32, uint32_t, 0, UINT32_MAX, f32, 32, uint32_t, 0)
TO_INTEGER(s64, int64_t, INT64_MIN, INT64_MAX, f32, 32, uint64_t, HIGHEST)
TO_INTEGER(u64, uint64_t, 0, UINT64_MAX, f32, 32, uint64_t, HIGHEST)

#endif
