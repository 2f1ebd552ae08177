/* Conversions between float and the two 16-bit formats: IEEE 754 binary16 (f16) and
 * bfloat16 (bf16, the upper half of a binary32).  Narrowing rounds to nearest, ties to
 * even, overflows to infinity and keeps subnormals; widening is exact.  A NaN stays a NaN
 * with its sign and upper payload bits, made quiet.  Integer arithmetic only, so the bits
 * depend on no instruction set or rounding mode.  C and CUDA. */
#ifndef WORKLOADS_INSTRUMENTS_HALF_H
#define WORKLOADS_INSTRUMENTS_HALF_H

#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

/* VALUE / 2^SHIFT, to nearest, ties to even; SHIFT in 1 .. 31. */
REPROD_HD uint32_t shift_right_even(uint32_t value, uint32_t shift)
{
    uint32_t kept = value >> shift;
    uint32_t rest = value & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);
    return kept + (rest > half || (rest == half && (kept & 1u)));
}

REPROD_HD float f32_from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    uint32_t quiet = (wide & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u;
    return f32_from_bits(wide | quiet);
}

REPROD_HD uint16_t bf16_from_f32(float value)
{
    uint32_t bits = f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x0040u);
    }
    return (uint16_t)shift_right_even(bits, 16);
}

REPROD_HD float f32_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = bits >> 10 & 0x1fu;
    uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0x1fu && fraction) {
        return f32_from_bits(sign | 0x7fc00000u | fraction << 13);
    }
    if (exponent == 0x1fu) {
        return f32_from_bits(sign | 0x7f800000u);
    }
    if (exponent) {
        return f32_from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
    }
    /* A subnormal is FRACTION units of 2^-24: both factors and the product are exact. */
    return f32_from_bits(sign | f32_bits((float)fraction * 0x1p-24f));
}

REPROD_HD uint16_t f16_from_f32(float value)
{
    uint32_t bits = f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    }
    if (magnitude >= 0x477ff000u) { /* 65520: half way from the largest finite to 2^16 */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude >= 0x38800000u) { /* 2^-14: the smallest normal */
        return (uint16_t)(sign | shift_right_even(magnitude - (112u << 23), 13));
    }
    if (magnitude <=
        0x33000000u) { /* 2^-25: half of the smallest subnormal, a tie to 0 */
        return (uint16_t)sign;
    }
    uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | shift_right_even(significand, 126u - (magnitude >> 23)));
}

#endif
