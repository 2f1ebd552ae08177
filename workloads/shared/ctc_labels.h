/* What all backends of CTC share: the shape, and the extended label row.  ctc_loss.h has
 * the definitions. */
#ifndef WORKLOADS_SHARED_CTC_LABELS_H
#define WORKLOADS_SHARED_CTC_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/hd.h"

/* time / 4 * 3 >= 2 * labels, so that every label row fits, repeats and all. */
struct ctc_shape {
    int64_t time, batch, symbols, labels;
};

enum { CTC_BLANK = 0 };

REPROD_HD int64_t ctc_symbol_at(const int32_t *labels, int64_t position)
{
    return position % 2 ? labels[position / 2] + 1 : CTC_BLANK;
}

/* Whether a path may go from position - 2 to POSITION: not over a blank between equal
 * labels, and never from blank to blank. */
REPROD_HD bool ctc_may_skip(const int32_t *labels, int64_t position)
{
    return position >= 2 && position % 2 &&
           labels[position / 2] != labels[position / 2 - 1];
}

#endif
