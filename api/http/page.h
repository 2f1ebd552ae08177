/* A page of a list: {…, "items":[…], "next":cursor or null}, newest first.
 *
 * A handler's state begins with a struct page.  Of the rows, which the store gives in
 * order, one more than the page holds is read, so that it is known whether there is a
 * next one. */
#ifndef API_HTTP_PAGE_H
#define API_HTTP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/cursor.h"
#include "daemon/base/json_out.h"

struct request;

struct page {
    char kind;                  /* of the list's cursors */
    int limit;                  /* rows that it holds */
    int offered;                /* rows so far, those that it had no room for included */
    char last[CURSOR_KEY_SIZE]; /* key of the last row that it holds */
    struct json_out out;
    void (*release)(void *state); /* what the state owns besides `out`; NULL: nothing */
};

/* Returns the zeroed state of R's handler, SIZE bytes that begin with a struct page,
 * whose limit is R's parameter "limit".  It is freed with R. */
void *page_new(struct request *r, size_t size, char kind);

/* How many rows to read. */
int page_rows(const struct page *page);

/* Whether there is room for the next row, which goes to page->out then. */
bool page_has_room(struct page *page);

/* The same; FORMAT gives the row's key: where the page behind it begins. */
bool page_takes(struct page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends page->out, where the list's object and its "items" are open, and sets the Link
 * header. */
void page_close(struct request *r, struct page *page);

/* Writes the member "next" of a list and the Link header: KEY is where the next page
 * begins, NULL if there is none. */
void page_end(struct request *r, struct json_out *out, char kind, const char *key);

#endif
