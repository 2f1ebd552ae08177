#include "api/render/localisation_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/text.h"

enum { LABEL_WIDTH = 14, LINE_WIDTH = 92 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static int64_t int_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void label(struct buf *buf, const char *name)
{
    buf_puts(buf, "  ");
    buf_pad(buf, name, LABEL_WIDTH - 2);
}

static void heading(const json_t *l, struct buf *buf)
{
    const json_t *reason = json_object_get(l, "reason");

    buf_printf(buf, "Localisation of job %s: %s\n\n", text_of(l, "job"),
               text_of(l, "state"));
    label(buf, "Case");
    buf_printf(buf, "%s %s (%s, %s, seed %s) on %s, stack %s\n", text_of(l, "workload"),
               text_of(l, "variant"), text_of(l, "size"), text_of(l, "dtype"),
               text_of(l, "seed"), text_of(l, "device"), text_of(l, "stack"));
    if (json_is_string(json_object_get(l, "place"))) {
        label(buf, "Place");
        buf_printf(buf, "%s\n", text_of(l, "place"));
        label(buf, "Step");
        buf_printf(buf, "%" PRId64 " of iteration %" PRId64 "\n", int_of(l, "step"),
                   int_of(l, "iteration"));
    }
    label(buf, "Runs");
    buf_printf(buf,
               "%" PRId64 " searched (at least %" PRId64 ", at most %" PRId64
               "), %" PRId64 " captured, %" PRId64 " failed\n",
               int_of(l, "runs_searched"), int_of(l, "runs_min"), int_of(l, "runs_max"),
               int_of(l, "runs_captured"), int_of(l, "runs_failed"));
    if (json_is_string(reason)) {
        label(buf, "Finding");
        text_wrap(buf, json_string_value(reason), LINE_WIDTH, LABEL_WIDTH);
    }
}

static void place_line(const json_t *place, struct buf *buf)
{
    buf_printf(buf, "%s at step %" PRId64 " of iteration %" PRId64 "\n",
               text_of(place, "place"), int_of(place, "step"),
               int_of(place, "iteration"));
}

static void structure_lines(const json_t *structure, struct buf *buf)
{
    static const char *const sides[] = { "a", "b" };

    label(buf, "Structure");
    buf_printf(buf,
               "parts at record %" PRId64 "; %" PRId64
               " runs went another way than the first\n",
               int_of(structure, "position"), int_of(structure, "runs_apart"));
    for (int i = 0; i < 2; i++) {
        const json_t *side = json_object_get(structure, sides[i]);

        label(buf, "");
        if (json_is_object(side)) {
            place_line(side, buf);
        } else {
            buf_puts(buf, "the trace ends\n");
        }
    }
}

static void search_lines(const json_t *search, struct buf *buf)
{
    const json_t *example = json_object_get(search, "example");
    const json_t *first = json_object_get(search, "first_difference");
    const json_t *root = json_object_get(search, "root");
    const json_t *structure = json_object_get(search, "structure");

    if (json_is_object(first) && int_of(first, "position") != int_of(root, "position")) {
        label(buf, "Before it");
        place_line(first, buf);
        label(buf, "");
        buf_puts(buf, "read something else already; its source has no probe\n");
    }
    if (json_is_object(structure)) {
        structure_lines(structure, buf);
    }
    if (json_is_array(example)) {
        const char *a = json_string_value(json_array_get(example, 0));
        const char *b = json_string_value(json_array_get(example, 1));

        label(buf, "For example");
        buf_printf(buf, "/v1/compare.txt?a=%s&b=%s\n", a ? a : "", b ? b : "");
    }
}

static void bits_line(const json_t *bits, struct buf *buf)
{
    bool any = false;
    json_t *count;
    size_t i;

    label(buf, "  XOR bits");
    json_array_foreach((json_t *)bits, i, count)
    {
        if (json_integer_value(count)) {
            buf_printf(buf, "%s%zu: %" PRId64, any ? ", " : "", i,
                       (int64_t)json_integer_value(count));
            any = true;
        }
    }
    buf_puts(buf, any ? "\n" : "none\n");
}

static int64_t pair_of(const json_t *signature, const char *key, size_t side)
{
    return json_integer_value(json_array_get(json_object_get(signature, key), side));
}

static void signature_lines(const json_t *s, struct buf *buf)
{
    const json_t *period = json_object_get(s, "period");
    char differ[TEXT_NUMBER_SIZE];
    char elements[TEXT_NUMBER_SIZE];

    label(buf, "  differ");
    buf_printf(buf, "%s of %s elements", text_number(int_of(s, "differ"), differ),
               text_number(int_of(s, "elements"), elements));
    if (int_of(s, "differ")) {
        buf_printf(buf, ", index %" PRId64 " to %" PRId64, int_of(s, "first"),
                   int_of(s, "last"));
    }
    buf_putc(buf, '\n');
    label(buf, "  distance");
    if (json_is_string(json_object_get(s, "max_ulp"))) {
        buf_printf(buf, "at most %s units in the last place, ", text_of(s, "max_ulp"));
    }
    buf_printf(buf, "at most %.9g\n",
               json_number_value(json_object_get(s, "max_absolute")));
    bits_line(json_object_get(s, "bits"), buf);
    if (json_is_object(period)) {
        label(buf, "  period");
        buf_printf(buf,
                   "%" PRId64 ": the indices leave %" PRId64 " remainder%s, from %" PRId64
                   "\n",
                   int_of(period, "period"), int_of(period, "residues"),
                   int_of(period, "residues") == 1 ? "" : "s", int_of(period, "phase"));
    }
    label(buf, "  special");
    buf_printf(buf,
               "NaN %" PRId64 " and %" PRId64 ", infinite %" PRId64 " and %" PRId64
               ", signs of zero %" PRId64 "\n",
               pair_of(s, "nan", 0), pair_of(s, "nan", 1), pair_of(s, "infinite", 0),
               pair_of(s, "infinite", 1), int_of(s, "zero_signs"));
}

static void tensor_lines(const json_t *tensor, struct buf *buf)
{
    const json_t *signature = json_object_get(tensor, "signature");
    json_t *extent;
    size_t i;

    buf_printf(buf, "\n  Output %" PRId64 "%s%s: %s[", int_of(tensor, "index"),
               *text_of(tensor, "name") ? " " : "", text_of(tensor, "name"),
               text_of(tensor, "dtype"));
    json_array_foreach(json_object_get(tensor, "shape"), i, extent)
    {
        buf_printf(buf, "%s%" PRId64, i ? "," : "", (int64_t)json_integer_value(extent));
    }
    buf_puts(buf, "]");
    if (int_of(tensor, "captured_bytes") < int_of(tensor, "bytes_total")) {
        buf_printf(buf, ", the first %" PRId64 " of %" PRId64 " bytes",
                   int_of(tensor, "captured_bytes"), int_of(tensor, "bytes_total"));
    }
    buf_putc(buf, '\n');
    if (json_is_object(signature)) {
        signature_lines(signature, buf);
    } else {
        label(buf, "  differ");
        buf_puts(buf, "in dtype or shape\n");
    }
}

static void difference_lines(const json_t *difference, struct buf *buf)
{
    json_t *tensor;
    size_t i;

    buf_printf(buf, "\nRuns %s and %s read the same there and wrote:\n",
               text_of(difference, "a"), text_of(difference, "b"));
    json_array_foreach(json_object_get(difference, "tensors"), i, tensor)
    {
        tensor_lines(tensor, buf);
    }
}

void localisation_text(const char *json, struct buf *buf)
{
    json_t *l = json_loads(json, 0, NULL);
    const json_t *search = json_object_get(l, "search");
    const json_t *difference = json_object_get(l, "difference");

    heading(l, buf);
    if (json_is_object(search)) {
        search_lines(search, buf);
    }
    if (json_is_object(difference)) {
        difference_lines(difference, buf);
    }
    json_decref(l);
}
