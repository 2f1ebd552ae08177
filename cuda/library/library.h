/* A shared library under test, found and loaded at run time: in the stack's library path
 * (LD_LIBRARY_PATH), or else where the system has it (ldcache.h).
 *
 * What can go wrong, and what the run then is: the stack has no such library, or one of a
 * version that reprod does not speak, or one without a function that is needed: the run
 * is `unsupported`.  The library is damaged or cannot be loaded: the run is `infra`.
 * All its files are checked before one is loaded (elf.h). */
#ifndef CUDA_LIBRARY_LIBRARY_H
#define CUDA_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LIBRARY_PATH_MAX = 1024, LIBRARY_REASON_MAX = 1536, LIBRARY_VERSION_SIZE = 40 };

enum library_state {
    LIBRARY_CLOSED,      /* nobody asked for it yet */
    LIBRARY_USABLE,      /* loaded */
    LIBRARY_UNSUPPORTED, /* there is none, or none that can be used */
    LIBRARY_BROKEN       /* there is one, and something is wrong with it */
};

struct library {
    const char *title;          /* "cuDNN" */
    const char *stem;           /* "libcudnn": what the names of its files begin with */
    const char *const *sonames; /* the best first; NULL-terminated */

    /* The rest is written here. */
    enum library_state state;
    char path[LIBRARY_PATH_MAX];     /* of the file; "": not looked for, or not there */
    char reason[LIBRARY_REASON_MAX]; /* why it is not usable; one line */
    void *handle;                    /* dlopen(3) */
    int major;                       /* 0 and "" until it has told its version: */
    char version[LIBRARY_VERSION_SIZE]; /* "9.19.0" */
};

/* The type of a pointer to FUNCTION, for a member of that name. */
#ifdef __cplusplus
#define LIBRARY_POINTER(function) decltype(&::function)
#else
#define LIBRARY_POINTER(function) __typeof__(&(function))
#endif

/* A function of a table to fill. */
struct library_function {
    const char *name;
    size_t offset; /* of its pointer in the table */
    bool optional; /* NULL where the library has none */
};

/* Defined by programs that may load no library (the simulator of a GPU): why; NULL: they
 * may. */
const char *library_forbidden(void) __attribute__((weak));

/* Finds and checks the files without loading them.  False, and the state and reason say
 * why, when there are none or one is damaged. */
bool library_find(struct library *library);

/* Finds and loads it, once; the state says with what result. */
void library_open(struct library *library);

/* Fills TABLE, if LIBRARY is usable; a required function that is missing makes it
 * unsupported. */
void library_functions(struct library *library, const struct library_function *functions,
                       int count, void *table);

/* Asks a usable LIBRARY for its version by FUNCTION, which is of the type of
 * cudnnGetProperty and cublasGetProperty; the library is broken if it does not know. */
void library_ask_version(struct library *library, const char *function);

/* From now on LIBRARY is in STATE, for this reason. */
void library_refuse(struct library *library, enum library_state state, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* For `unsupported` of a variant: the reason if LIBRARY is unsupported, NULL if it is
 * usable; ends RUN as `infra` if it is broken. */
const char *library_unsupported(const struct library *library, const struct run *run);

#ifdef __cplusplus
}
#endif

#endif
