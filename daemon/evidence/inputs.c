#include "daemon/evidence/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"

/* The digest that more than half of the runs have of the host whose first count is FIRST;
 * NULL: there is none. */
static const char *vote_of(const struct input_count *counts, int count, int first)
{
    const struct input_count *most = &counts[first];
    int64_t runs = 0;

    for (int i = first; i < count; i++) {
        if (strcmp(counts[i].host, counts[first].host) == 0) {
            runs += counts[i].runs;
            most = counts[i].runs > most->runs ? &counts[i] : most;
        }
    }
    return 2 * most->runs > runs ? most->digest : NULL;
}

/* Whether the Ith is the first of its host. */
static bool is_first(const struct input_count *counts, int i)
{
    for (int j = 0; j < i; j++) {
        if (strcmp(counts[j].host, counts[i].host) == 0) {
            return false;
        }
    }
    return true;
}

static int count_hosts(const struct input_count *counts, int count)
{
    int hosts = 0;

    for (int i = 0; i < count; i++) {
        hosts += is_first(counts, i);
    }
    return hosts;
}

static int count_votes(const struct input_count *counts, int count, const char *digest)
{
    int votes = 0;

    for (int i = 0; i < count; i++) {
        const char *vote = is_first(counts, i) ? vote_of(counts, count, i) : NULL;

        votes += vote && strcmp(vote, digest) == 0;
    }
    return votes;
}

/* One digest, and who says it. */
struct camp {
    const struct input_count *first; /* by run; NULL: there is none */
    int votes;
};

static bool is_greater(const struct camp *a, const struct camp *b)
{
    return !b->first || a->votes > b->votes ||
           (a->votes == b->votes && strcmp(a->first->digest, b->first->digest) < 0);
}

/* The greatest camp whose digest is not BUT. */
static struct camp greatest(const struct input_count *counts, int count, const char *but)
{
    struct camp best = { NULL, 0 };

    for (int i = 0; i < count; i++) {
        struct camp camp = { &counts[i], count_votes(counts, count, counts[i].digest) };

        if (strcmp(counts[i].digest, but) == 0) {
            continue;
        }
        if (best.first && strcmp(best.first->digest, counts[i].digest) == 0) {
            best.first =
                strcmp(counts[i].run, best.first->run) < 0 ? &counts[i] : best.first;
        } else if (is_greater(&camp, &best)) {
            best = camp;
        }
    }
    return best;
}

static void say_contested(const struct input_count *counts, int count, int hosts,
                          struct inputs *ret_inputs)
{
    struct camp a = greatest(counts, count, "");
    struct camp b = greatest(counts, count, a.first->digest);

    ret_inputs->contested = true;
    snprintf(ret_inputs->words, sizeof ret_inputs->words,
             "%d of %d hosts say %.8s (run %.26s on %.40s), %d say %.8s (run %.26s on "
             "%.40s)",
             a.votes, hosts, a.first->digest, a.first->run, a.first->host, b.votes,
             b.first->digest, b.first->run, b.first->host);
}

struct inputs inputs_judge(const struct input_count *counts, int count,
                           const char *decided)
{
    struct inputs inputs = { .contested = false };
    int hosts = count_hosts(counts, count);

    if (decided[0]) {
        copy_text(inputs.digest, sizeof inputs.digest, decided);
        return inputs;
    }
    for (int i = 0; i < count && !inputs.digest[0]; i++) {
        if (2 * count_votes(counts, count, counts[i].digest) > hosts) {
            copy_text(inputs.digest, sizeof inputs.digest, counts[i].digest);
        }
    }
    if (count && !inputs.digest[0]) {
        say_contested(counts, count, hosts, &inputs);
    }
    return inputs;
}
