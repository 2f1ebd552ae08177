/* /etc/ld.so.cache. */
#include <string.h>
#include <unistd.h>

#include "cuda/library/ldcache.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH_SIZE];
    int fd = fuzz_file(data, size, path);
    char found[64];

    if (ldcache_find(path, "libx.so", found, sizeof found)) {
        FUZZ_CHECK(strlen(found) < sizeof found);
    }
    close(fd);
}

FUZZ_TARGET("ldcache", run);
