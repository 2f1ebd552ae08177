/* The simulated GPU has no libraries: what they computed would be computed by no GPU. */
#include "cuda/library/library.h"

extern "C" const char *library_forbidden(void)
{
    return "the simulator runs the kernels of reprod, and no library";
}
