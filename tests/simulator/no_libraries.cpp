/* The simulated GPU has no libraries: what they computed would be computed by no GPU.
 * REPROD_CUDASIM_LIBRARIES=1 lets tests have imitations, which compute in the memory that
 * stands for a device's. */
#include <cstdlib>

#include "cuda/library/library.h"

extern "C" const char *library_forbidden(void)
{
    return getenv("REPROD_CUDASIM_LIBRARIES")
               ? nullptr
               : "the simulator runs the kernels of reprod, and no library";
}
