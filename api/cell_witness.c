/* What varied beside a cell in which nothing did: its witness. */
#include <inttypes.h>

#include "api/cells.h"
#include "api/render/nouns_json.h"
#include "daemon/base/buf.h"
#include "daemon/evidence/verdict.h"
#include "db/views/cell_witness.h"

/* "one digest in 200 runs: a run differs with less than 1.5 %; pytorch_index_put default
 * varied beside it, 5 digests in 5 runs"; or, where not every run was asked for so,
 * "varied beside it with contention 4, 5 digests in 9 runs in all". */
static void words(const struct cell *cell, const struct cell_witness *witness,
                  struct buf *buf)
{
    const struct cell *seen = &witness->cell;
    int64_t runs = cell->evidence.runs[OUTCOME_COMPLETED];
    struct run_options conditions;
    bool plain =
        !witness->conditions[0] || !run_options_read(witness->conditions, &conditions);

    buf_printf(buf,
               "one digest in %" PRId64
               " runs: a run differs with less than %.2g %%; %s %s varied beside it",
               runs, 100 * verdict_difference_bound(runs), seen->key.workload,
               seen->key.variant);
    if (!plain) {
        buf_printf(buf, " with ");
        run_options_words(&conditions, buf);
    }
    buf_printf(buf, ", %" PRId64 " digests in %" PRId64 " runs%s",
               seen->evidence.distinct_digests, seen->evidence.runs[OUTCOME_COMPLETED],
               plain ? "" : " in all");
}

void cell_witness_json(const struct cell *cell, const struct cell_witness *witness,
                       struct json_out *out)
{
    struct buf text = BUF_INIT;

    if (!out_object(out, "witness", witness != NULL)) {
        return;
    }
    words(cell, witness, &text);
    out_text(out, "text", text.data);
    out_text(out, "workload", witness->cell.key.workload);
    out_text(out, "variant", witness->cell.key.variant);
    out_int(out, "runs", witness->cell.evidence.runs[OUTCOME_COMPLETED]);
    out_int(out, "distinct_digests", witness->cell.evidence.distinct_digests);
    out_text(out, "conditions", witness->conditions);
    out_format(out, "href", "/v1/cells/%" PRId64, witness->cell.id);
    out_close(out, '}');
    buf_release(&text);
}

enum err_code cell_witness_show(struct tx *tx, const struct cell *cell,
                                struct json_out *out, struct err *err)
{
    struct cell_witness witness;
    bool found;

    if (cell_witness_of(tx, cell, &found, &witness, err) != ERR_OK) {
        return err->code;
    }
    cell_witness_json(cell, found ? &witness : NULL, out);
    return ERR_OK;
}
