#include "workloads/worker/registry.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/nearest.h"
#include "daemon/base/reference.h"

/* The linker defines the bounds where the section exists.  Weak: a program without any
 * workload links, and has an empty registry. */
extern const struct workload *const __start_reprod_workloads[] __attribute__((weak));
extern const struct workload *const __stop_reprod_workloads[] __attribute__((weak));

extern const struct backend *const __start_reprod_backends[] __attribute__((weak));
extern const struct backend *const __stop_reprod_backends[] __attribute__((weak));

enum { SLOT = sizeof(void *) };

/* One workload under examination. */
struct inspection {
    const char *name; /* as far as it can be printed */
    FILE *out;
    int defects;
};

__attribute__((format(printf, 3, 4))) static void require(struct inspection *in, bool ok,
                                                          const char *format, ...)
{
    va_list arguments;

    if (ok) {
        return;
    }
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
    size_t length;

    if (!name || !(name[0] >= 'a' && name[0] <= 'z')) {
        return false;
    }
    length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
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

static bool is_known_kind(const char *kind)
{
    return !kind || is_equal(kind, "race") || is_equal(kind, "entropy") ||
           is_equal(kind, "choice") || is_equal(kind, "poison");
}

/* Whether a control of W is of what V, which names it, is exposed to. */
static bool is_controlled(const struct workload *w, const struct workload_variant *v)
{
    for (int i = 0; v->kind && !v->control && i < w->variant_count; i++) {
        const struct workload_variant *c = &w->variants[i];

        if (c->control && is_equal(c->kind ? c->kind : "race", v->kind)) {
            return true;
        }
    }
    return !v->kind || v->control;
}

static void check_variant(struct inspection *in, const struct workload *w, int index)
{
    const struct workload_variant *v = &w->variants[index];
    const char *name;

    check_name(in, "variant name", v->name);
    name = printable(v->name);
    require(in, is_filled(v->summary), "variant '%s' has no summary", name);
    require(in, is_filled(v->models), "variant '%s' does not say what it models", name);
    require(in, is_filled(v->algorithm), "variant '%s' has no algorithm", name);
    require(in, v->compute != NULL, "variant '%s' has no compute hook", name);
    require(in, !v->library || *v->library, "variant '%s' has a library without a name",
            name);
    require(
        in, is_known_claim(v->claim),
        "variant '%s' claims '%s', not \"deterministic\", \"non-deterministic\" or NULL",
        name, printable(v->claim));
    require(in, is_known_kind(v->kind),
            "variant '%s' has kind '%s', not \"race\", \"entropy\", \"choice\", "
            "\"poison\" or NULL",
            name, printable(v->kind));
    require(in, is_controlled(w, v), "variant '%s' is exposed to %s, as no control is",
            name, printable(v->kind));
    for (int i = 0; i < index; i++) {
        require(in, !is_equal(v->name, w->variants[i].name),
                "two variants are named '%s'", name);
    }
}

/* Whether LIST has 1 to MOST items that can be examined. */
static bool check_count(struct inspection *in, const char *what, const void *list,
                        int count, int most)
{
    bool ok = list && count >= 1 && count <= most;

    require(in, ok, "has %d %s, not 1 to %d", list ? count : 0, what, most);
    return ok;
}

static void check_variants(struct inspection *in, const struct workload *w)
{
    bool has_control = false;

    if (!check_count(in, "variants", w->variants, w->variant_count,
                     WORKLOAD_CHOICES_MAX)) {
        return;
    }
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
    bool has_small = false;

    if (!check_count(in, "sizes", w->sizes, w->size_count, WORKLOAD_CHOICES_MAX)) {
        return;
    }
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
    bool seen[DTYPE_COUNT] = { false };

    if (!check_count(in, "dtypes", w->dtypes, w->dtype_count, WORKLOAD_DTYPES_MAX)) {
        return;
    }
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

static const struct workload_variant *find_variant(const struct workload *w,
                                                   const char *name)
{
    for (int i = 0; w->variants && i < w->variant_count; i++) {
        if (is_equal(w->variants[i].name, name)) {
            return &w->variants[i];
        }
    }
    return NULL;
}

static bool is_comparable(const struct workload *w, const char *name)
{
    const struct workload_variant *variant = find_variant(w, name);

    return variant && !variant->control;
}

/* Whether LIST, which may be empty, has as many items as COUNT says. */
static bool check_list(struct inspection *in, const char *what, const void *list,
                       int count)
{
    bool ok = count == 0 || (count > 0 && list);

    require(in, ok, "%s_count is %d, but there are no %ss", what, count, what);
    return ok;
}

static void check_relations(struct inspection *in, const struct workload *w)
{
    if (!check_list(in, "relation", w->relations, w->relation_count)) {
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
    if (!check_list(in, "reference", w->references, w->reference_count)) {
        return;
    }
    for (int i = 0; i < w->reference_count; i++) {
        const struct workload_reference *r = &w->references[i];
        const char *id = printable(r->id);

        require(in, is_filled(r->id) && is_filled(r->title),
                "reference %d lacks its id or its title", i);
        require(in, reference_is_kind(r->kind), "reference '%s' is of no kind: '%s'", id,
                printable(r->kind));
        require(in, reference_is_url(r->url), "reference '%s' has no https address: '%s'",
                id, printable(r->url));
        require(in, !r->state || reference_is_state(r->state),
                "reference '%s' has no state and month: '%s'", id, printable(r->state));
        for (int j = 0; j < i; j++) {
            require(in, !is_equal(r->id, w->references[j].id),
                    "reference '%s' is there twice", id);
        }
    }
}

/* Writes one line for each defect of W to DEFECTS; returns how many. */
static int validate(const struct workload *w, FILE *defects)
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

static const char *text(const char *s)
{
    return s ? s : "";
}

static int compare_workloads(const void *a, const void *b)
{
    const struct workload *x = *(const struct workload *const *)a;
    const struct workload *y = *(const struct workload *const *)b;
    int order = strcmp(text(x->name), text(y->name));

    return order ? order : strcmp(text(x->backend), text(y->backend));
}

static int report_duplicates(const struct registry *registry, FILE *defects)
{
    int count = 0;

    for (int i = 1; i < registry->count; i++) {
        const struct workload *w = registry->workloads[i];

        if (compare_workloads(&w, &registry->workloads[i - 1]) == 0) {
            fprintf(defects, "workload '%s': registered twice for backend '%s'\n",
                    text(w->name), text(w->backend));
            count++;
        }
    }
    return count;
}

/* The loss is not asked for: NULL says that there is none. */
static bool is_complete(const struct workload *w)
{
    return w->title && w->summary && w->size_count && w->dtype_count && w->weight_sum &&
           w->reference;
}

static const char *backend_of(const struct workload *w)
{
    return w->backend ? w->backend : "cpu";
}

static const struct workload *find_definition(const struct workload *w,
                                              const struct workload *const *begin,
                                              const struct workload *const *end)
{
    for (; begin < end; begin++) {
        if (*begin && strcmp(text((*begin)->name), text(w->name)) == 0 &&
            is_equal(backend_of(*begin), "cpu")) {
            return *begin;
        }
    }
    return NULL;
}

/* TO has the member of FROM where it has none of its own. */
#define INHERIT(to, from, member)                                                        \
    (to)->member = (to)->member ? (to)->member : (from)->member

/* The variants of W, completed; free() them. */
static struct workload_variant *inherit_variants(const struct workload *w,
                                                 const struct workload *from)
{
    size_t bytes = (size_t)w->variant_count * sizeof *w->variants;
    struct workload_variant *variants = run_host_alloc(bytes);

    memcpy(variants, w->variants, bytes);
    for (int i = 0; i < w->variant_count; i++) {
        struct workload_variant *v = &variants[i];
        const struct workload_variant *known = find_variant(from, v->name);

        if (known) {
            INHERIT(v, known, summary);
            INHERIT(v, known, models);
            INHERIT(v, known, kind);
        }
    }
    return variants;
}

static void inherit(struct workload *w, const struct workload *from)
{
    if (w->variants && w->variant_count > 0) {
        w->variants = inherit_variants(w, from);
    }
    INHERIT(w, from, title);
    INHERIT(w, from, summary);
    INHERIT(w, from, weight_sum);
    INHERIT(w, from, loss);
    INHERIT(w, from, reference);
    if (!w->setup) {
        w->setup = from->setup;
        w->teardown = from->teardown;
    }
    if (w->size_count == 0) {
        w->sizes = from->sizes;
        w->size_count = from->size_count;
    }
    if (w->dtype_count == 0) {
        memcpy(w->dtypes, from->dtypes, sizeof w->dtypes);
        w->dtype_count = from->dtype_count;
    }
    if (w->reference_count == 0) {
        w->references = from->references;
        w->reference_count = from->reference_count;
    }
    if (w->relation_count == 0) {
        w->relations = from->relations;
        w->relation_count = from->relation_count;
    }
}

/* Takes W into the registry, completed; returns the number of its defects. */
static int take(struct registry *registry, const struct workload *w,
                const struct workload *const *begin, const struct workload *const *end,
                FILE *defects)
{
    const struct workload *definition = NULL;

    if (is_equal(w->backend, "cuda")) {
        definition = find_definition(w, begin, end);
    } else if (!w->backend || w->dtype_count == 0) {
        definition = w; /* lacks only what has a default */
    }
    if (definition) {
        struct workload *copy = &registry->completed[registry->completed_count++];

        *copy = *w;
        inherit(copy, definition);
        copy->backend = backend_of(w);
        if (copy->dtype_count == 0) {
            copy->dtypes[copy->dtype_count++] = DTYPE_FLOAT32;
        }
        w = copy;
    }
    registry->workloads[registry->count++] = w;
    if (is_equal(w->backend, "cuda") && !definition && !is_complete(w)) {
        fprintf(defects,
                "workload '%s': backend \"cuda\" leaves parts to the \"cpu\" workload of "
                "that name, and there is none\n",
                text(w->name));
        return 1;
    }
    return validate(w, defects);
}

int registry_init(struct registry *registry, const struct workload *const *begin,
                  const struct workload *const *end, FILE *defects)
{
    size_t slots = begin ? (size_t)(end - begin) : 0;
    int found = 0;

    *registry = (struct registry){
        .workloads = run_host_alloc((slots + 1) * SLOT),
        .completed = run_host_alloc((slots + 1) * sizeof *registry->completed),
    };
    for (size_t i = 0; i < slots; i++) {
        if (begin[i]) {
            found += take(registry, begin[i], begin, end, defects);
        }
    }
    qsort(registry->workloads, (size_t)registry->count, SLOT, compare_workloads);
    return found + report_duplicates(registry, defects);
}

int registry_init_linked(struct registry *registry, FILE *defects)
{
    return registry_init(registry, __start_reprod_workloads, __stop_reprod_workloads,
                         defects);
}

void registry_release(struct registry *registry)
{
    for (int i = 0; i < registry->completed_count; i++) {
        if (registry->completed[i].variant_count > 0) {
            free((void *)registry->completed[i].variants);
        }
    }
    free(registry->workloads);
    free(registry->completed);
    *registry = (struct registry){ 0 };
}

const struct workload *registry_find(const struct registry *registry, const char *name,
                                     const char *backend)
{
    for (int i = 0; i < registry->count; i++) {
        const struct workload *w = registry->workloads[i];

        if (strcmp(w->name, name) == 0 && strcmp(w->backend, backend) == 0) {
            return w;
        }
    }
    return NULL;
}

const char *registry_nearest(const struct registry *registry, const char *name)
{
    const char **names = run_host_alloc((size_t)(registry->count + 1) * sizeof *names);
    const char *nearest;

    for (int i = 0; i < registry->count; i++) {
        names[i] = registry->workloads[i]->name;
    }
    nearest = nearest_of(name, names, registry->count);
    free(names);
    return nearest;
}

const struct backend *backend_linked(FILE *defects)
{
    const struct backend *const *slot = __start_reprod_backends;
    const struct backend *found = NULL;
    int count = 0;
    /* cppcheck-suppress comparePointers -- both bound one array, which the linker made */
    for (; slot && slot < __stop_reprod_backends; slot++) {
        if (*slot) {
            found = *slot;
            count++;
        }
    }
    if (count != 1) {
        fprintf(defects, "worker: %d backends are linked, there must be exactly one\n",
                count);
        return NULL;
    }
    return found;
}
