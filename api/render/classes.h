/* Views of digest classes (daemon/evidence/classes.h): for a terminal, as JSON, as CSV.
 * Pure: what is shown depends on what is known of the cells alone, not on the order in
 * which they came in. */
#ifndef API_RENDER_CLASSES_H
#define API_RENDER_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_out.h"
#include "daemon/evidence/classes.h"

struct classes_view {
    const struct classes *classes;
    bool of_devices;         /* else of environments */
    const char *environment; /* of devices: its id, and title */
    const char *environment_title;
    bool differing;   /* only the rows that differ */
    int first, count; /* which columns are shown */
    const char *next; /* cursor of those behind them; NULL: there are none */
    int64_t as_of_ms;
};

/* Lines of at most 118 characters: columns that find no room follow below. */
void classes_text(const struct classes_view *view, struct buf *buf);

/* An object that stays open: the caller adds "next". */
void classes_json(const struct classes_view *view, struct json_out *out);

/* A line for each row and column where something is known. */
void classes_csv(const struct classes_view *view, struct buf *buf);

/* What an entry shows in a table of characters: a letter and a sign, or a sign. */
enum { CLASS_MARK_SIZE = 24 };
void classes_mark(const struct classes_view *view, const struct class_row *row,
                  int column, char ret_mark[CLASS_MARK_SIZE]);

bool classes_show_row(const struct classes_view *view, const struct class_row *row);

/* The facts in which the columns that are shown differ, or which they share; new array.
 */
json_t *classes_facts(const struct classes_view *view, bool differ);

/* "threads 2"; of devices "host-a: 8 devices, NVIDIA H100". Caller frees. */
char *classes_column_title(const struct classes_view *view, int column,
                           const json_t *names);

/* "7 cases in 2 environments; 3 of them not the same everywhere" */
enum { CLASSES_HEADLINE_SIZE = 200 };
void classes_headline(const struct classes_view *view,
                      char ret_text[CLASSES_HEADLINE_SIZE]);

#endif
