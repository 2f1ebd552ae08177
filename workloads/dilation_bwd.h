/* What both backends of dilation_bwd share. */
#ifndef WORKLOADS_DILATION_BWD_H
#define WORKLOADS_DILATION_BWD_H

#include "workloads/shared/window.h"

enum { DILATION_SLOTS = 32 /* fixed parts of the rows, whose sums a tree joins */ };

#endif
