/* Where the system has a shared library: what ldconfig(8) wrote to /etc/ld.so.cache.
 * Source of the format: glibc, sysdeps/generic/dl-cache.h ("glibc-ld.so.cache1.1"). */
#ifndef CUDA_LIBRARY_LDCACHE_H
#define CUDA_LIBRARY_LDCACHE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The path of the 64-bit library SONAME in the cache file CACHE; false when it has none.
 */
bool ldcache_find(const char *cache, const char *soname, char *ret_path, size_t size);

#ifdef __cplusplus
}
#endif

#endif
