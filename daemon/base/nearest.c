#include "daemon/base/nearest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_COMPARED = 64, BEGINNING_MIN = 4 };

/* Levenshtein distance of the first NAME_MAX_COMPARED characters, one row at a time
 * (Wagner and Fischer 1974). */
static int edit_distance(const char *a, const char *b)
{
    int row[NAME_MAX_COMPARED + 1];
    int width = (int)strnlen(b, NAME_MAX_COMPARED);

    for (int j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (int i = 1; a[i - 1] && i <= NAME_MAX_COMPARED; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < row[j] ? change : row[j];
        }
    }
    return row[width];
}

/* The first of the nearest, if that is nearer than LIMIT. */
static const char *nearer_than(int limit, const char *name, const char *const *names,
                               int count)
{
    const char *best = NULL;

    for (int i = 0; i < count; i++) {
        int distance = edit_distance(name, names[i]);

        if (distance < limit) {
            limit = distance;
            best = names[i];
        }
    }
    return best;
}

/* Of a long id people often have the beginning only.  NULL: none or several begin so. */
static const char *only_one_that_begins(const char *name, const char *const *names,
                                        int count)
{
    const char *found = NULL;
    size_t length = strlen(name);

    for (int i = 0; i < count && length >= BEGINNING_MIN; i++) {
        if (strncmp(names[i], name, length) == 0) {
            if (found) {
                return NULL;
            }
            found = names[i];
        }
    }
    return found;
}

const char *nearest_name(const char *name, const char *const *names, int count)
{
    const char *near = nearer_than((int)strlen(name) / 3 + 2, name, names, count);

    return near ? near : only_one_that_begins(name, names, count);
}

const char *nearest_of(const char *name, const char *const *names, int count)
{
    return nearer_than(INT_MAX, name, names, count);
}

const char *nearest_hint(const char *name, const char *const *names, int count,
                         char ret_hint[NEAREST_HINT_SIZE])
{
    const char *near = nearest_name(name, names, count);

    ret_hint[0] = '\0';
    if (near) {
        snprintf(ret_hint, NEAREST_HINT_SIZE, "; did you mean '%.256s'?", near);
    }
    return ret_hint;
}
