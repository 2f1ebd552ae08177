/* The difference signature of two tensors of equal dtype and shape: what tells an order
 * of accumulation (few units in the last place, everywhere) from a lost update (few
 * elements, any size), a broken lane (a period) or a flipped bit (one bit of the
 * histogram).
 *
 * Elements are compared by their bits: NaNs with one payload are equal, zeros of opposite
 * sign differ.  Memory is little-endian.  Pure. */
#ifndef DAEMON_TRACE_DIFFERENCE_H
#define DAEMON_TRACE_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIFFERENCE_BITS = 64, DIFFERENCE_PERIOD_MAX = 4096 };

struct difference {
    int64_t elements;    /* compared */
    int64_t differ;      /* of these, with different bits */
    int64_t first, last; /* index of a differing element, row-major; -1: none differs */
    /* Largest distance in units in the last place, the number of representable values
     * between both; pairs with a NaN are left out, and zeros are 0 apart.  0 for integer
     * dtypes. */
    uint64_t max_ulp;
    double max_absolute; /* largest |a - b| of elements that are finite in both */
    int64_t bits[DIFFERENCE_BITS]; /* elements that differ in bit i, 0 the lowest */
    int bit_count;                 /* of an element: 8, 16, 32 or 64 */
    int64_t nan[2], infinite[2];   /* elements of a, of b */
    int64_t zero_signs;            /* elements that differ in the sign of a zero alone */
    /* Differing indices modulo `period` take only `residues` values, the smallest of them
     * `phase`; 0: no period.  A period is told only if indices drawn at random would show
     * it with a probability below 10^-6. */
    int64_t period, residues, phase;
};

/* Bytes of an element of that dtype ("float32"), 0 for a name that is none. */
size_t difference_dtype_bytes(const char *dtype);

/* Whether that dtype has units in the last place. */
bool difference_dtype_is_float(const char *dtype);

/* DTYPE must be one that difference_dtype_bytes knows; A and B hold ELEMENTS elements, at
 * any alignment. */
void difference_compute(const char *dtype, int64_t elements, const void *a, const void *b,
                        struct difference *ret_difference);

#endif
