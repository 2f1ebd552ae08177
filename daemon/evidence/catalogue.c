#include "daemon/evidence/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

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

/* Whether what V must equal or differ from is another variant of W, if it is anything. */
static bool relates(const struct catalogue_workload *w, const struct catalogue_variant *v)
{
    const char *other = v->equals ? v->equals : v->differs;

    return !other || ((!v->equals || !v->differs) && strcmp(other, v->name) != 0 &&
                      catalogue_variant(w, other));
}

static int parse_variants(json_t *array, struct catalogue_workload *w)
{
    struct catalogue_variant *variants =
        xcalloc(json_array_size(array), sizeof *variants);
    size_t i;
    json_t *item;

    w->variants = variants;
    w->variant_count = (int)json_array_size(array);
    json_array_foreach(array, i, item)
    {
        struct catalogue_variant *v = &variants[i];
        int control;

        if (json_unpack(item, "{s:s, s:s, s:s, s:s, s:b, s?s, s?s}", "name", &v->name,
                        "summary", &v->summary, "models", &v->models, "algorithm",
                        &v->algorithm, "control", &control, "equals", &v->equals,
                        "differs", &v->differs) != 0) {
            return -1;
        }
        v->claim = json_string_value(json_object_get(item, "claim"));
        v->control = control;
    }
    for (int v = 0; v < w->variant_count; v++) {
        if (!relates(w, &variants[v])) {
            return -1;
        }
    }
    return w->variant_count > 0 ? 0 : -1;
}

static int parse_sizes(json_t *array, struct catalogue_workload *w)
{
    struct catalogue_size *sizes = xcalloc(json_array_size(array), sizeof *sizes);
    size_t i;
    json_t *item;

    w->sizes = sizes;
    w->size_count = (int)json_array_size(array);
    json_array_foreach(array, i, item)
    {
        if (json_unpack(item, "{s:s, s:s}", "name", &sizes[i].name, "description",
                        &sizes[i].description) != 0) {
            return -1;
        }
    }
    return w->size_count > 0 ? 0 : -1;
}

static int parse_dtypes(json_t *array, struct catalogue_workload *w)
{
    const char **dtypes = xcalloc(json_array_size(array), sizeof *dtypes);
    size_t i;
    json_t *item;

    w->dtypes = dtypes;
    w->dtype_count = (int)json_array_size(array);
    json_array_foreach(array, i, item)
    {
        dtypes[i] = json_string_value(item);
        if (!dtypes[i]) {
            return -1;
        }
    }
    return w->dtype_count > 0 ? 0 : -1;
}

/* Fills W with pointers into OBJECT.  On failure W is still to be released. */
static enum err_code parse_workload(json_t *object, size_t index,
                                    struct catalogue_workload *w, struct err *err)
{
    json_t *variants;
    json_t *sizes;
    json_t *dtypes;
    json_error_t where;

    if (json_unpack_ex(object, &where, 0, "{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:s}",
                       "workload", &w->name, "version", &w->version, "backend",
                       &w->backend, "title", &w->title, "summary", &w->summary,
                       "variants", &variants, "sizes", &sizes, "dtypes", &dtypes,
                       "weight_sum", &w->weight_sum) != 0) {
        return err_set(err, ERR_PROTOCOL, "catalogue: /%zu: %s", index, where.text);
    }
    w->loss = json_string_value(json_object_get(object, "loss"));
    w->no_control = json_string_value(json_object_get(object, "no_control"));
    w->surveyed = !json_is_false(json_object_get(object, "survey"));
    w->timeout_seconds =
        (int)json_integer_value(json_object_get(object, "timeout_seconds"));
    w->json = object;
    if (parse_variants(variants, w) != 0) {
        return err_set(err, ERR_PROTOCOL, "catalogue: /%zu/variants of %s is malformed",
                       index, w->name);
    }
    if (parse_sizes(sizes, w) != 0) {
        return err_set(err, ERR_PROTOCOL, "catalogue: /%zu/sizes of %s is malformed",
                       index, w->name);
    }
    if (parse_dtypes(dtypes, w) != 0) {
        return err_set(err, ERR_PROTOCOL, "catalogue: /%zu/dtypes of %s is malformed",
                       index, w->name);
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

/* W is known already, and not so. */
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

        if (other && other->control != a->variants[i].control) {
            return false;
        }
    }
    return true;
}

/* A case has no backend: what makes one reproducible would make it so on the other. */
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
