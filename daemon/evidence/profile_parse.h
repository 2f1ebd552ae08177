/* What the parsers of a table share: profile.c reads the table, profile_rows.c its rows.
 */
#ifndef DAEMON_EVIDENCE_PROFILE_PARSE_H
#define DAEMON_EVIDENCE_PROFILE_PARSE_H

#include "daemon/base/json_in.h"

struct profile_table;

struct parser {
    const char *file;
    struct profile_table *table;
    const json_t *columns; /* as the file has them */
    struct err *err;
};

#define PROFILE_TEXT(name)                                                               \
    {                                                                                    \
        .key = (name), .kind = IN_TEXT                                                   \
    }
#define NOT_A_MEMBER "there is no member"

/* No two objects of the LIST at the pointer NAME have the same KEY. */
enum err_code profile_distinct(const struct parser *parser, const json_t *list,
                               const char *name, const char *key);

/* The rows of JSON, once recipes and columns are known; WHERE is for messages. */
enum err_code profile_rows_parse(struct parser *parser, const json_t *json,
                                 const char *where);

#endif
