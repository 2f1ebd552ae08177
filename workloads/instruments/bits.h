/* Bit patterns of floating-point values and the 64-bit mixer that keys the digest and the
 * generator's streams.  C and CUDA. */
#ifndef WORKLOADS_INSTRUMENTS_BITS_H
#define WORKLOADS_INSTRUMENTS_BITS_H

#include <stdint.h>
#include <string.h>

#include "workloads/instruments/hd.h"

REPROD_HD uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

REPROD_HD float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

REPROD_HD uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

REPROD_HD double f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A permutation of 64-bit words in which every input bit reaches every output bit: the
 * finaliser of SplitMix64 (Steele, Lea, Flood 2014; constants: Stafford's Mix13). */
REPROD_HD uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
