/* Tables of profiles. */
#include "daemon/evidence/profile.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct profile_table *table;
    struct err err;

    if (profile_parse("table.json", text, size, &table, &err) == ERR_OK) {
        for (int i = 0; i < table->row_count * table->column_count; i++) {
            const struct profile_row *row = &table->rows[i / table->column_count];
            const struct profile_cell *cell = &row->cells[i % table->column_count];

            FUZZ_CHECK(row->id);
            FUZZ_CHECK(cell->choice_count <= PROFILE_RECIPES_MAX);
            FUZZ_CHECK(!cell->absent || cell->choice_count == 0);
            FUZZ_CHECK(row->workload || cell->absent ||
                       (cell->documented && cell->choice_count == 0));
        }
        profile_check(table, fuzz_catalogue(), false, &err);
        profile_check(table, fuzz_catalogue(), true, &err);
        profile_free(table);
    }
    free(text);
}

FUZZ_TARGET("profile", run);
