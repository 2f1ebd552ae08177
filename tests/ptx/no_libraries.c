/* What a library computed would be computed by no PTX of ours: there is none.
 * REPROD_PTX_LIBRARIES=1 lets tests have imitations. */
#include <stdlib.h>

#include "cuda/library/library.h"

const char *library_forbidden(void)
{
    return getenv("REPROD_PTX_LIBRARIES")
               ? NULL
               : "nvcc's PTX is executed on a CPU, and no library";
}
