/* The part of oneDNN's C interface that the workloads call, declared here so that neither
 * its headers nor the library are needed to build.
 *
 * Source: oneapi/dnnl/dnnl.h and dnnl_types.h of oneDNN 2.6.3.  Names are those of the
 * library without their prefix dnnl_.  Handles are pointers to what only the library
 * knows.  Descriptors are structs that callers own; only functions of the library fill
 * and read them, so here they are memory of sufficient size: in 2.x, whose layout
 * the soname libdnnl.so.2 fixes, dnnl_memory_desc_t has 696 bytes, and the largest
 * descriptor of an operation used here, dnnl_convolution_desc_t, 5976. */
#ifndef WORKLOADS_ONEDNN_API_H
#define WORKLOADS_ONEDNN_API_H

#include <stddef.h>
#include <stdint.h>

struct onednn_layout { /* dnnl_memory_desc_t: extents, type and order of a tensor */
    _Alignas(16) unsigned char bytes[1024];
};

struct onednn_operation { /* dnnl_convolution_desc_t, … */
    _Alignas(16) unsigned char bytes[8192];
};

struct onednn_argument { /* dnnl_exec_arg_t */
    int role;            /* enum onednn_role */
    void *memory;
};

struct onednn_version { /* dnnl_version_t, in 2.x and in 3.x */
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

enum onednn_status { ONEDNN_OUT_OF_MEMORY = 1, ONEDNN_UNIMPLEMENTED = 3 };

enum onednn_constant {
    ONEDNN_ENGINE_CPU = 1,
    ONEDNN_STREAM_DEFAULT = 1,
    ONEDNN_FLOAT32 = 3,
    ONEDNN_FORWARD_TRAINING = 64,
    ONEDNN_CONVOLUTION_DIRECT = 1,
    ONEDNN_POOLING_MAX = 0x1ff
};

/* dnnl_format_tag_t.  Extents are always given as (images, channels, rows, columns), or
 * for weights as (out, in, rows, columns); the tag says in which order they lie. */
enum onednn_order {
    ONEDNN_ORDER_ANY = 1, /* as the library likes */
    ONEDNN_ORDER_AB = 3,
    ONEDNN_ORDER_NHWC = 20,
    ONEDNN_ORDER_HWIO = 30
};

enum onednn_role { /* DNNL_ARG_… */
                   ONEDNN_SOURCE = 1,
                   ONEDNN_RESULT = 17,
                   ONEDNN_WEIGHTS = 33,
                   ONEDNN_WORKSPACE = 64,
                   ONEDNN_DIFF_SOURCE = 129,
                   ONEDNN_DIFF_RESULT = 145,
                   ONEDNN_DIFF_WEIGHTS = 161
};

enum onednn_query { /* dnnl_query_t */
                    ONEDNN_QUERY_IMPLEMENTATION = 8,
                    ONEDNN_QUERY_DIFF_WEIGHTS = 132,
                    ONEDNN_QUERY_WORKSPACE = 135
};

/* X(result, name, parameters); an int is a dnnl_status_t. */
#define ONEDNN_FUNCTIONS(X)                                                              \
    X(int, engine_create, (void **ret_engine, int kind, size_t index))                   \
    X(int, stream_create, (void **ret_stream, void *engine, unsigned flags))             \
    X(int, stream_wait, (void *stream))                                                  \
    X(int, memory_desc_init_by_tag,                                                      \
      (struct onednn_layout * ret_layout, int rank, const int64_t *extents, int type,    \
       int order))                                                                       \
    X(size_t, memory_desc_get_size, (const struct onednn_layout *layout))                \
    X(int, memory_create,                                                                \
      (void **ret_memory, const struct onednn_layout *layout, void *engine, void *data)) \
    X(int, convolution_backward_weights_desc_init,                                       \
      (struct onednn_operation * ret_operation, int algorithm,                           \
       const struct onednn_layout *source, const struct onednn_layout *diff_weights,     \
       const struct onednn_layout *diff_bias, const struct onednn_layout *diff_result,   \
       const int64_t *strides, const int64_t *padding_before,                            \
       const int64_t *padding_after))                                                    \
    X(int, pooling_forward_desc_init,                                                    \
      (struct onednn_operation * ret_operation, int propagation, int algorithm,          \
       const struct onednn_layout *source, const struct onednn_layout *result,           \
       const int64_t *strides, const int64_t *kernel, const int64_t *padding_before,     \
       const int64_t *padding_after))                                                    \
    X(int, pooling_backward_desc_init,                                                   \
      (struct onednn_operation * ret_operation, int algorithm,                           \
       const struct onednn_layout *diff_source, const struct onednn_layout *diff_result, \
       const int64_t *strides, const int64_t *kernel, const int64_t *padding_before,     \
       const int64_t *padding_after))                                                    \
    X(int, matmul_desc_init,                                                             \
      (struct onednn_operation * ret_operation, const struct onednn_layout *source,      \
       const struct onednn_layout *weights, const struct onednn_layout *bias,            \
       const struct onednn_layout *result))                                              \
    X(int, primitive_desc_create,                                                        \
      (void **ret_choice, const struct onednn_operation *operation,                      \
       const void *attributes, void *engine, const void *forward))                       \
    X(int, reorder_primitive_desc_create,                                                \
      (void **ret_choice, const struct onednn_layout *from, void *from_engine,           \
       const struct onednn_layout *to, void *to_engine, const void *attributes))         \
    X(int, primitive_desc_query,                                                         \
      (const void *choice, int query, int index, void *ret_value))                       \
    X(const struct onednn_layout *, primitive_desc_query_md,                             \
      (const void *choice, int query, int index))                                        \
    X(int, primitive_create, (void **ret_primitive, const void *choice))                 \
    X(int, primitive_execute,                                                            \
      (const void *primitive, void *stream, int count,                                   \
       const struct onednn_argument *arguments))

#define ONEDNN_DECLARE(result, name, parameters) result(*name) parameters;
struct onednn_api {
    ONEDNN_FUNCTIONS(ONEDNN_DECLARE)
};
#undef ONEDNN_DECLARE

#endif
