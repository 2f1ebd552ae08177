#include "daemon/evidence/matrix_relations.h"

#include <string.h>

#include "daemon/base/mem.h"

void matrix_relations_add(struct matrix *m, const struct cell *cell)
{
    struct matrix_bits *bits;

    if (cell->evidence.distinct_digests != 1 || !cell->digest[0] ||
        !relations_involve(m->relations, cell->key.workload, cell->key.variant)) {
        return;
    }
    m->bits = xrealloc(m->bits, (size_t)(m->bits_count + 1) * sizeof *m->bits);
    bits = &m->bits[m->bits_count++];
    bits->key = cell->key;
    copy_text(bits->digest, sizeof bits->digest, cell->digest);
}

/* But for their variants. */
static bool is_same_case(const struct case_key *a, const struct case_key *b)
{
    return strcmp(a->workload, b->workload) == 0 && a->version == b->version &&
           strcmp(a->size, b->size) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
           a->seed == b->seed;
}

static void tell_of_case(const struct matrix *m, const struct matrix_bits *own,
                         struct matrix_variant *v)
{
    enum relation_seen expected =
        v->relation->equal ? RELATION_EQUAL : RELATION_DIFFERENT;

    for (int i = 0; i < m->bits_count; i++) {
        const struct matrix_bits *other = &m->bits[i];

        if (strcmp(other->key.variant, v->relation->other) == 0 &&
            is_same_case(&own->key, &other->key)) {
            enum relation_seen seen = strcmp(own->digest, other->digest) == 0
                                          ? RELATION_EQUAL
                                          : RELATION_DIFFERENT;

            if (v->seen == RELATION_UNKNOWN || seen != expected) {
                v->seen = seen;
                v->seen_in = &own->key;
            }
        }
    }
}

void matrix_relations_tell(const struct matrix *m, struct matrix_variant *v)
{
    v->relation = relations_find(m->relations, v->workload, v->variant);
    for (int i = 0; v->relation && i < m->bits_count; i++) {
        const struct case_key *key = &m->bits[i].key;

        if (key->version == v->version && strcmp(key->workload, v->workload) == 0 &&
            strcmp(key->variant, v->variant) == 0) {
            tell_of_case(m, &m->bits[i], v);
        }
    }
}
