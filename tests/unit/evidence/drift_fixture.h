/* What tests of drift share: what the devices of a side showed, in a few words. */
#ifndef TESTS_UNIT_EVIDENCE_DRIFT_FIXTURE_H
#define TESTS_UNIT_EVIDENCE_DRIFT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/evidence/drift.h"

#define LOADED   "{\"contention\":2}"
#define POISONED "{\"memory-poison\":\"11111111\"}"
#define PROBED   "{\"probes\":1}"

enum { ROWS_MAX = 16 };

/* What the devices of a side showed, in a few words. */
struct shown {
    struct dissent_row rows[ROWS_MAX];
    char names[ROWS_MAX][16], digests[ROWS_MAX][DIGEST_TEXT_SIZE];
    int count;
};

/* RUNS of device N with DIGEST; 0: with several. */
static inline void show(struct shown *s, int n, const char *options, int digest, int runs)
{
    int i = s->count++;

    snprintf(s->names[i], sizeof s->names[i], "GPU-%02d", n);
    if (digest) {
        snprintf(s->digests[i], sizeof s->digests[i], "%032x", digest);
    }
    s->rows[i] = (struct dissent_row){ .device = s->names[i],
                                       .host = "h",
                                       .options = options,
                                       .runs = runs,
                                       .iterations = runs,
                                       .varied = digest == 0,
                                       .mode = s->digests[i],
                                       .mode_runs = digest ? runs : 0 };
}

/* Devices FIRST to before END alike. */
static inline void show_all(struct shown *s, int first, int end, const char *options,
                            int digest, int runs)
{
    for (int n = first; n < end; n++) {
        show(s, n, options, digest, runs);
    }
}

static const char *const nobody[] = { NULL };

static inline struct drift_devices judged(struct shown *s)
{
    dissent_majorities(s->rows, s->count);
    for (int i = 0; i < s->count; i++) {
        s->rows[i].majority_runs =
            s->rows[i].majority_runs < 0 ? 0 : s->rows[i].majority_runs;
    }
    dissent_judge(s->rows, s->count);
    return (struct drift_devices){ s->rows, s->count, nobody, 0 };
}

static inline struct drift_case compared(struct shown *from, enum verdict before,
                                         struct shown *to, enum verdict now)
{
    struct drift_devices then = judged(from);
    struct drift_devices since = judged(to);
    struct drift_case c = { .from = { .cell = 1, .verdict = before, .runs = from->count },
                            .to = { .cell = 2, .verdict = now, .runs = to->count } };

    c.from.reach = c.to.reach = DRIFT_RUNNABLE;
    c.from.distinct_digests = c.to.distinct_digests = 2;
    drift_compare(&c, &then, &since);
    drift_judge(&c);
    return c;
}

#define assert_says(c, words)                                                            \
    do {                                                                                 \
        if (!strstr((c).reason, words)) {                                                \
            fail_msg("'%s' not in: %s", words, (c).reason);                              \
        }                                                                                \
    } while (0)

#endif
