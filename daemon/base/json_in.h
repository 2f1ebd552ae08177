/* Reads JSON objects by declaration: the twin of json_out.
 *
 * A table names the members of an object, says what each may hold, and where in a struct
 * it goes.  The reader checks the object against the table, takes the values, and says of
 * everything that is wrong where it stands and what it must be:
 *
 *   static const struct in_member members[] = {
 *       { "pid", IN_INT, IN_AT(struct start, pid) },
 *       { "note", IN_TEXT, IN_AT(struct start, note), .flags = IN_OPTIONAL, .most = 80 },
 *   };
 *   static const struct in_shape shape = IN_SHAPE(members, "a start has no member");
 *
 * What is read borrows its texts and JSON from the object.  What is absent, or wrong,
 * leaves its target as it is: defaults are set before. */
#ifndef DAEMON_BASE_JSON_IN_H
#define DAEMON_BASE_JSON_IN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/array.h"
#include "daemon/base/err.h"

struct in_reader;
struct in_shape;

enum in_kind {
    IN_TEXT,  /* const char *; `least` to `most` bytes */
    IN_HEX,   /* const char *; `most` hex digits, lower case: equal values, equal texts */
    IN_INT,   /* int or int64_t; from `least` to `most` */
    IN_REAL,  /* double; from `least` to `most` */
    IN_BOOL,  /* bool */
    IN_ARRAY, /* const json_t *; `least` to `most` elements */
    IN_OBJECT, /* const json_t *; `least` to `most` members */
    IN_JSON    /* const json_t *; anything */
};

enum {
    IN_OPTIONAL = 1, /* need not be there */
    IN_NULLABLE = 2  /* may be null; a target that is a pointer is NULL then */
};

/* Looks at a VALUE of the right kind once more, and calls in_refuse for what is wrong. */
typedef void in_check_fn(struct in_reader *reader, const json_t *value);

struct in_member {
    const char *key;
    enum in_kind kind;
    size_t offset, size; /* of the target (IN_AT); size 0: it is checked only */
    unsigned flags;
    int64_t least, most;          /* both 0: no bounds but those of the target */
    const char *const *names;     /* of a text: one of them; ends with NULL */
    const struct in_member *item; /* each element of an array, each value of an object;
                                     its key and target are not used */
    const struct in_shape *shape; /* of an object: its members */
    in_check_fn *check;
    const char *wanted;   /* the reason instead of the usual one: "must be a glob" */
    const char *fallback; /* for in_complete: JSON that stands for an absent member */
};

struct in_shape {
    const struct in_member *members;
    int count;
    const char *unknown; /* why others are refused: "a job has no member"; NULL: they are
                            ignored */
};

/* A field may well be a pointer: its own size is what is meant. */
#define IN_AT(type, field)                                                               \
    .offset = offsetof(type, field),                                                     \
    .size = sizeof(((type *)NULL)->field) /* NOLINT(bugprone-sizeof-expression) */
#define IN_SHAPE(members, unknown)                                                       \
    {                                                                                    \
        (members), COUNT_OF(members), (unknown)                                          \
    }

struct in_fault {
    const char
        *pointer;       /* RFC 6901, within what was read: "/stacks/0/name"; "": itself */
    const char *reason; /* "must be a text", "is missing" */
    bool unknown;       /* the member itself is not known */
};

/* Told of each fault; the texts are borrowed for the call. */
typedef void in_fault_fn(void *arg, const struct in_fault *fault);

/* Reads OBJECT into TARGET, the struct of SHAPE's offsets (NULL: it is checked only).
 * Calls REFUSE for every fault: unknown members first, then in the order of the table. */
bool in_read(const struct in_shape *shape, const json_t *object, void *target,
             in_fault_fn *refuse, void *arg);

/* As in_read, for a message from another process.  ERR_PROTOCOL tells the first fault as
 * "stacks/0/name must be a text". */
enum err_code in_read_wire(const struct in_shape *shape, const json_t *object,
                           void *target, struct err *err);

/* As in_read, for a file.  ERR_INVALID tells the first fault as "WHERE/stacks/0/name:
 * must be a text"; WHERE is the file, and the pointer to OBJECT within it.  Of all that
 * the file "t.json: " holds, it says "t.json: at the top: must be an object". */
enum err_code in_read_file(const struct in_shape *shape, const json_t *object,
                           const char *where, void *target, struct err *err);

/* As in_read_file without a target; adds to OBJECT the fallbacks of absent members. */
enum err_code in_complete(const struct in_shape *shape, json_t *object, const char *where,
                          struct err *err);

/* For checks: what is wrong with the value; KEY names a member or element of it where
 * that is the place, else NULL. */
void in_refuse(struct in_reader *reader, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* KEY as a token of a JSON pointer ('~' and '/' escaped), after a "/".  Caller frees. */
char *in_pointer(const char *key);

/* Whether TEXT is as IN_HEX has it. */
bool in_is_hex(const char *text, size_t digits);

/* How deep TEXT nests, strings left out; exact for JSON that is well-formed.  jansson
 * recurses, so depth is bounded before it sees the text. */
int in_depth(const char *text, size_t length);

/* The member KEY of OBJECT; NULL, 0 or "" where there is none of that kind. */
const char *in_text(const json_t *object, const char *key);
int64_t in_int(const json_t *object, const char *key);
const char *in_text_or_empty(const json_t *object, const char *key);

#endif
