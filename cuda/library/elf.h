/* What a shared library's file says before it is loaded: the dynamic linker maps a file
 * without looking at its length, and a truncated one kills the process with SIGBUS. */
#ifndef CUDA_LIBRARY_ELF_H
#define CUDA_LIBRARY_ELF_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the file PATH is an ELF64 file as long as its program and section headers say.
 * False with one line in ret_reason (SIZE bytes), which names the file. */
bool elf_check(const char *path, char *ret_reason, size_t size);

/* The file's GNU build-id in hex, cut to SIZE; "" if it has none or PATH is not ELF. */
void elf_build_id(const char *path, char *ret_id, size_t size);

#ifdef __cplusplus
}
#endif

#endif
