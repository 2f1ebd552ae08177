#include "db/dissent/unsettled.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/tx.h"

void unsettled_begin(struct tx *tx)
{
    tx->settles = true;
    tx->unsettled_count = 0;
    tx->progressed_count = 0;
}

/* As arrays grow by their counts, each is as large as its own says. */
static struct unsettled *copy_of(const struct unsettled *list, int count)
{
    struct unsettled *copy = NULL;

    for (int i = 0; i < count; i++) {
        copy = xgrow(copy, i, sizeof *copy);
        copy[i] = list[i];
    }
    return copy;
}

void unsettled_mark(const struct tx *tx, struct unsettled_mark *ret_mark)
{
    ret_mark->list = copy_of(tx->unsettled, tx->unsettled_count);
    ret_mark->count = tx->unsettled_count;
    ret_mark->progressed = tx->progressed_count;
}

void unsettled_back(struct tx *tx, const struct unsettled_mark *mark)
{
    free(tx->unsettled);
    tx->unsettled = copy_of(mark->list, mark->count);
    tx->unsettled_count = mark->count;
    tx->progressed_count = mark->progressed;
}

void unsettled_release(struct unsettled_mark *mark)
{
    free(mark->list);
    *mark = (struct unsettled_mark){ .count = 0 };
}

static struct unsettled *find(const struct tx *tx, int64_t cell)
{
    for (int i = 0; i < tx->unsettled_count; i++) {
        if (tx->unsettled[i].cell == cell) {
            return &tx->unsettled[i];
        }
    }
    return NULL;
}

void unsettled_add(struct tx *tx, const struct unsettled *unsettled)
{
    struct unsettled *known = find(tx, unsettled->cell);

    if (known) {
        copy_text(known->run, sizeof known->run, unsettled->run);
        known->now_ms = unsettled->now_ms;
        return;
    }
    tx->unsettled = xgrow(tx->unsettled, tx->unsettled_count, sizeof *tx->unsettled);
    tx->unsettled[tx->unsettled_count++] = *unsettled;
}

bool unsettled_has(const struct tx *tx, int64_t cell)
{
    return find(tx, cell) != NULL;
}

bool unsettled_remove(struct tx *tx, int64_t cell, struct unsettled *ret_unsettled)
{
    struct unsettled *known = find(tx, cell);

    if (!known) {
        return false;
    }
    if (ret_unsettled) {
        *ret_unsettled = *known;
    }
    *known = tx->unsettled[--tx->unsettled_count];
    return true;
}
