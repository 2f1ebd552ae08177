/* What both backends of svd_sign share. */
#ifndef WORKLOADS_SVD_SIGN_H
#define WORKLOADS_SVD_SIGN_H

#include <stdint.h>

#include "workloads/instruments/hd.h"

enum { SVD_SLOTS = 32 /* fixed parts of a column, whose sums a tree joins */ };

struct svd_shape {
    int64_t columns, rows; /* rows: a multiple of SVD_SLOTS */
};

struct svd_sign {
    struct svd_shape shape;
    const float *matrix;   /* [columns][rows]: each a matrix of one column */
    const float *u;        /* [columns][rows]: its left singular vector */
    const float *singular; /* [columns]: its singular value */
    float *partials;       /* [columns][slots]: scratch */
    float *v;              /* [columns] */
};

/* What element I of all columns contributes to v, before the sign is taken. */
REPROD_HD float svd_term(const struct svd_sign *svd, int64_t i)
{
    return svd->matrix[i] * svd->u[i] * svd->singular[i / svd->shape.rows];
}

REPROD_HD float svd_sign_of(float sum)
{
    return sum >= 0 ? 1.0F : -1.0F;
}

#endif
