/* NVIDIA's driver where the dynamic linker does not look: containers and some systems
 * have its libraries in folders that only an entry point of theirs adds to
 * LD_LIBRARY_PATH. */
#ifndef CUDA_LIBRARY_DRIVER_H
#define CUDA_LIBRARY_DRIVER_H

#ifdef __cplusplus
extern "C" {
#endif

/* These folders; NULL ends them. */
extern const char *const driver_folders[];

/* Opens the library SONAME, for the life of the process: the one that the dynamic linker
 * finds, or else the first of FOLDERS that has one which can be loaded.  Whoever opens
 * SONAME later gets the same.  NULL: there is none. */
void *driver_open(const char *soname, const char *const *folders);

#ifdef __cplusplus
}
#endif

#endif
