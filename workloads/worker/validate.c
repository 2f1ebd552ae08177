#include "workloads/worker/validate.h"

#include <stdarg.h>
#include <string.h>

/* One workload under examination. */
struct inspection {
    const char *name; /* as far as it can be printed */
    FILE *out;
    int defects;
};

__attribute__((format(printf, 3, 4))) static void require(struct inspection *in, bool ok,
                                                          const char *format, ...)
{
    if (ok) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    fprintf(in->out, "workload '%s': ", in->name);
    vfprintf(in->out, format, arguments);
    fputc('\n', in->out);
    va_end(arguments);
    in->defects++;
}

static bool is_filled(const char *text)
{
    return text && *text;
}

static const char *printable(const char *text)
{
    return text ? text : "(null)";
}

static bool is_name(const char *name)
{
    if (!name || !(name[0] >= 'a' && name[0] <= 'z')) {
        return false;
    }
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length <= WORKLOAD_NAME_MAX && name[length] == '\0';
}

static void check_name(struct inspection *in, const char *what, const char *name)
{
    require(in, is_name(name), "%s '%s' is not [a-z][a-z0-9_]* of up to %d characters",
            what, printable(name), WORKLOAD_NAME_MAX);
}

static bool is_equal(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static bool is_known_claim(const char *claim)
{
    return !claim || is_equal(claim, "deterministic") ||
           is_equal(claim, "non-deterministic");
}

static void check_variant(struct inspection *in, const struct workload *w, int index)
{
    const struct workload_variant *v = &w->variants[index];

    check_name(in, "variant name", v->name);
    const char *name = printable(v->name);
    require(in, is_filled(v->summary), "variant '%s' has no summary", name);
    require(in, is_filled(v->models), "variant '%s' does not say what it models", name);
    require(in, is_filled(v->algorithm), "variant '%s' has no algorithm", name);
    require(in, v->compute != NULL, "variant '%s' has no compute hook", name);
    require(
        in, is_known_claim(v->claim),
        "variant '%s' claims '%s', not \"deterministic\", \"non-deterministic\" or NULL",
        name, printable(v->claim));
    for (int i = 0; i < index; i++) {
        require(in, !is_equal(v->name, w->variants[i].name),
                "two variants are named '%s'", name);
    }
}

static void check_variants(struct inspection *in, const struct workload *w)
{
    if (!w->variants || w->variant_count < 1 || w->variant_count > WORKLOAD_CHOICES_MAX) {
        require(in, false, "has %d variants, not 1 to %d",
                w->variants ? w->variant_count : 0, WORKLOAD_CHOICES_MAX);
        return;
    }
    bool has_control = false;
    for (int i = 0; i < w->variant_count; i++) {
        check_variant(in, w, i);
        has_control |= w->variants[i].control;
    }
    require(in, has_control || is_filled(w->no_control),
            "no variant is a control, and no_control does not say why");
    require(in, !has_control || !w->no_control,
            "has a control, and no_control says that it has none");
}

static void check_sizes(struct inspection *in, const struct workload *w)
{
    if (!w->sizes || w->size_count < 1 || w->size_count > WORKLOAD_CHOICES_MAX) {
        require(in, false, "has %d sizes, not 1 to %d", w->sizes ? w->size_count : 0,
                WORKLOAD_CHOICES_MAX);
        return;
    }
    bool has_small = false;
    for (int i = 0; i < w->size_count; i++) {
        const struct workload_size *s = &w->sizes[i];

        check_name(in, "size name", s->name);
        require(in, is_filled(s->description), "size '%s' has no description",
                printable(s->name));
        has_small |= is_equal(s->name, "small");
        for (int j = 0; j < i; j++) {
            require(in, !is_equal(s->name, w->sizes[j].name), "two sizes are named '%s'",
                    printable(s->name));
        }
    }
    require(in, has_small, "no size is named \"small\"");
}

static void check_dtypes(struct inspection *in, const struct workload *w)
{
    if (w->dtype_count < 1 || w->dtype_count > WORKLOAD_DTYPES_MAX) {
        require(in, false, "has %d dtypes, not 1 to %d", w->dtype_count,
                WORKLOAD_DTYPES_MAX);
        return;
    }
    bool seen[DTYPE_COUNT] = { false };
    for (int i = 0; i < w->dtype_count; i++) {
        int dtype = (int)w->dtypes[i];

        if (dtype < 0 || dtype >= DTYPE_COUNT) {
            require(in, false, "dtype number %d does not exist", dtype);
            continue;
        }
        require(in, !seen[dtype], "dtype %s is listed twice", dtype_name(w->dtypes[i]));
        seen[dtype] = true;
    }
}

static bool is_comparable(const struct workload *w, const char *variant)
{
    for (int i = 0; w->variants && i < w->variant_count; i++) {
        if (is_equal(w->variants[i].name, variant)) {
            return !w->variants[i].control;
        }
    }
    return false;
}

static void check_relations(struct inspection *in, const struct workload *w)
{
    if (w->relation_count < 0 || (w->relation_count > 0 && !w->relations)) {
        require(in, false, "relation_count is %d, but there are no relations",
                w->relation_count);
        return;
    }
    for (int i = 0; i < w->relation_count; i++) {
        const struct workload_relation *r = &w->relations[i];

        require(in,
                is_comparable(w, r->variant) && is_comparable(w, r->other) &&
                    !is_equal(r->variant, r->other),
                "compares '%s' with '%s', which must be two variants and no controls",
                printable(r->variant), printable(r->other));
        for (int j = 0; j < i; j++) {
            require(in, !is_equal(r->variant, w->relations[j].variant),
                    "compares '%s' with more than one variant", printable(r->variant));
        }
    }
}

static void check_references(struct inspection *in, const struct workload *w)
{
    if (w->reference_count < 0 || (w->reference_count > 0 && !w->references)) {
        require(in, false, "reference_count is %d, but there are no references",
                w->reference_count);
        return;
    }
    for (int i = 0; i < w->reference_count; i++) {
        require(in, is_filled(w->references[i].id) && is_filled(w->references[i].title),
                "reference %d lacks its id or its title", i);
    }
}

int workload_validate(const struct workload *w, FILE *defects)
{
    struct inspection in = { .name = printable(w->name), .out = defects };

    check_name(&in, "name", w->name);
    require(&in, w->version >= 1, "version is %d, must be at least 1", w->version);
    require(&in, is_equal(w->backend, "cpu") || is_equal(w->backend, "cuda"),
            "backend is '%s', must be \"cpu\" or \"cuda\"", printable(w->backend));
    require(&in, is_filled(w->title), "has no title");
    require(&in, is_filled(w->summary), "has no summary");
    require(&in, is_filled(w->weight_sum), "does not say what its weight_sum sums");
    require(&in, w->setup != NULL, "has no setup hook");
    require(&in, w->reference != NULL, "has no reference hook");
    check_variants(&in, w);
    check_sizes(&in, w);
    check_dtypes(&in, w);
    check_references(&in, w);
    check_relations(&in, w);
    return in.defects;
}
