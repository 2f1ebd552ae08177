#include "cuda/library/driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

const char *const driver_folders[] = {
    "/usr/local/nvidia/lib64",    /* Kubernetes' device plugin */
    "/usr/local/nvidia/lib",      /* older images */
    "/usr/lib/x86_64-linux-gnu",  /* NVIDIA's container runtime, on Debian's layout */
    "/usr/lib/aarch64-linux-gnu", /* likewise */
    "/usr/lib64",                 /* likewise, on Red Hat's */
    "/usr/lib/wsl/lib",           /* Windows */
    "/run/opengl-driver/lib",     /* NixOS */
    "/.singularity.d/libs",       /* Apptainer --nv */
    NULL,
};

void *driver_open(const char *soname, const char *const *folders)
{
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    char path[PATH_MAX];

    for (const char *const *folder = folders; !library && *folder; folder++) {
        snprintf(path, sizeof path, "%s/%s", *folder, soname);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}
