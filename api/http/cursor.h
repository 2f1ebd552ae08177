/* Cursors: where the next page of a list begins.  Opaque to clients (base64url of a kind
 * and a key), so that what is inside may change. */
#ifndef API_HTTP_CURSOR_H
#define API_HTTP_CURSOR_H

#include <stddef.h>

enum { CURSOR_KEY_SIZE = 64, CURSOR_SIZE = 128 };

/* KIND is one letter per list; KEY is 1 to CURSOR_KEY_SIZE - 1 bytes. */
void cursor_encode(char kind, const char *key, char ret_cursor[CURSOR_SIZE]);

/* Returns 0, or -1 if CURSOR was not made by cursor_encode for KIND. */
int cursor_decode(char kind, const char *cursor, char ret_key[CURSOR_KEY_SIZE]);

#endif
