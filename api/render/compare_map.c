#include "api/render/compare_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/text.h"

enum { ROWS_MAX = 40, COLUMNS_MAX = 60, NAME_WIDTH_MAX = 36, MARGIN = 2 };

static const char *const signs[] = { [TRACE_SAME] = "·",
                                     [TRACE_ABSORBED] = "o",
                                     [TRACE_INFECTED] = "#",
                                     [TRACE_ROOT] = "R" };

struct map {
    const struct compare *compare;
    int rows, columns, name_width;
    int32_t *row_of;     /* by place; -1: not shown */
    unsigned char *cell; /* rows x columns: worst kind plus one; 0: no record */
};

/* The end of NAME, which says more than its beginning, in at most NAME_WIDTH_MAX columns.
 */
static void name_text(const char *name, char *ret_text, size_t size)
{
    int excess = text_width(name) - NAME_WIDTH_MAX;

    if (excess <= 0) {
        snprintf(ret_text, size, "%s", name);
        return;
    }
    for (excess++; excess > 0; excess--) {
        name++;
        while (((unsigned char)*name & 0xc0) == 0x80) {
            name++;
        }
    }
    snprintf(ret_text, size, "…%s", name);
}

static void choose_rows(struct map *map)
{
    const struct compare *c = map->compare;

    map->rows = c->place_count < ROWS_MAX ? c->place_count : ROWS_MAX;
    map->row_of = xmalloc((size_t)c->a.trace.place_count * sizeof *map->row_of);
    memset(map->row_of, -1, (size_t)c->a.trace.place_count * sizeof *map->row_of);
    for (int i = 0; i < map->rows; i++) {
        char name[TRACE_PLACE_MAX + 8];
        int width;

        name_text(c->a.trace.places[c->places[i]], name, sizeof name);
        width = text_width(name);
        map->name_width = width > map->name_width ? width : map->name_width;
        map->row_of[c->places[i]] = i;
    }
}

static void fill(struct map *map)
{
    const struct trace_comparison *t = &map->compare->traces;
    const struct trace_record *records = map->compare->a.trace.records;
    int64_t step = -1;

    for (int64_t i = 0; i < t->compared; i++) {
        int row = map->row_of[records[i].place];
        unsigned char *cell;

        step += i == 0 || records[i].iteration != records[i - 1].iteration ||
                records[i].step != records[i - 1].step;
        if (row >= 0) {
            cell = &map->cell[row * map->columns + (int)(step * map->columns / t->steps)];
            *cell = *cell > t->kinds[i] ? *cell : (unsigned char)(t->kinds[i] + 1);
        }
    }
}

static void legend(const struct map *map, struct buf *buf)
{
    int64_t steps = map->compare->traces.steps;
    int64_t most = (steps + map->columns - 1) / map->columns;
    char number[TEXT_NUMBER_SIZE];

    buf_printf(
        buf,
        "%*s%s equal   %s root   %s infected   %s absorbed (other inputs, the same "
        "output)\n",
        MARGIN, "", signs[TRACE_SAME], signs[TRACE_ROOT], signs[TRACE_INFECTED],
        signs[TRACE_ABSORBED]);
    if (most > 1) {
        buf_printf(buf, "%*sa column is up to %s steps, and shows the worst of them\n",
                   MARGIN, "", text_number(most, number));
    }
}

static void label(const struct compare *c, int64_t position, char *ret_text, size_t size)
{
    const struct trace_record *r = &c->a.trace.records[position];
    const struct trace_record *last = &c->a.trace.records[c->traces.compared - 1];

    if (last->iteration > 0) {
        snprintf(ret_text, size, "%" PRId32 ":%" PRId64, r->iteration, r->step);
    } else {
        snprintf(ret_text, size, "%" PRId64, r->step);
    }
}

/* The first and the last step, above the columns. */
static void axis(const struct map *map, struct buf *buf)
{
    const struct compare *c = map->compare;
    bool iterated = c->a.trace.records[c->traces.compared - 1].iteration > 0;
    char first[48];
    char last[48];
    int gap;

    label(c, 0, first, sizeof first);
    label(c, c->traces.compared - 1, last, sizeof last);
    gap = map->columns - text_width(first) - text_width(last);
    buf_pad(buf, "", MARGIN);
    buf_pad(buf, iterated ? "iteration:step" : "step", map->name_width + MARGIN);
    buf_puts(buf, first);
    if (c->traces.steps > 1) {
        buf_pad(buf, "", gap > 1 ? gap : 1);
        buf_puts(buf, last);
    }
    buf_putc(buf, '\n');
}

static void row(const struct map *map, int index, struct buf *buf)
{
    const struct compare *c = map->compare;
    char name[TRACE_PLACE_MAX + 8];

    name_text(c->a.trace.places[c->places[index]], name, sizeof name);
    buf_pad(buf, "", MARGIN);
    buf_pad(buf, name, map->name_width + MARGIN);
    for (int i = 0; i < map->columns; i++) {
        unsigned char cell = map->cell[index * map->columns + i];

        buf_puts(buf, cell ? signs[cell - 1] : " ");
    }
    while (buf->data[buf->length - 1] == ' ') {
        buf->length--;
    }
    buf_putc(buf, '\n');
}

/* How many places have no line. */
static void others(const struct map *map, struct buf *buf)
{
    const struct compare *c = map->compare;
    int same = 0;

    for (int i = 0; i < c->a.trace.place_count; i++) {
        same += c->traces.places[i].compared > 0 && c->traces.places[i].first < 0;
    }
    if (c->place_count > map->rows) {
        buf_printf(buf, "  and %d more that differ\n", c->place_count - map->rows);
    }
    if (same > 0) {
        buf_printf(buf, "  and %d in which every record agrees\n", same);
    }
}

void compare_map(const struct compare *compare, struct buf *buf)
{
    const struct trace_comparison *t = &compare->traces;
    struct map map = { .compare = compare, .name_width = text_width("iteration:step") };

    if (!compare->has_traces || compare->place_count == 0) {
        return;
    }
    map.columns = t->steps < COLUMNS_MAX ? (int)t->steps : COLUMNS_MAX;
    choose_rows(&map);
    map.cell = xcalloc((size_t)map.rows, (size_t)map.columns);
    fill(&map);
    buf_puts(buf, "\nPlace by place, in the order in which they begin to differ\n");
    legend(&map, buf);
    axis(&map, buf);
    for (int i = 0; i < map.rows; i++) {
        row(&map, i, buf);
    }
    others(&map, buf);
    free(map.row_of);
    free(map.cell);
}
