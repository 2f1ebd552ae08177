#include "daemon/evidence/relation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static void add(struct relations *relations, const char *workload,
                const struct catalogue_variant *v)
{
    const char *other = v->equals ? v->equals : v->differs;
    struct relation *r;

    if (!other || relations_find(relations, workload, v->name)) {
        return; /* the twin on another backend said so */
    }
    relations->list = xgrow(relations->list, relations->count, sizeof *relations->list);
    r = &relations->list[relations->count++];
    *r = (struct relation){ .equal = v->equals != NULL };
    copy_text(r->workload, sizeof r->workload, workload);
    copy_text(r->variant, sizeof r->variant, v->name);
    copy_text(r->other, sizeof r->other, other);
}

void relations_init(struct relations *relations, const struct catalogue *catalogue)
{
    *relations = (struct relations){ .count = 0 };
    for (int i = 0; catalogue && i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        for (int v = 0; v < w->variant_count; v++) {
            add(relations, w->name, &w->variants[v]);
        }
    }
}

void relations_release(struct relations *relations)
{
    free(relations->list);
    *relations = (struct relations){ .count = 0 };
}

const struct relation *relations_find(const struct relations *relations,
                                      const char *workload, const char *variant)
{
    for (int i = 0; relations && i < relations->count; i++) {
        const struct relation *r = &relations->list[i];

        if (strcmp(r->workload, workload) == 0 && strcmp(r->variant, variant) == 0) {
            return r;
        }
    }
    return NULL;
}

bool relations_involve(const struct relations *relations, const char *workload,
                       const char *variant)
{
    for (int i = 0; i < relations->count; i++) {
        const struct relation *r = &relations->list[i];

        if (strcmp(r->workload, workload) == 0 &&
            (strcmp(r->variant, variant) == 0 || strcmp(r->other, variant) == 0)) {
            return true;
        }
    }
    return false;
}

const char *relation_seen_name(enum relation_seen seen)
{
    static const char *const names[] = { [RELATION_UNKNOWN] = NULL,
                                         [RELATION_EQUAL] = "equal",
                                         [RELATION_DIFFERENT] = "different" };

    return names[seen];
}

void relation_text(const struct relation *relation, enum relation_seen seen,
                   const struct case_key *in, char ret_text[RELATION_TEXT_SIZE])
{
    static const struct {
        const char *before, *after;
    } words[][2] = {
        [RELATION_UNKNOWN] = { { "must differ from", ": not known yet" },
                               { "must equal", ": not known yet" } },
        [RELATION_EQUAL] = { { "EQUALS", ", but must differ from it" },
                             { "equals", ", as it must" } },
        [RELATION_DIFFERENT] = { { "differs from", ", as it must" },
                                 { "DIFFERS from", ", but must equal it" } },
    };

    char where[RELATION_TEXT_SIZE] = "";

    if (in && relation->equal != (seen == RELATION_EQUAL)) {
        snprintf(where, sizeof where, " (%s, %s, seed %" PRIu64 ")", in->size, in->dtype,
                 in->seed);
    }
    snprintf(ret_text, RELATION_TEXT_SIZE, "%s %s%.200s%s",
             words[seen][relation->equal].before, relation->other, where,
             words[seen][relation->equal].after);
}
