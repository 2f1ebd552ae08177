/* Errors: something in reprod failed.  What a run *showed* is a verdict, a different
 * type (daemon/evidence/verdict.h); the two never mix.
 *
 * A function that can fail returns 0 or an enum err_code, and fills its last parameter
 * `struct err *err` (never NULL) on failure only.  Libraries return errors; the layer
 * that decides what to do about one logs or answers it, once. */
#ifndef DAEMON_BASE_ERR_H
#define DAEMON_BASE_ERR_H

#define ERR_MAP(X)                                                                       \
    X(ERR_INVALID, "invalid")     /* the caller's input is wrong */                      \
    X(ERR_NOT_FOUND, "not-found") /* no such thing */                                    \
    X(ERR_GONE, "gone")           /* it was there, and is no more on purpose */          \
    X(ERR_CONFLICT, "conflict")   /* contradicts what is already stored */               \
    X(ERR_TOO_LARGE, "too-large") /* over a stated limit */                              \
    X(ERR_BUSY, "busy")           /* try again later */                                  \
    X(ERR_TIMEOUT, "timeout")     /* a deadline passed */                                \
    X(ERR_IO, "io")               /* the operating system said no */                     \
    X(ERR_PROTOCOL, "protocol")   /* a peer broke the wire protocol */                   \
    X(ERR_CORRUPT, "corrupt")     /* stored data is damaged */                           \
    X(ERR_NEWER, "newer")         /* stored data is from a newer reprod */               \
    X(ERR_UNSUPPORTED,                                                                   \
      "unsupported")            /* refused on purpose, e.g. a network file system */     \
    X(ERR_INTERNAL, "internal") /* a defect of reprod */

enum err_code {
    ERR_OK = 0,
#define X(code, text) code,
    ERR_MAP(X)
#undef X
};

struct err {
    enum err_code code;
    char message[512]; /* one line, no trailing newline, for people */
};

/* The stable name of CODE ("not-found"), "ok" for ERR_OK. */
const char *err_name(enum err_code code);

/* Fills ERR and returns CODE, so that a failing function can end with it. */
enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set with ERR_IO, ": " and the text of errno value ERRNUM appended. */
enum err_code err_set_errno(struct err *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message of a filled ERR; returns its code. */
enum err_code err_wrap(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
