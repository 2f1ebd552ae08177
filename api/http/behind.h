/* Functions of which the executable has its own: the dynamic linker takes ours, and these
 * are what stands behind them. */
#ifndef API_HTTP_BEHIND_H
#define API_HTTP_BEHIND_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Sets *RET_FUNCTION, a pointer to a function, to the next NAME of the linker's order.
 * There is one: the library that calls it was linked with it. */
static inline void behind_ours(const char *name, void *ret_function)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (!symbol) {
        abort();
    }
    memcpy(ret_function, &symbol, sizeof symbol);
}

#endif
