#include "daemon/operations/operations.h"

#include <stdio.h>
#include <string.h>

static bool is_of(const struct matrix_variant *v, const char *framework)
{
    return v->subject == SUBJECT_FRAMEWORK && strcmp(v->subject_name, framework) == 0;
}

static void add_variant(struct operation *operation, const struct matrix_variant *v)
{
    int at = operation->count;

    if (at == OPERATION_VARIANTS_MAX) {
        return;
    }
    if (v->is_control && at > 0 && !operation->variants[0]->is_control) {
        operation->variants[at] = operation->variants[0];
        at = 0;
    }
    operation->variants[at] = v;
    operation->count++;
}

static void conclude(struct solution *s, enum solution_state state, const char *reason)
{
    *s = (struct solution){ .state = state, .difference_bound = 1 };
    snprintf(s->reason, sizeof s->reason, "%s", reason);
}

/* The control is what "none" selects, every other variant a recipe of its own name. */
static void derive(struct operation *operation)
{
    struct profile_choice choices[OPERATION_VARIANTS_MAX];
    struct variant_knowledge known[OPERATION_VARIANTS_MAX];
    const struct matrix_variant *control = operation->variants[0];
    int count = 0;

    for (int i = 0; i < operation->count; i++) {
        const struct matrix_variant *v = operation->variants[i];

        if (i == 0 || v->known.verdict != VERDICT_UNSUPPORTED) {
            choices[count] =
                (struct profile_choice){ i ? v->key.variant : "none", v->key.variant };
            known[count++] = v->known;
        }
    }
    if (!control->is_control) {
        conclude(&operation->solution, SOLUTION_INCONCLUSIVE,
                 "nothing was measured without a switch");
    } else if (control->known.verdict == VERDICT_VARIES && count == 1) {
        conclude(&operation->solution,
                 operation->count > 1 ? SOLUTION_UNSUPPORTED : SOLUTION_INCONCLUSIVE,
                 operation->count > 1 ? "it varies, and no switch can be computed here"
                                      : "it varies, and no switch was measured");
    } else {
        operation->solution = solution_derive(choices, known, count);
    }
}

bool operations_next(const struct matrix *matrix, const char *framework, int *at,
                     struct operation *ret_operation)
{
    int i = *at;

    while (i < matrix->variant_count && !is_of(&matrix->variants[i], framework)) {
        i++;
    }
    *ret_operation = (struct operation){ .count = 0 };
    for (; i < matrix->variant_count; i++) {
        const struct matrix_variant *v = &matrix->variants[i];

        if (ret_operation->workload &&
            strcmp(ret_operation->workload, v->key.workload) != 0) {
            break;
        }
        ret_operation->workload = v->key.workload;
        if (is_of(v, framework)) {
            add_variant(ret_operation, v);
        }
    }
    *at = i;
    if (ret_operation->count > 0) {
        derive(ret_operation);
    }
    return ret_operation->count > 0;
}

const char *operation_bits_name(enum operation_bits bits)
{
    static const char *const names[] = { "unknown", "same", "other" };

    return names[bits];
}

static bool same_case(const struct case_key *a, const struct case_key *b)
{
    return case_siblings(a, b) && strcmp(a->variant, b->variant) == 0;
}

static bool has_one(const struct matrix_variant *v)
{
    return v->distinct_digests == 1 && v->digest[0];
}

enum operation_bits operation_bits(const struct operation *before,
                                   const struct operation *after)
{
    enum operation_bits bits = OPERATION_BITS_UNKNOWN;

    for (int i = 0; i < after->count; i++) {
        for (int j = 0; j < before->count; j++) {
            const struct matrix_variant *a = after->variants[i], *b = before->variants[j];

            if (same_case(&a->key, &b->key) && has_one(a) && has_one(b)) {
                bits = strcmp(a->digest, b->digest) != 0 ? OPERATION_BITS_OTHER
                       : bits == OPERATION_BITS_UNKNOWN  ? OPERATION_BITS_SAME
                                                         : bits;
            }
        }
    }
    return bits;
}
