#include "daemon/base/embed.h"

#include <string.h>

extern const struct embed __start_reprod_embedded[] __attribute__((weak));
extern const struct embed __stop_reprod_embedded[] __attribute__((weak));

const struct embed *embed_find(const char *name)
{
    for (const struct embed *f = __start_reprod_embedded; f < __stop_reprod_embedded;
         f++) {
        if (strcmp(f->name, name) == 0) {
            return f;
        }
    }
    return NULL;
}

/* The first file after LAST (NULL: the very first) with PREFIX, in order of name. */
static const struct embed *next_after(const char *prefix, const char *last)
{
    const struct embed *best = NULL;

    for (const struct embed *f = __start_reprod_embedded; f < __stop_reprod_embedded;
         f++) {
        if (strncmp(f->name, prefix, strlen(prefix)) == 0 &&
            (!last || strcmp(f->name, last) > 0) &&
            (!best || strcmp(f->name, best->name) < 0)) {
            best = f;
        }
    }
    return best;
}

void embed_each(const char *prefix, void (*visit)(void *arg, const struct embed *file),
                void *arg)
{
    const struct embed *file = NULL;

    while ((file = next_after(prefix, file ? file->name : NULL)) != NULL) {
        visit(arg, file);
    }
}

size_t embed_size(const struct embed *file)
{
    return (size_t)(file->end - file->start);
}
