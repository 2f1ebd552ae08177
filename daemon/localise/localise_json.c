#include "daemon/localise/localise_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_out.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"
#include "daemon/trace/difference.h"
#include "db/captures.h"

static void place_json(struct json_out *out, const char *key,
                       const struct divergence_place *place)
{
    if (!out_object(out, key, place->position >= 0)) {
        return;
    }
    out_int(out, "iteration", place->iteration);
    out_int(out, "step", place->step);
    out_text(out, "place", place->place);
    out_int(out, "position", place->position);
    out_int(out, "occurrence", place->occurrence);
    out_close(out, '}');
}

static void structure_json(struct json_out *out, const struct divergence_result *r)
{
    static const char *const keys[] = { "a", "b" };

    if (!out_object(out, "structure", r->structure[0].position >= 0)) {
        return;
    }
    out_int(out, "position", r->structure[0].position);
    for (int i = 0; i < 2; i++) {
        if (r->structure[i].place[0]) {
            place_json(out, keys[i], &r->structure[i]);
        } else {
            out_null(out, keys[i]);
        }
    }
    out_int(out, "runs_apart", r->runs_apart);
    out_close(out, '}');
}

char *localise_search_json(const struct divergence_result *r, int64_t digests,
                           char (*runs)[ID_SIZE])
{
    bool alike = r->first.position < 0 && r->runs_apart == 0 && r->unplaced == 0 &&
                 r->truncated == 0 && digests == 1;
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    place_json(&out, "root", &r->root);
    out_int(&out, "runs", r->traces);
    out_int(&out, "runs_parted", r->runs_diverged);
    out_int(&out, "pairs", r->pairs);
    out_int(&out, "pairs_parted", r->pairs_diverged);
    if (r->root.position >= 0) {
        out_open(&out, "example", '[');
        out_text(&out, NULL, runs[r->example[0]]);
        out_text(&out, NULL, runs[r->example[1]]);
        out_close(&out, ']');
    } else {
        out_null(&out, "example");
    }
    out_int(&out, "roots", r->roots);
    place_json(&out, "first_difference", &r->first);
    structure_json(&out, r);
    out_int(&out, "records", r->records);
    out_int(&out, "truncated", r->truncated);
    out_int(&out, "not_followed", r->unplaced);
    out_int(&out, "distinct_digests", digests);
    out_real(&out, "difference_probability_upper_bound",
             alike ? verdict_difference_bound(r->traces) : 1);
    out_close(&out, '}');
    return buf_detach(&out.buf, NULL);
}

/* The tensors that a run captured. */
struct captured {
    struct captured_tensor *tensors;
    int count;
};

static void take_tensor(void *arg, const struct captured_tensor *tensor)
{
    struct captured *c = arg;
    struct captured_tensor *copy;

    c->tensors = xrealloc(c->tensors, (size_t)(c->count + 1) * sizeof *c->tensors);
    copy = &c->tensors[c->count++];
    *copy = *tensor;
    copy->shape = xstrdup(tensor->shape);
    copy->data = xmalloc((size_t)tensor->bytes + 1);
    if (tensor->bytes) {
        memcpy(copy->data, tensor->data, (size_t)tensor->bytes);
    }
}

static void captured_release(struct captured *c)
{
    for (int i = 0; i < c->count; i++) {
        captured_tensor_release(&c->tensors[i]);
    }
    free(c->tensors);
}

static const struct captured_tensor *find(const struct captured *c,
                                          const struct captured_tensor *like)
{
    for (int i = 0; i < c->count; i++) {
        const struct captured_tensor *t = &c->tensors[i];

        if (t->is_out == like->is_out && t->index == like->index &&
            t->bytes == like->bytes && t->total == like->total &&
            strcmp(t->dtype, like->dtype) == 0 && strcmp(t->shape, like->shape) == 0) {
            return t;
        }
    }
    return NULL;
}

static void pair_json(struct json_out *out, const char *key, const int64_t counts[2])
{
    out_open(out, key, '[');
    out_int(out, NULL, counts[0]);
    out_int(out, NULL, counts[1]);
    out_close(out, ']');
}

static void signature_json(struct json_out *out, const struct difference *d,
                           bool is_float)
{
    out_int(out, "elements", d->elements);
    out_int(out, "differ", d->differ);
    if (d->differ) {
        out_int(out, "first", d->first);
        out_int(out, "last", d->last);
    } else {
        out_null(out, "first");
        out_null(out, "last");
    }
    if (is_float) {
        out_format(out, "max_ulp", "%" PRIu64, d->max_ulp);
    } else {
        out_null(out, "max_ulp");
    }
    out_real(out, "max_absolute", d->max_absolute);
    out_open(out, "bits", '[');
    for (int i = 0; i < d->bit_count; i++) {
        out_int(out, NULL, d->bits[i]);
    }
    out_close(out, ']');
    if (d->period) {
        out_open(out, "period", '{');
        out_int(out, "period", d->period);
        out_int(out, "residues", d->residues);
        out_int(out, "phase", d->phase);
        out_close(out, '}');
    } else {
        out_null(out, "period");
    }
    pair_json(out, "nan", d->nan);
    pair_json(out, "infinite", d->infinite);
    out_int(out, "zero_signs", d->zero_signs);
}

static void tensor_json(struct json_out *out, const struct captured_tensor *a,
                        const struct captured_tensor *b)
{
    size_t bytes = difference_dtype_bytes(a->dtype);
    const char *dtype = bytes ? a->dtype : "uint8";
    struct difference d;

    out_open(out, NULL, '{');
    out_int(out, "index", a->index);
    out_name(out, "name", a->name);
    out_text(out, "dtype", a->dtype);
    out_json(out, "shape", a->shape);
    out_int(out, "bytes_total", a->total);
    out_int(out, "captured_bytes", a->bytes);
    if (b) {
        difference_compute(dtype, a->bytes / (int64_t)(bytes ? bytes : 1), a->data,
                           b->data, &d);
        out_open(out, "signature", '{');
        signature_json(out, &d, difference_dtype_is_float(dtype));
        out_close(out, '}');
    } else {
        out_null(out, "signature");
    }
    out_close(out, '}');
}

enum err_code localise_difference_json(struct tx *tx, const char *a, const char *b,
                                       int captured, char **ret_json, struct err *err)
{
    struct captured runs[2] = { { NULL, 0 }, { NULL, 0 } };
    struct json_out out = JSON_OUT_INIT;
    enum err_code code = captures_each(tx, a, take_tensor, &runs[0], err);

    if (code == ERR_OK) {
        code = captures_each(tx, b, take_tensor, &runs[1], err);
    }
    if (code == ERR_OK) {
        out_open(&out, NULL, '{');
        out_text(&out, "a", a);
        out_text(&out, "b", b);
        out_int(&out, "runs_captured", captured);
        out_open(&out, "tensors", '[');
        for (int i = 0; i < runs[0].count; i++) {
            const struct captured_tensor *tensor = &runs[0].tensors[i];

            if (tensor->is_out) {
                tensor_json(&out, tensor, find(&runs[1], tensor));
            }
        }
        out_close(&out, ']');
        out_close(&out, '}');
        *ret_json = buf_detach(&out.buf, NULL);
    }
    captured_release(&runs[0]);
    captured_release(&runs[1]);
    return code;
}
