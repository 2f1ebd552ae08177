#include "daemon/evidence/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"

struct catalogue {
    struct catalogue_workload *workloads; /* sorted by name, then backend */
    int count;
    json_t *keep; /* array: the objects that all texts point into */
};

struct catalogue *catalogue_new(void)
{
    struct catalogue *c = xcalloc(1, sizeof *c);

    c->keep = json_array();
    return c;
}

static void workload_release(struct catalogue_workload *w)
{
    free((void *)w->variants);
    free((void *)w->sizes);
    free((void *)w->dtypes);
}

void catalogue_free(struct catalogue *c)
{
    if (!c) {
        return;
    }
    for (int i = 0; i < c->count; i++) {
        workload_release(&c->workloads[i]);
    }
    free(c->workloads);
    json_decref(c->keep);
    free(c);
}

#define TEXT(type, key, field)                                                           \
    {                                                                                    \
        (key), IN_TEXT, IN_AT(struct catalogue_##type, field)                            \
    }
#define TEXT_IF_ANY(type, key, field)                                                    \
    {                                                                                    \
        (key), IN_TEXT, IN_AT(struct catalogue_##type, field),                           \
            .flags = IN_OPTIONAL | IN_NULLABLE                                           \
    }

static const struct in_member of_variant[] = {
    TEXT(variant, "name", name),
    TEXT(variant, "summary", summary),
    TEXT(variant, "models", models),
    TEXT(variant, "algorithm", algorithm),
    TEXT_IF_ANY(variant, "claim", claim),
    { "subject", IN_TEXT, .names = subject_words },
    TEXT_IF_ANY(variant, "subject_name", subject_name),
    { "control", IN_BOOL, IN_AT(struct catalogue_variant, control) },
    { "kind", IN_TEXT, IN_AT(struct catalogue_variant, kind), .names = control_kinds,
      .flags = IN_OPTIONAL | IN_NULLABLE },
    { "equals", IN_TEXT, IN_AT(struct catalogue_variant, equals), .flags = IN_OPTIONAL },
    { "differs", IN_TEXT, IN_AT(struct catalogue_variant, differs),
      .flags = IN_OPTIONAL },
};
static const struct in_shape variant_shape = IN_SHAPE(of_variant, NULL);

static const struct in_member of_size[] = {
    TEXT(size, "name", name),
    TEXT(size, "description", description),
};
static const struct in_shape size_shape = IN_SHAPE(of_size, NULL);

static const struct in_member a_variant = { .kind = IN_OBJECT, .shape = &variant_shape };
static const struct in_member a_size = { .kind = IN_OBJECT, .shape = &size_shape };
static const struct in_member a_text = { .kind = IN_TEXT };

static const struct in_member of_workload[] = {
    TEXT(workload, "workload", name),
    { "version", IN_INT, IN_AT(struct catalogue_workload, version) },
    TEXT(workload, "backend", backend),
    TEXT(workload, "title", title),
    TEXT(workload, "summary", summary),
    { "variants", IN_ARRAY, .least = 1, .item = &a_variant },
    { "sizes", IN_ARRAY, .least = 1, .item = &a_size },
    { "dtypes", IN_ARRAY, .least = 1, .item = &a_text },
    TEXT(workload, "weight_sum", weight_sum),
    TEXT_IF_ANY(workload, "loss", loss),
    TEXT_IF_ANY(workload, "no_control", no_control),
    { "circumstances", IN_ARRAY, IN_AT(struct catalogue_workload, circumstances),
      .flags = IN_OPTIONAL, .item = &a_text },
};
static const struct in_shape workload_shape = IN_SHAPE(of_workload, NULL);

/* Whether V names no variant to equal or differ from, or another variant of W. */
static bool relates(const struct catalogue_workload *w, const struct catalogue_variant *v)
{
    const char *other = v->equals ? v->equals : v->differs;

    return !other || ((!v->equals || !v->differs) && strcmp(other, v->name) != 0 &&
                      catalogue_variant(w, other));
}

/* A model is reprod's own; whatever else computes has a name. */
static bool is_named(const struct catalogue_variant *v)
{
    return (v->subject == SUBJECT_MODEL) == !(v->subject_name && *v->subject_name);
}

/* Gives those of COUNT variants a kind that name none. */
static void complete_kinds(struct catalogue_variant *variants, int count)
{
    const char *common = NULL; /* of the controls */
    bool differ = false;

    for (int i = 0; i < count; i++) {
        struct catalogue_variant *v = &variants[i];

        if (v->control) {
            v->kind = v->kind ? v->kind : control_kinds[0];
            differ |= common && strcmp(common, v->kind) != 0;
            common = v->kind;
        }
    }
    for (int i = 0; i < count; i++) {
        if (!variants[i].kind) {
            variants[i].kind = common && !differ ? common : control_kinds[0];
        }
    }
}

/* OBJECT has the shape of a workload. */
static void take_lists(const json_t *object, struct catalogue_workload *w)
{
    const json_t *variant_list = json_object_get(object, "variants");
    const json_t *size_list = json_object_get(object, "sizes");
    const json_t *dtype_list = json_object_get(object, "dtypes");
    struct catalogue_variant *variants;
    struct catalogue_size *sizes;
    const char **dtypes;
    struct err err;

    w->variant_count = (int)json_array_size(variant_list);
    w->size_count = (int)json_array_size(size_list);
    w->dtype_count = (int)json_array_size(dtype_list);
    w->variants = variants = xcalloc((size_t)w->variant_count, sizeof *variants);
    w->sizes = sizes = xcalloc((size_t)w->size_count, sizeof *sizes);
    w->dtypes = dtypes = xcalloc((size_t)w->dtype_count, sizeof *dtypes);
    for (int i = 0; i < w->variant_count; i++) {
        const json_t *variant = json_array_get(variant_list, (size_t)i);

        in_read_wire(&variant_shape, variant, &variants[i], &err);
        subject_parse(in_text(variant, "subject"), &variants[i].subject);
    }
    complete_kinds(variants, w->variant_count);
    for (int i = 0; i < w->size_count; i++) {
        in_read_wire(&size_shape, json_array_get(size_list, (size_t)i), &sizes[i], &err);
    }
    for (int i = 0; i < w->dtype_count; i++) {
        dtypes[i] = json_string_value(json_array_get(dtype_list, (size_t)i));
    }
}

/* Fills W with pointers into OBJECT.  On failure W is still to be released. */
static enum err_code parse_workload(const json_t *object, size_t index,
                                    struct catalogue_workload *w, struct err *err)
{
    struct err wrong;

    if (in_read_wire(&workload_shape, object, w, &wrong) != ERR_OK) {
        return err_set(err, ERR_PROTOCOL, "catalogue: /%zu/%s", index, wrong.message);
    }
    w->unseeded = json_is_false(json_object_get(object, "seeded"));
    w->surveyed = !json_is_false(json_object_get(object, "survey"));
    w->timeout_seconds = (int)in_int(object, "timeout_seconds");
    w->json = object;
    take_lists(object, w);
    for (int v = 0; v < w->variant_count; v++) {
        if (!is_named(&w->variants[v])) {
            return err_set(err, ERR_PROTOCOL,
                           "catalogue: /%zu/variants/%d/subject_name: a library or "
                           "framework has a name, and a model has none",
                           index, v);
        }
        if (!relates(w, &w->variants[v])) {
            return err_set(err, ERR_PROTOCOL,
                           "catalogue: /%zu/variants/%d must equal or differ from one "
                           "other variant of %s",
                           index, v, w->name);
        }
    }
    return ERR_OK;
}

static int compare_workloads(const struct catalogue_workload *x,
                             const struct catalogue_workload *y)
{
    int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->backend, y->backend);
}

static void insert(struct catalogue *c, const struct catalogue_workload *w)
{
    int at = c->count++;

    c->workloads = xrealloc(c->workloads, (size_t)c->count * sizeof *c->workloads);
    for (; at > 0 && compare_workloads(&c->workloads[at - 1], w) > 0; at--) {
        c->workloads[at] = c->workloads[at - 1];
    }
    c->workloads[at] = *w;
}

/* W is known already, with other contents. */
static enum err_code refuse_other(const struct catalogue_workload *w, struct err *err)
{
    bool external = json_is_true(json_object_get(w->json, "external"));

    return err_set(err, ERR_CONFLICT, "two %s describe workload %s on %s differently: %s",
                   external ? "configurations" : "workers", w->name, w->backend,
                   external ? "every host has to say the same"
                            : "builds of different versions in one installation");
}

static bool controls_agree(const struct catalogue_workload *a,
                           const struct catalogue_workload *b)
{
    if (strcmp(a->no_control ? a->no_control : "", b->no_control ? b->no_control : "") !=
        0) {
        return false;
    }
    for (int i = 0; i < a->variant_count; i++) {
        const struct catalogue_variant *other = catalogue_variant(b, a->variants[i].name);

        if (other && (other->control != a->variants[i].control ||
                      strcmp(other->kind, a->variants[i].kind) != 0)) {
            return false;
        }
    }
    return true;
}

/* A case has no backend, so its controls must be the same on all of them. */
static enum err_code check_controls(const struct catalogue *c,
                                    const struct catalogue_workload *w, struct err *err)
{
    for (int i = 0; i < c->count; i++) {
        const struct catalogue_workload *other = &c->workloads[i];

        if (strcmp(other->name, w->name) == 0 && other->version == w->version &&
            !controls_agree(other, w)) {
            return err_set(err, ERR_CONFLICT,
                           "workload %s has other controls, or another reason for none, "
                           "on %s than on %s",
                           w->name, w->backend, other->backend);
        }
    }
    return ERR_OK;
}

enum err_code catalogue_add(struct catalogue *c, const json_t *workloads, struct err *err)
{
    size_t i;
    json_t *object;

    if (!json_is_array(workloads)) {
        return err_set(err, ERR_PROTOCOL, "catalogue: not an array");
    }
    json_array_foreach(workloads, i, object)
    {
        struct catalogue_workload w = { 0 };
        const struct catalogue_workload *known;
        enum err_code code = parse_workload(object, i, &w, err);

        known = code == ERR_OK ? catalogue_find(c, w.name, w.backend) : NULL;
        if (code == ERR_OK && known && !json_equal(known->json, object)) {
            code = refuse_other(&w, err);
        }
        if (code == ERR_OK && !known) {
            code = check_controls(c, &w, err);
        }
        if (code != ERR_OK || known) {
            workload_release(&w);
            if (code != ERR_OK) {
                return code;
            }
            continue;
        }
        json_array_append(c->keep, object);
        insert(c, &w);
    }
    return ERR_OK;
}

int catalogue_count(const struct catalogue *c)
{
    return c->count;
}

const struct catalogue_workload *catalogue_at(const struct catalogue *c, int index)
{
    return &c->workloads[index];
}

const struct catalogue_workload *catalogue_find(const struct catalogue *c,
                                                const char *name, const char *backend)
{
    for (int i = 0; i < c->count; i++) {
        const struct catalogue_workload *w = &c->workloads[i];

        if (strcmp(w->name, name) == 0 &&
            (!backend || strcmp(w->backend, backend) == 0)) {
            return w;
        }
    }
    return NULL;
}

const struct catalogue_variant *catalogue_variant(const struct catalogue_workload *w,
                                                  const char *name)
{
    for (int i = 0; i < w->variant_count; i++) {
        if (strcmp(w->variants[i].name, name) == 0) {
            return &w->variants[i];
        }
    }
    return NULL;
}
