#include "workloads/worker/backend.h"
#include "workloads/worker/probes.h"
#include "workloads/worker/run.h"

/* What is remembered of VALUE if it is an input, which does not change as long as the run
 * lasts; NULL when it is none. */
static struct probes_input *input_of(struct run *run, const struct probe_value *value)
{
    for (int i = 0; i < run->input_count; i++) {
        const struct tensor *input = &run->inputs[i];

        if (input->data == value->data && input->dtype == value->dtype &&
            tensor_elements(input) == value->elements) {
            return &run->probes->inputs[i];
        }
    }
    return NULL;
}

/* Borrowed: valid until the next value is remembered.  NULL: not hashed yet. */
static const struct digest *remembered(struct run *run, const struct probe_value *value)
{
    const struct probes_input *input = input_of(run, value);

    if (input) {
        return input->hashed ? &input->digest : NULL;
    }
    for (int i = 0; i < run->probes->hashed_count; i++) {
        const struct probes_hashed *h = &run->probes->hashed[i];

        if (h->data == value->data && h->elements == value->elements &&
            h->dtype == value->dtype) {
            return &h->digest;
        }
    }
    return NULL;
}

static void remember(struct run *run, const struct probe_value *value,
                     struct digest digest)
{
    struct probes *probes = run->probes;
    struct probes_input *input = input_of(run, value);

    if (input) {
        *input = (struct probes_input){ .hashed = true, .digest = digest };
    } else if (probes->hashed_count < PROBES_HASHED_MAX) {
        probes->hashed[probes->hashed_count++] = (struct probes_hashed){
            .data = value->data,
            .elements = value->elements,
            .dtype = value->dtype,
            .digest = digest,
        };
    }
}

static struct digest value_digest(struct run *run, const struct probe_value *value)
{
    const struct digest *known = remembered(run, value);

    if (known) {
        return *known;
    }
    struct tensor tensor = probes_tensor(value);
    struct digest digest = run->backend->digest(run, &tensor);
    remember(run, value, digest);
    /* cppcheck-suppress returnDanglingLifetime -- a digest holds no pointer */
    return digest;
}

struct digest probes_list_digest(struct run *run, const struct probe_value *values,
                                 int count)
{
    struct digest parts[RUN_TENSORS_MAX];

    if (count < 0 || count > RUN_TENSORS_MAX) {
        run_defect(run, "a probe of %d values, more than %d", count, RUN_TENSORS_MAX);
    }
    if (count == 0) {
        return (struct digest){ 0 };
    }
    for (int i = 0; i < count; i++) {
        parts[i] = value_digest(run, &values[i]);
    }
    return count == 1 ? parts[0] : digest_combine(parts, count);
}

void probes_hash(struct run *run, const struct probe_value *values, int count)
{
    struct tensor tensors[PROBES_HASHED_MAX];
    struct digest digests[PROBES_HASHED_MAX];
    int which[PROBES_HASHED_MAX];
    int unknown = 0;

    if (!run->backend->digests) {
        return;
    }
    for (int i = 0; i < count && unknown < PROBES_HASHED_MAX; i++) {
        if (!remembered(run, &values[i])) {
            which[unknown] = i;
            tensors[unknown++] = probes_tensor(&values[i]);
        }
    }
    run->probes->computed_ms += run->backend->timer_stop(run);
    run->backend->digests(run, tensors, unknown, digests);
    for (int i = 0; i < unknown; i++) {
        remember(run, &values[which[i]], digests[i]);
    }
    run->backend->timer_start(run);
}
