/* What dissent_judge found, for people. */
#include "daemon/evidence/dissent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"

enum { NAMES_MAX = 2, DIGEST_SHOWN = 8 };

static int64_t departing(const struct dissent_row *row)
{
    return row->majority ? row->runs - row->majority_runs : row->runs;
}

/* The first devices with MARK, by name, whatever their conditions, and how often they
 * depart where COUNTED. */
static void put_names(const struct dissent_row *rows, int count, enum dissent_mark mark,
                      bool counted, int all, struct buf *words)
{
    const char *last = "";

    for (int named = 0; named < all && named < NAMES_MAX; named++) {
        const char *next = NULL;
        int64_t runs = 0, depart = 0;

        for (int i = 0; i < count; i++) {
            if (rows[i].mark == mark && strcmp(rows[i].device, last) > 0 &&
                (!next || strcmp(rows[i].device, next) < 0)) {
                next = rows[i].device;
            }
        }
        if (!next) { /* never true: ALL devices have the mark */
            break;
        }
        for (int i = 0; i < count; i++) {
            if (strcmp(rows[i].device, next) == 0) {
                runs += rows[i].runs;
                depart += departing(&rows[i]);
            }
        }
        buf_printf(words, "%s%.64s", named ? ", " : "", next);
        if (counted) {
            buf_printf(words, " (%" PRId64 " of %" PRId64 " runs)", depart, runs);
        }
        last = next;
    }
    if (all > NAMES_MAX) {
        buf_printf(words, " and %d more", all - NAMES_MAX);
    }
}

static void say_dissenters(const struct dissent_row *rows, int count,
                           const struct dissent *d, struct buf *words)
{
    buf_printf(words, "%d of %d devices dissent%s: ", d->dissenters, d->devices,
               d->dissenters == 1 ? "s" : "");
    put_names(rows, count, DISSENT_DISSENTS, true, d->dissenters, words);
}

/* The two largest camps of the first conditions that have more than one, of devices that
 * agree with themselves. */
struct camp {
    const struct dissent_row *first;
    int devices;
};

static struct camp largest(const struct dissent_row *rows, int count,
                           const struct dissent_row *like, const char *but)
{
    struct camp best = { NULL, 0 };

    for (int i = 0; i < count; i++) {
        struct camp camp = { &rows[i], 0 };

        if (dissent_order_conditions(&rows[i], like) != 0 || rows[i].varied ||
            strcmp(rows[i].mode, but) == 0 ||
            (best.first && strcmp(rows[i].mode, best.first->mode) == 0)) {
            continue;
        }
        for (int j = i; j < count; j++) {
            camp.devices += dissent_order_conditions(&rows[j], like) == 0 &&
                            !rows[j].varied && strcmp(rows[j].mode, rows[i].mode) == 0;
        }
        if (camp.devices > best.devices ||
            (camp.devices == best.devices &&
             strcmp(camp.first->mode, best.first->mode) < 0)) {
            best = camp;
        }
    }
    return best;
}

static void say_camps(const struct dissent_row *rows, int count, const struct dissent *d,
                      struct buf *words)
{
    struct camp a = { NULL, 0 }, b = { NULL, 0 };

    for (int i = 0; i < count && !b.first; i++) {
        if (rows[i].mark == DISSENT_DEPARTS) {
            a = largest(rows, count, &rows[i], "");
            b = a.first ? largest(rows, count, &rows[i], a.first->mode) : b;
        }
    }
    if (!b.first) {
        buf_puts(words,
                 "all devices of some hosts depart, and differ with themselves, "
                 "too: hosts differ");
        return;
    }
    buf_printf(words, "%d of %d devices say %.*s (%.40s), %d say %.*s (%.40s)", a.devices,
               d->devices, DIGEST_SHOWN, a.first->mode,
               d->hosts_differ ? a.first->host : a.first->device, b.devices, DIGEST_SHOWN,
               b.first->mode, d->hosts_differ ? b.first->host : b.first->device);
    buf_puts(words, d->hosts_differ                    ? ": hosts differ"
                    : d->devices < DISSENT_DEVICES_MIN ? ": too few to have a majority"
                    : 2 * a.devices <= d->devices      ? ": no majority"
                                                  : "; who dissents cannot be told yet");
}

/* How many devices depart, if each was measured alone under the conditions under which it
 * does; 0: one was not. */
static int lone_devices(const struct dissent_row *rows, int count, int64_t *ret_runs)
{
    int devices = 0;

    *ret_runs = 0;
    for (int i = 0; i < count; i++) {
        bool is_first = true;

        if (rows[i].mark != DISSENT_DEPARTS) {
            continue;
        }
        for (int j = 0; j < count; j++) {
            if (j != i && dissent_order_conditions(&rows[i], &rows[j]) == 0) {
                return 0;
            }
            is_first = is_first && !(j < i && rows[j].mark == DISSENT_DEPARTS &&
                                     strcmp(rows[i].device, rows[j].device) == 0);
        }
        devices += is_first;
        *ret_runs += rows[i].runs;
    }
    return devices;
}

/* Whether others were measured as those that depart were asked to, in another state. */
static bool is_state_of_its_own(const struct dissent_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        bool others = rows[i].mark != DISSENT_DEPARTS;

        for (int j = 0; j < count && !others; j++) {
            others = strcmp(rows[i].options, rows[j].options) == 0 &&
                     strcmp(rows[i].device, rows[j].device) != 0;
        }
        if (!others) {
            return false;
        }
    }
    return true;
}

static void say_lone(const struct dissent_row *rows, int count, int devices, int64_t runs,
                     struct buf *words)
{
    bool state = is_state_of_its_own(rows, count);

    buf_printf(words, "%" PRId64 " run%s ", runs, runs == 1 ? "" : "s");
    if (devices > 1) {
        buf_puts(words, "depart, on ");
    } else {
        buf_puts(words, "of ");
    }
    put_names(rows, count, DISSENT_DEPARTS, false, devices, words);
    if (devices > 1) {
        buf_puts(words, state ? ", each alone in its state (VBIOS, ECC mode, clocks)"
                              : ", each alone under its conditions");
    } else {
        buf_printf(words, " depart%s, %s which no other device was measured",
                   runs == 1 ? "s" : "",
                   state ? "in a state (VBIOS, ECC mode, clocks) in"
                         : "under conditions under");
    }
}

static void say_undecided(const struct dissent_row *rows, int count,
                          const struct dissent *d, struct buf *words)
{
    int devices = d->devices - d->agreeing - d->dissenters;
    int64_t runs = 0, depart = 0, lone_runs;
    int lone = lone_devices(rows, count, &lone_runs);
    bool majority = true;

    for (int i = 0; i < count; i++) {
        majority = majority && rows[i].majority;
        runs += rows[i].runs;
        depart += departing(&rows[i]);
    }
    if (lone) {
        say_lone(rows, count, lone, lone_runs, words);
        devices = lone;
    } else if (majority) {
        buf_printf(words, "%" PRId64 " of %" PRId64 " runs depart%s, on ", depart, runs,
                   depart == 1 ? "s" : "");
        put_names(rows, count, DISSENT_DEPARTS, false, devices, words);
    } else {
        buf_printf(words, "no digest has a majority of %d devices in %" PRId64 " runs",
                   d->devices, runs);
    }
    buf_printf(words, "; whether the workload varies or %s wrong cannot be told yet",
               (lone || majority) && devices == 1 ? "this device computes"
                                                  : "devices compute");
}

void dissent_words(const struct dissent_row *rows, int count, struct dissent *d)
{
    struct buf words = BUF_INIT;

    if (d->dissenters > 0) {
        say_dissenters(rows, count, d, &words);
    } else if (d->state == DISSENT_DISAGREE || d->state == DISSENT_BOTH) {
        say_camps(rows, count, d, &words);
    } else if (d->state == DISSENT_UNDECIDED) {
        say_undecided(rows, count, d, &words);
    }
    if (words.length) {
        copy_text(d->words, sizeof d->words, words.data);
    }
    buf_release(&words);
}
