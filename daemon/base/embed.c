#include "daemon/base/embed.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const struct embed __start_reprod_embedded[] __attribute__((weak));
extern const struct embed __stop_reprod_embedded[] __attribute__((weak));

/* How many there are; a program may have none. */
static size_t count(void)
{
    return ((uintptr_t)__stop_reprod_embedded - (uintptr_t)__start_reprod_embedded) /
           sizeof(struct embed);
}

const struct embed *embed_find(const char *name)
{
    for (size_t i = 0; i < count(); i++) {
        if (strcmp(__start_reprod_embedded[i].name, name) == 0) {
            return &__start_reprod_embedded[i];
        }
    }
    return NULL;
}

/* The first file after LAST ("": the very first) with PREFIX, in order of name. */
static const struct embed *next_after(const char *prefix, const char *last)
{
    const struct embed *best = NULL;

    for (size_t i = 0; i < count(); i++) {
        const struct embed *f = &__start_reprod_embedded[i];

        if (strncmp(f->name, prefix, strlen(prefix)) == 0 && strcmp(f->name, last) > 0 &&
            (!best || strcmp(f->name, best->name) < 0)) {
            best = f;
        }
    }
    return best;
}

void embed_each(const char *prefix, void (*visit)(void *arg, const struct embed *file),
                void *arg)
{
    const struct embed *file = next_after(prefix, "");

    for (; file; file = next_after(prefix, file->name)) {
        visit(arg, file);
    }
}

size_t embed_size(const struct embed *file)
{
    return (size_t)(file->end - file->start);
}

void embed_forget(const struct embed *file)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)file->start + page - 1) / page * page;
    uintptr_t to = (uintptr_t)file->end / page * page;

    if (from < to) {
        madvise((void *)from, to - from, MADV_DONTNEED); /* of the executable's file */
    }
}
