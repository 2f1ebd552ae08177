/* A page of a list: {…, "items":[…], "next":cursor or null}, newest first.
 *
 * A handler's state begins with a struct page.  The store gives the rows in order.  One
 * row more than the page holds is read: it shows whether there is a next page. */
#ifndef API_HTTP_PAGE_H
#define API_HTTP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/id.h"
#include "daemon/base/json_out.h"

struct request;

enum { CURSOR_KEY_SIZE = 64, CURSOR_SIZE = 128 };

struct page {
    char kind;                  /* of the list's cursors */
    int limit;                  /* rows that it holds */
    int offered;                /* rows so far, also those that found no room */
    char last[CURSOR_KEY_SIZE]; /* key of the last row that it holds */
    struct json_out out;
    void (*release)(void *state); /* what else than `out` it owns; NULL: nothing */
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

/* Opens a list's object and its "items". */
void list_open(struct json_out *out);

/* Ends a list that is always whole, and replies with it. */
void list_reply(struct request *r, struct json_out *out);

/* Ends page->out, where the list's object and its "items" are open, and replies with it
 * and the Link header. */
void page_reply(struct request *r, struct page *page);

/* Writes the member "next" of a list and the Link header: KEY is where the next page
 * begins, NULL if there is none. */
void page_end(struct request *r, struct json_out *out, char kind, const char *key);

/* Cursors: where the next page of a list begins.  Opaque to clients (base64url of a kind
 * and a key), so that what is inside may change.  KIND is one letter per list; KEY is 1
 * to CURSOR_KEY_SIZE - 1 bytes. */
void cursor_encode(char kind, const char *key, char ret_cursor[CURSOR_SIZE]);

/* Returns 0, or -1 if CURSOR was not made by cursor_encode for KIND. */
int cursor_decode(char kind, const char *cursor, char ret_key[CURSOR_KEY_SIZE]);

/* R's parameter "cursor", of a list of KIND whose keys are ids; "" if it is not given.
 * What is wrong is added to r->problems. */
void param_cursor_id(struct request *r, char kind, char ret_id[ID_SIZE]);

/* The same of a list whose keys are positive numbers; 0 if it is not given. */
int64_t param_cursor_number(struct request *r, char kind);

/* The same of a list whose keys are two positive numbers, "7.30". */
void param_cursor_pair(struct request *r, char kind, int64_t *ret_first,
                       int64_t *ret_second);

#endif
