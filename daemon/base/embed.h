/* Files built into the executable: web pages, SQL migrations, profiles, the OpenAPI
 * document.  The Makefile turns each into one object; nothing is registered by hand. */
#ifndef DAEMON_BASE_EMBED_H
#define DAEMON_BASE_EMBED_H

#include <stddef.h>

/* One embedded file.  `start` is NUL-terminated behind `end`.  Borrowed: valid always. */
struct embed {
    const char *name; /* path in the repository, "web/index.html" */
    const char *start;
    const char *end;
};

/* The file of that exact name, or NULL. */
const struct embed *embed_find(const char *name);

/* Calls VISIT for every file whose name starts with PREFIX, in order of name. */
void embed_each(const char *prefix, void (*visit)(void *arg, const struct embed *file),
                void *arg);

size_t embed_size(const struct embed *file);

/* Gives back the memory that reading FILE took; who reads it again gets it again. */
void embed_forget(const struct embed *file);

#endif
