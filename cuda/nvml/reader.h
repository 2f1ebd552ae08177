/* Reading one handle: each answer becomes a fact, or stays unknown.  What a GPU does not
 * support, or a driver does not have, is only unknown; a GPU that is lost is reported.
 */
#ifndef CUDA_NVML_READER_H
#define CUDA_NVML_READER_H

#include "cuda/nvml/api.h"
#include "cuda/nvml/fact.h"

struct reader {
    const struct nvml_api *api;
    struct nvml_handle *handle;
    char *cause; /* of NVML_CAUSE_SIZE: why the device cannot be read, kept once set */
};

/* Whether CODE is success; notes a device that is lost or needs a reset. */
bool reader_ok(struct reader *reader, int code);

/* NVML says "not available" by all ones. */
struct fact reader_fact(unsigned value);
struct fact reader_fact_long(unsigned long long value);

/* Of at most SIZE bytes; unknown when it is empty or says "N/A". */
struct fact_text reader_fact_text(const char *text, size_t size);

/* GET is a function of the API, or NULL. */
struct fact reader_number(struct reader *reader,
                          int (*get)(struct nvml_handle *, unsigned *));
void reader_text(struct reader *reader,
                 int (*get)(struct nvml_handle *, char *, unsigned),
                 struct fact_text *ret_text);

/* The error counters of KIND: NVML_VOLATILE or NVML_AGGREGATE. */
struct nvml_ecc reader_ecc(struct reader *reader, int kind);

#endif
