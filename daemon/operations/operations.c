#include "daemon/operations/operations.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static bool is_of(const struct matrix_variant *v, const char *framework)
{
    return v->subject == SUBJECT_FRAMEWORK && strcmp(v->subject_name, framework) == 0;
}

static void add_variant(struct operation *operation, const struct matrix_variant *v)
{
    const struct matrix_variant **variants = operation->variants;
    bool first = v->is_control && (operation->count == 0 || !variants[0]->is_control);

    if (operation->count == OPERATION_VARIANTS_MAX) {
        operation->left_out++;
    } else {
        variants[operation->count++] = v;
    }
    if (first) {
        memmove(&variants[1], &variants[0],
                (size_t)(operation->count - 1) * sizeof(const struct matrix_variant *));
        variants[0] = v;
    }
}

__attribute__((format(printf, 3, 4))) static void
conclude(struct operation *operation, enum solution_state state, const char *format, ...)
{
    struct solution *s = &operation->solution;
    va_list args;

    *s = (struct solution){ .state = state, .difference_bound = 1 };
    va_start(args, format);
    vsnprintf(s->reason, sizeof s->reason, format, args);
    va_end(args);
}

/* Whether the names of its variants can make a code that says what was seen. */
static bool can_be_named(struct operation *operation)
{
    if (operation->left_out > 0) {
        conclude(operation, SOLUTION_INCONCLUSIVE, "it has more than %d variants",
                 OPERATION_VARIANTS_MAX);
        return false;
    }
    for (int i = 1; i < operation->count; i++) {
        const char *name = operation->variants[i]->key.variant;

        if (profile_reads_as_code(name) || strcmp(name, "none") == 0) {
            conclude(operation, SOLUTION_INCONCLUSIVE,
                     "variant '%s' would read as another code", name);
            return false;
        }
    }
    return true;
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
    if (!can_be_named(operation)) {
        return;
    }
    if (!control->is_control) {
        conclude(operation, SOLUTION_INCONCLUSIVE,
                 "nothing was measured without a switch");
    } else if (control->known.verdict == VERDICT_VARIES && count == 1) {
        conclude(operation,
                 operation->count > 1 ? SOLUTION_UNSUPPORTED : SOLUTION_INCONCLUSIVE,
                 operation->count > 1 ? "it varies, and no switch can be computed here"
                                      : "it varies, and no switch was measured");
    } else {
        operation->solution = solution_derive(choices, known, count);
    }
    if (strlen(operation->solution.code) == SOLUTION_CODE_SIZE - 1) { /* it was cut */
        conclude(operation, SOLUTION_INCONCLUSIVE,
                 "more switches cure it than a code has room for");
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

void operation_cases_add(struct operation_cases *cases, const char *framework,
                         const struct cell *cell)
{
    struct operation_case *one;

    if (cell->subject != SUBJECT_FRAMEWORK ||
        strcmp(cell->subject_name, framework) != 0 ||
        cell->evidence.distinct_digests != 1 ||
        cell->evidence.runs[OUTCOME_COMPLETED] < OPERATION_RUNS_MIN) {
        return;
    }
    cases->list = xgrow(cases->list, cases->count, sizeof *cases->list);
    one = &cases->list[cases->count++];
    one->key = cell->key;
    copy_text(one->digest, sizeof one->digest, cell->digest);
}

void operation_cases_release(struct operation_cases *cases)
{
    free(cases->list);
    *cases = (struct operation_cases){ .count = 0 };
}

static bool is_case_of(const struct operation_case *c, const struct operation *operation)
{
    return strcmp(c->key.workload, operation->workload) == 0 &&
           c->key.version == operation->variants[0]->key.version;
}

static bool same_case(const struct case_key *a, const struct case_key *b)
{
    return case_siblings(a, b) && strcmp(a->variant, b->variant) == 0;
}

enum operation_bits operation_bits(const struct operation *operation,
                                   const struct operation_cases *before,
                                   const struct operation_cases *after)
{
    enum operation_bits bits = OPERATION_BITS_UNKNOWN;

    for (int i = 0; i < after->count; i++) {
        const struct operation_case *a = &after->list[i];

        for (int j = 0; is_case_of(a, operation) && j < before->count; j++) {
            const struct operation_case *b = &before->list[j];

            if (same_case(&a->key, &b->key)) {
                bits = strcmp(a->digest, b->digest) != 0 ? OPERATION_BITS_OTHER
                       : bits == OPERATION_BITS_UNKNOWN  ? OPERATION_BITS_SAME
                                                         : bits;
            }
        }
    }
    return bits;
}
