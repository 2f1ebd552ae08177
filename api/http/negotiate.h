/* Which representation a client gets: by suffix (.json, .txt, .csv), else by Accept. */
#ifndef API_HTTP_NEGOTIATE_H
#define API_HTTP_NEGOTIATE_H

enum format {
    FORMAT_NONE, /* also ends a list */
    FORMAT_JSON,
    FORMAT_TEXT,
    FORMAT_CSV,
    FORMAT_HTML,
    FORMAT_EVENTS,
    FORMAT_OPENMETRICS,
    FORMAT_FILE /* whatever type the file has; Accept is not asked */
};

/* "application/json", …, without parameters. */
const char *format_type(enum format format);

/* The Content-Type header's value. */
const char *format_content_type(enum format format);

/* The format that the suffix SUFFIX (".csv") names; FORMAT_NONE for any other text. */
enum format format_from_suffix(const char *suffix);

/* The one of OFFERED (in order of preference, ended by FORMAT_NONE) that the Accept
 * header's value ACCEPT likes best, by RFC 9110, 12.5.1; NULL or nothing intelligible
 * means anything.  FORMAT_NONE if none is acceptable. */
enum format negotiate(const char *accept, const enum format *offered);

#endif
