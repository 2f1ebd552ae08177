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

/* What a person reads, or a name that stands in a list or in a column of a terminal. */
#define PROFILE_A_TEXT .kind = IN_TEXT, .least = 1, .check = profile_check_text
#define PROFILE_TEXT(name)                                                               \
    {                                                                                    \
        .key = (name), PROFILE_A_TEXT                                                    \
    }
#define NOT_A_MEMBER "there is no member"

/* Refuses a text of blanks only, and one with a control character. */
void profile_check_text(struct in_reader *reader, const json_t *value);

/* No two objects of the LIST at the pointer NAME have the same KEY. */
enum err_code profile_distinct(const struct parser *parser, const json_t *list,
                               const char *name, const char *key);

/* The rows of JSON, once recipes and columns are known; WHERE is for messages. */
enum err_code profile_rows_parse(struct parser *parser, const json_t *json,
                                 const char *where);

#endif
