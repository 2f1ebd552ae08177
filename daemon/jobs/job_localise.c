#include "daemon/jobs/job_localise.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/localisation.h"

enum { NAMED_MAX = 4 };

static void seed_of(const struct job_item *item, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%" PRIu64, item->key.seed);
}

#define NAME_OF(what, member)                                                            \
    static void what##_of(const struct job_item *item, char *ret_text, size_t size)      \
    {                                                                                    \
        copy_text(ret_text, size, item->member);                                         \
    }
NAME_OF(workload, key.workload)
NAME_OF(variant, key.variant)
NAME_OF(size, key.size)
NAME_OF(dtype, key.dtype)
NAME_OF(device, device)
NAME_OF(stack, stack)

static const struct {
    const char *member;
    void (*name)(const struct job_item *item, char *ret_text, size_t size);
} members[] = {
    { "workloads", workload_of }, { "variants", variant_of }, { "sizes", size_of },
    { "dtypes", dtype_of },       { "seeds", seed_of },       { "devices", device_of },
    { "stacks", stack_of },
};
enum { MEMBER_COUNT = COUNT_OF(members) };

/* Appends the first names that the items have for MEMBER; returns how many there are, or
 * NAMED_MAX + 1 for more. */
static int list_names(const struct job *job, int member, struct buf *names)
{
    char seen[NAMED_MAX][CASE_TITLE_SIZE];
    int count = 0;

    for (int i = 0; i < job->item_count && count <= NAMED_MAX; i++) {
        char name[CASE_TITLE_SIZE];
        bool known = false;

        members[member].name(&job->items[i], name, sizeof name);
        for (int j = 0; j < count && !known; j++) {
            known = strcmp(seen[j], name) == 0;
        }
        if (known) {
            continue;
        }
        if (count < NAMED_MAX) {
            copy_text(seen[count], sizeof seen[count], name);
            buf_printf(names, "%s'%s'", count ? ", " : "", name);
        }
        count++;
    }
    buf_puts(names, count > NAMED_MAX ? ", …" : "");
    return count;
}

void job_localise_check(const struct job *job, struct problems *problems)
{
    for (int m = 0; m < MEMBER_COUNT; m++) {
        struct buf names = BUF_INIT;
        char pointer[32];

        snprintf(pointer, sizeof pointer, "/%s", members[m].member);
        if (list_names(job, m, &names) > 1) {
            problems_add(problems, PROBLEM_INVALID, pointer,
                         "localise looks at one case on one device with one stack; name "
                         "one of %s",
                         names.data);
        }
        buf_release(&names);
    }
}

/* OPTIONS with probes, if they ask for none, or without. */
static void write_options(struct job_item *item, json_t *options, bool probes)
{
    json_t *own = json_copy(options);
    char *text;

    if (probes && !json_object_get(own, "probes")) {
        json_object_set_new(own, "probes", json_integer(1));
    } else if (!probes) {
        json_object_del(own, "probes");
        json_object_del(own, "probe-names");
        json_object_del(own, "probe-steps");
    }
    text = json_dumps(own, JSON_COMPACT | JSON_SORT_KEYS);
    copy_text(item->options, sizeof item->options, json_object_size(own) > 0 ? text : "");
    free(text);
    json_decref(own);
}

void job_localise_items(struct job *job, const struct job_wishes *wishes)
{
    struct job_item *items =
        xrealloc(job->items, LOCALISATION_ITEMS * sizeof *job->items);

    items[LOCALISATION_SEARCH].runs_wanted = wishes->runs_max;
    items[LOCALISATION_CAPTURE] = items[LOCALISATION_SEARCH];
    items[LOCALISATION_CAPTURE].seq = LOCALISATION_CAPTURE;
    write_options(&items[LOCALISATION_SEARCH], wishes->options, true);
    write_options(&items[LOCALISATION_CAPTURE], wishes->options, false);
    job->items = items;
    job->item_count = LOCALISATION_ITEMS;
}
