#include "daemon/run/run_captures.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/run/run_event.h"
#include "daemon/trace/difference.h"

enum {
    TENSOR_BYTES_MAX = 4 * 1024 * 1024,
    TENSORS_BYTES_MAX = 16 * 1024 * 1024,
    RANK_MAX = 32
};

/* 0 … 63, or -1. */
static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The bytes of TEXT (RFC 4648, with padding) to RET_BYTES, which has room for COUNT;
 * false if they are not exactly as many. */
static bool base64_decode(const char *text, unsigned char *ret_bytes, int64_t count)
{
    size_t length = strlen(text);
    int64_t at = 0;

    if (length != (size_t)((count + 2) / 3 * 4)) {
        return false;
    }
    for (size_t i = 0; i < length; i += 4) {
        unsigned group = 0;
        int64_t left = count - at;

        for (int64_t digit = 0; digit < 4; digit++) {
            int value = digit > left && text[i + (size_t)digit] == '='
                            ? 0
                            : base64_value(text[i + (size_t)digit]);

            if (value < 0 || (digit > left && text[i + (size_t)digit] != '=')) {
                return false;
            }
            group = group << 6 | (unsigned)value;
        }
        for (int shift = 16; shift >= 0 && at < count; shift -= 8) {
            ret_bytes[at++] = (unsigned char)(group >> shift);
        }
    }
    return true;
}

static enum err_code check_place(struct run_captures *t, const struct tensor_event *e,
                                 struct err *err)
{
    if (!t->place) {
        t->place = xstrdup(e->place);
        t->iteration = e->iteration;
        t->step = e->step;
    }
    return t->iteration == e->iteration && t->step == e->step &&
                   strcmp(t->place, e->place) == 0
               ? ERR_OK
               : err_set(err, ERR_PROTOCOL, "a second place is captured");
}

static enum err_code check_size(const struct tensor_event *e, struct err *err)
{
    int64_t bytes = (int64_t)difference_dtype_bytes(e->dtype);
    int64_t elements = 1;
    json_t *extent;
    size_t i;

    if (json_array_size(e->shape) > RANK_MAX || e->bytes_total < 0) {
        return err_set(err, ERR_PROTOCOL, "more than %d dimensions", RANK_MAX);
    }
    json_array_foreach((json_t *)e->shape, i, extent)
    {
        if (__builtin_mul_overflow(elements, json_integer_value(extent), &elements)) {
            return err_set(err, ERR_PROTOCOL, "shape is too large");
        }
    }
    /* Other dtypes may be anything; they are compared as bytes. */
    if (bytes &&
        (__builtin_mul_overflow(elements, bytes, &bytes) || bytes != e->bytes_total)) {
        return err_set(err, ERR_PROTOCOL, "bytes_total is not that of its shape");
    }
    return ERR_OK;
}

/* Whether a tensor of E's role and index may follow the last one. */
static bool is_next(const struct run_captures *t, const struct tensor_event *e)
{
    const struct captured_tensor *last = t->count ? &t->items[t->count - 1] : NULL;

    if (!last || (e->is_out && !last->is_out)) {
        return e->index == 0;
    }
    return e->is_out == last->is_out && e->index == last->index + 1;
}

static enum err_code begin(struct run_captures *t, const struct tensor_event *e,
                           struct err *err)
{
    struct captured_tensor *tensor;

    if (run_captures_finish(t, err) != ERR_OK || check_size(e, err) != ERR_OK) {
        return err->code;
    }
    if (!is_next(t, e)) {
        return err_set(err, ERR_PROTOCOL, "not the next piece of a tensor");
    }
    if (t->count == RUN_CAPTURES_MAX || e->captured_bytes > TENSOR_BYTES_MAX ||
        e->captured_bytes > TENSORS_BYTES_MAX - t->bytes ||
        strlen(e->name) >= sizeof tensor->name ||
        strlen(e->dtype) >= sizeof tensor->dtype) {
        return err_set(err, ERR_PROTOCOL, "more than may be captured");
    }
    t->items = xgrow(t->items, t->count, sizeof *t->items);
    tensor = &t->items[t->count++];
    *tensor = (struct captured_tensor){ .is_out = e->is_out,
                                        .index = (int)e->index,
                                        .total = e->bytes_total,
                                        .bytes = e->captured_bytes,
                                        .shape = json_dumps(e->shape, JSON_COMPACT),
                                        .data = xmalloc((size_t)e->captured_bytes + 1) };
    copy_text(tensor->name, sizeof tensor->name, e->name);
    copy_text(tensor->dtype, sizeof tensor->dtype, e->dtype);
    t->bytes += e->captured_bytes;
    t->last_bytes = 0;
    return ERR_OK;
}

static bool continues(const struct run_captures *t, const struct tensor_event *e)
{
    const struct captured_tensor *last = &t->items[t->count - 1];

    return last->is_out == e->is_out && last->index == e->index &&
           e->offset == t->last_bytes && e->bytes_total == last->total &&
           e->captured_bytes == last->bytes && strcmp(e->dtype, last->dtype) == 0;
}

enum err_code run_captures_add(struct run_captures *t, const struct tensor_event *e,
                               struct err *err)
{
    struct captured_tensor *last;
    int64_t count;

    if (check_place(t, e, err) != ERR_OK ||
        (e->offset == 0 && begin(t, e, err) != ERR_OK)) {
        return err->code;
    }
    if (t->count == 0 || !continues(t, e)) {
        return err_set(err, ERR_PROTOCOL, "not the next piece of a tensor");
    }
    last = &t->items[t->count - 1];
    count = last->bytes - t->last_bytes;
    count = count < TENSOR_CHUNK_MAX ? count : TENSOR_CHUNK_MAX;
    if (strlen(e->data) < (size_t)((count + 2) / 3 * 4)) {
        /* A smaller piece; only the last of a tensor may have padding. */
        count = (int64_t)strlen(e->data) / 4 * 3;
    }
    if ((count == 0 && last->bytes > 0) ||
        !base64_decode(e->data, (unsigned char *)last->data + e->offset, count)) {
        return err_set(err, ERR_PROTOCOL, "data is not base64 of the bytes that are due");
    }
    t->last_bytes += count;
    return ERR_OK;
}

enum err_code run_captures_finish(const struct run_captures *t, struct err *err)
{
    if (t->count > 0 && t->last_bytes != t->items[t->count - 1].bytes) {
        return err_set(err, ERR_PROTOCOL, "tensor %d of %d ended early", t->count - 1,
                       t->count);
    }
    return ERR_OK;
}

void run_captures_release(struct run_captures *t)
{
    for (int i = 0; i < t->count; i++) {
        captured_tensor_release(&t->items[i]);
    }
    free(t->items);
    free(t->place);
    *t = (struct run_captures){ 0 };
}
