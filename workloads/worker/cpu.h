/* What this machine's processor is, as far as it can change the bits of a result. */
#ifndef WORKLOADS_WORKER_CPU_H
#define WORKLOADS_WORKER_CPU_H

#include <stddef.h>

enum { CPU_TEXT_SIZE = 128 };

/* The class of the processor: "model name" of /proc/cpuinfo without trade marks, clock
 * and padding ("Intel Xeon Platinum 8370C"); the machine's architecture where there is
 * none. */
void cpu_model(char ret_model[CPU_TEXT_SIZE]);

/* CLASS of a "model name" line's value; exposed for its test. */
void cpu_model_class(const char *name, char ret_model[CPU_TEXT_SIZE]);

/* The vector instructions by which libraries choose their code, as the processor and the
 * kernel offer them: "avx512f avx2 fma", "avx2 fma", …, "baseline". */
const char *cpu_vector_isa(void);

#endif
