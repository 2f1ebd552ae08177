/* The places that differ, step by step, as a picture in a terminal: a line a place, in
 * the order of their first differences. */
#ifndef API_RENDER_COMPARE_MAP_H
#define API_RENDER_COMPARE_MAP_H

#include "api/compare.h"

/* Appends nothing where no place differs. */
void compare_map(const struct compare *compare, struct buf *buf);

#endif
