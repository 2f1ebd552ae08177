/* What tests of dissent share: a fleet, what each run of each device gave, and a look at
 * it. */
#ifndef TESTS_UNIT_EVIDENCE_DISSENT_FIXTURE_H
#define TESTS_UNIT_EVIDENCE_DISSENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/evidence/dissent.h"

enum { DEVICES = 12, RUNS = 200 };

/* A cell of a fleet: which digest each run of each device gave (0: the right one). */
struct fleet {
    int devices, hosts;
    int host_of[DEVICES];
    int runs[DEVICES];
    int digests[DEVICES][RUNS];
    int most[DEVICES], most_runs[DEVICES]; /* as of the last look, of so many runs */
    int looked[DEVICES];
    char ids[DEVICES][16], names[DEVICES][16], modes[DEVICES][DIGEST_TEXT_SIZE];
    struct dissent_row rows[DEVICES];
    struct dissent dissent;
};

/* As many devices on each host, as far as they go. */
static inline void make(struct fleet *f, int devices, int hosts)
{
    memset(f, 0, sizeof *f);
    f->devices = devices;
    f->hosts = hosts;
    for (int i = 0; i < devices; i++) {
        f->host_of[i] = i % hosts;
        snprintf(f->ids[i], sizeof f->ids[i], "GPU-%02d", i);
        snprintf(f->names[i], sizeof f->names[i], "host-%d", f->host_of[i]);
    }
}

static inline void run(struct fleet *f, int device, int digest)
{
    assert_true(f->runs[device] < RUNS);
    f->digests[device][f->runs[device]++] = digest;
}

static inline int shown(const struct fleet *f, int device, int digest)
{
    int runs = 0;

    for (int r = 0; r < f->runs[device]; r++) {
        runs += f->digests[device][r] == digest;
    }
    return runs;
}

static inline int number_of(const char *digest)
{
    char number[9];

    snprintf(number, sizeof number, "%.8s", digest);
    return (int)strtol(number, NULL, 16);
}

/* Counts only grow, so what was most frequent is overtaken by what was new since. */
static inline void find_mode(struct fleet *f, int i)
{
    f->most_runs[i] = f->looked[i] ? shown(f, i, f->most[i]) : 0;
    for (int r = f->looked[i]; r < f->runs[i]; r++) {
        int digest = f->digests[i][r];
        int runs = shown(f, i, digest);

        if (runs > f->most_runs[i] || (runs == f->most_runs[i] && digest < f->most[i])) {
            f->most[i] = digest;
            f->most_runs[i] = runs;
        }
    }
    if (f->looked[i] < f->runs[i]) {
        snprintf(f->modes[i], sizeof f->modes[i], "%08x%024d", (unsigned)f->most[i], 0);
    }
    f->looked[i] = f->runs[i];
}

/* Looks at what the fleet has measured so far, devices in some order. */
static inline void look(struct fleet *f)
{
    int count = 0;

    for (int i = f->devices - 1; i >= 0; i--) {
        struct dissent_row *row = &f->rows[count];

        if (f->runs[i] == 0) {
            continue;
        }
        find_mode(f, i);
        *row = (struct dissent_row){
            .device = f->ids[i],
            .host = f->names[i],
            .options = "",
            .runs = f->runs[i],
            .iterations = 2 * f->runs[i],
            .varied = f->most_runs[i] < f->runs[i],
            .mode = f->modes[i],
            .mode_runs = f->most_runs[i],
        };
        count++;
    }
    dissent_majorities(f->rows, count);
    for (int i = 0; i < count; i++) {
        struct dissent_row *row = &f->rows[i];

        if (row->majority_runs < 0) {
            row->majority_runs = shown(f, (int)strtol(row->device + 4, NULL, 10),
                                       number_of(row->majority));
        }
    }
    f->dissent = dissent_judge(f->rows, count);
}

static inline const struct dissent_row *row_of(const struct fleet *f, int device)
{
    for (int i = 0; i < f->devices; i++) {
        if (f->rows[i].device && strcmp(f->rows[i].device, f->ids[device]) == 0) {
            return &f->rows[i];
        }
    }
    return NULL;
}

static inline bool is_named(const struct fleet *f, int device)
{
    const struct dissent_row *row = row_of(f, device);

    return row && row->mark == DISSENT_DISSENTS;
}

#endif
