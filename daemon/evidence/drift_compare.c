/* What of a case's two sides can be compared: conditions in common, and what the devices
 * that are not named agree on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/drift.h"
#include "daemon/jobs/options.h"

/* The rows of both sides under the same conditions, by device. */
struct stratum {
    const char *options;
    const struct drift_devices *of_from, *of_to;
    const struct dissent_row **from, **to; /* borrowed from sorted lists */
    int from_count, to_count;
};

static int by_options(const void *a, const void *b)
{
    const struct dissent_row *x = a;
    const struct dissent_row *y = b;
    int order = strcmp(x->options, y->options);

    order = order ? order : strcmp(x->device, y->device);
    return order ? order : dissent_order_conditions(x, y);
}

static bool is_same(const struct dissent_row *a, const struct dissent_row *b)
{
    return strcmp(a->options, b->options) == 0 && strcmp(a->device, b->device) == 0;
}

/* What a device showed in one state and in another: a side is one. */
static void merge(struct dissent_row *row, const struct dissent_row *other)
{
    row->runs += other->runs;
    row->iterations += other->iterations;
    row->varied = row->varied || other->varied || strcmp(row->mode, other->mode) != 0;
    row->mark = other->mark > row->mark ? other->mark : row->mark;
}

/* A side, with one row for each device and options. */
static struct drift_devices sorted(const struct drift_devices *devices)
{
    struct dissent_row *rows = xcalloc((size_t)devices->count + 1, sizeof *rows);
    struct drift_devices side = *devices;
    int count = 0;

    for (int i = 0; i < devices->count; i++) {
        rows[i] = devices->rows[i];
    }
    qsort(rows, (size_t)devices->count, sizeof *rows, by_options);
    for (int i = 0; i < devices->count; i++) {
        if (count > 0 && is_same(&rows[count - 1], &rows[i])) {
            merge(&rows[count - 1], &rows[i]);
        } else {
            rows[count++] = rows[i];
        }
    }
    side.rows = rows;
    side.count = count;
    return side;
}

static const struct dissent_row **rows_of(const struct drift_devices *devices)
{
    const struct dissent_row **rows =
        xcalloc((size_t)devices->count + 1, sizeof(const struct dissent_row *));

    for (int i = 0; i < devices->count; i++) {
        rows[i] = &devices->rows[i];
    }
    return rows;
}

static int end_of(const struct dissent_row *const *rows, int count, int begin)
{
    int end = begin;

    while (end < count && strcmp(rows[end]->options, rows[begin]->options) == 0) {
        end++;
    }
    return end;
}

static bool is_named(const struct dissent_row *row)
{
    return row->mark == DISSENT_DISSENTS;
}

static int by_name(const void *name, const void *suspect)
{
    return strcmp(name, *(const char *const *)suspect);
}

static bool is_suspect(const struct drift_devices *devices, const char *device)
{
    return devices->suspect_count > 0 &&
           bsearch(device, devices->suspects, (size_t)devices->suspect_count,
                   sizeof(const char *), by_name);
}

/* Those of a side on whom it is to depend: not those that are named in this case, nor,
 * where the others are at odds, those that are named in another one. */
struct believed {
    const char *digest; /* their one; NULL: there is none */
    int64_t runs;
    bool without_suspects;
};

static bool is_left_out(const struct drift_devices *devices,
                        const struct dissent_row *row, bool without_suspects)
{
    return is_named(row) || (without_suspects && is_suspect(devices, row->device));
}

static struct believed believe(const struct drift_devices *devices,
                               const struct dissent_row *const *rows, int count,
                               bool without_suspects)
{
    struct believed a = { .without_suspects = without_suspects };
    bool one = true;

    for (int i = 0; i < count; i++) {
        const char *mode = rows[i]->mode;

        if (!is_left_out(devices, rows[i], without_suspects)) {
            one = one && !rows[i]->varied && (!a.digest || strcmp(a.digest, mode) == 0);
            a.digest = mode;
            a.runs += rows[i]->runs;
        }
    }
    a.digest = one && a.digest && *a.digest ? a.digest : NULL;
    return a;
}

static struct believed believed_of(const struct drift_devices *devices,
                                   const struct dissent_row *const *rows, int count)
{
    struct believed all = believe(devices, rows, count, false);
    struct believed some = all;

    if (!all.digest && devices->suspect_count > 0) {
        some = believe(devices, rows, count, true);
    }
    return some.digest ? some : all;
}

/* What matters most first: what happened under any conditions, then plain ones. */
enum { TURNED, CHANGED, NOTHING };

static int weigh(const struct drift_case *c, const struct stratum *s)
{
    const struct believed from = believed_of(s->of_from, s->from, s->from_count);
    const struct believed to = believed_of(s->of_to, s->to, s->to_count);
    bool known =
        c->to.verdict == VERDICT_VARIES || c->to.verdict == VERDICT_DEVICES_DISAGREE;

    if (!from.digest || from.runs < VERDICT_MIN_RUNS) {
        return NOTHING;
    }
    if (!to.digest) {
        return known ? TURNED : NOTHING;
    }
    return to.runs >= VERDICT_MIN_RUNS && strcmp(from.digest, to.digest) != 0 ? CHANGED
                                                                              : NOTHING;
}

static bool is_better(const struct drift_case *c, const struct stratum *a,
                      const struct stratum *b)
{
    int left = weigh(c, a);
    int right = weigh(c, b);

    if ((left == NOTHING) != (right == NOTHING)) {
        return right == NOTHING;
    }
    return left < right && *b->options != '\0';
}

/* The sides of a case, by conditions and device; plain conditions come first. */
struct sides {
    const struct drift_devices *from, *to;
    const struct dissent_row **before, **after;
};

/* False: they have no conditions in common. */
static bool choose(const struct drift_case *c, const struct sides *sides,
                   struct stratum *ret_stratum)
{
    int from_count = sides->from->count;
    int to_count = sides->to->count;
    bool found = false;

    for (int f = 0, t = 0; f < from_count && t < to_count;) {
        const struct dissent_row **from = sides->before + f;
        const struct dissent_row **to = sides->after + t;
        int order = strcmp((*from)->options, (*to)->options);
        struct stratum s = { (*from)->options,
                             sides->from,
                             sides->to,
                             from,
                             to,
                             end_of(sides->before, from_count, f) - f,
                             end_of(sides->after, to_count, t) - t };

        if (order == 0 && (!found || is_better(c, &s, ret_stratum))) {
            *ret_stratum = s;
            found = true;
        }
        f += order <= 0 ? s.from_count : 0;
        t += order >= 0 ? s.to_count : 0;
    }
    return found;
}

/* Words. */

struct names {
    char *text;
    int count;
};

enum { NAMED_MAX = 3 };

static void add_name(struct names *names, const char *name)
{
    size_t length = strlen(names->text);

    if (names->count < NAMED_MAX) {
        snprintf(names->text + length, DRIFT_NAMES_SIZE - length, "%s%.40s",
                 length ? ", " : "", name);
    }
    names->count++;
}

static void end_names(struct names *names)
{
    size_t length = strlen(names->text);

    if (names->count > NAMED_MAX) {
        snprintf(names->text + length, DRIFT_NAMES_SIZE - length, " and %d more",
                 names->count - NAMED_MAX);
    }
}

static void add_conditions(struct buf *buf, const char *options)
{
    struct run_options read;

    if (*options && run_options_read(options, &read)) {
        run_options_words(&read, buf);
    } else {
        buf_puts(buf, *options ? options : "plain");
    }
}

static void conditions_words(const char *options, char ret_text[DRIFT_CONDITIONS_SIZE])
{
    struct buf buf = BUF_INIT;

    if (*options) {
        add_conditions(&buf, options);
        copy_text(ret_text, DRIFT_CONDITIONS_SIZE, buf.data);
    } else {
        ret_text[0] = '\0';
    }
    buf_release(&buf);
}

/* "plain", "plain or contention 2" */
static void all_conditions(const struct dissent_row *const *rows, int count,
                           struct drift_side *side)
{
    struct buf buf = BUF_INIT;

    for (int i = 0; i < count; i = end_of(rows, count, i)) {
        buf_puts(&buf, i ? " or " : "");
        add_conditions(&buf, rows[i]->options);
    }
    copy_text(side->conditions, sizeof side->conditions, count ? buf.data : "");
    buf_release(&buf);
    side->first = (struct run_options){ .probes = 0 };
    if (count && *rows[0]->options) {
        run_options_read(rows[0]->options, &side->first);
    }
}

/* The sides. */

static void fill_side(struct drift_side *side, const struct drift_devices *devices,
                      const struct dissent_row *const *rows, int count)
{
    struct names dissenting = { side->dissenting, 0 };
    struct names suspects = { side->suspects, 0 };
    const struct believed a = believed_of(devices, rows, count);

    copy_text(side->digest, sizeof side->digest, a.digest ? a.digest : "");
    side->compared_runs = a.runs;
    for (int i = 0; i < count; i++) {
        if (is_left_out(devices, rows[i], a.without_suspects)) {
            add_name(&dissenting, rows[i]->device);
        }
        if (is_named(rows[i]) || is_suspect(devices, rows[i]->device)) {
            add_name(&suspects, rows[i]->device);
        }
    }
    side->dissenters = dissenting.count;
    side->devices = count - dissenting.count;
    side->suspects_only = count > 0 && suspects.count == count;
    end_names(&dissenting);
    end_names(&suspects);
}

static bool is_told(const struct dissent_row *row)
{
    return !row->varied && *row->mode && row->runs >= VERDICT_MIN_RUNS;
}

static void compare_devices(struct drift_case *c, const struct stratum *s,
                            const struct drift_devices *from,
                            const struct drift_devices *to)
{
    struct names changed = { c->changed_names, 0 };
    int f = 0;

    for (int t = 0; t < s->to_count; t++) {
        const struct dissent_row *now = s->to[t];
        const struct dissent_row *then;

        while (f < s->from_count && strcmp(s->from[f]->device, now->device) < 0) {
            f++;
        }
        then = f < s->from_count && !strcmp(s->from[f]->device, now->device) ? s->from[f]
                                                                             : NULL;
        c->newly_dissenting += is_named(now) && !(then && is_named(then));
        if (!then) {
            continue;
        }
        c->common++;
        c->common_agreeing += !is_named(now) && !is_named(then) &&
                              !is_suspect(from, now->device) &&
                              !is_suspect(to, now->device);
        if (is_told(now) && is_told(then)) {
            c->told++;
            if (strcmp(now->mode, then->mode) != 0) {
                add_name(&changed, now->device);
            }
        }
    }
    c->changed = changed.count;
    end_names(&changed);
}

void drift_compare(struct drift_case *c, const struct drift_devices *before,
                   const struct drift_devices *after)
{
    const struct drift_devices from = sorted(before), to = sorted(after);
    const struct sides sides = { &from, &to, rows_of(&from), rows_of(&to) };
    struct stratum s;

    all_conditions(sides.before, from.count, &c->from);
    all_conditions(sides.after, to.count, &c->to);
    if (choose(c, &sides, &s)) {
        conditions_words(s.options, c->conditions);
        fill_side(&c->from, &from, s.from, s.from_count);
        fill_side(&c->to, &to, s.to, s.to_count);
        compare_devices(c, &s, &from, &to);
    } else {
        c->apart = from.count > 0 && to.count > 0;
        /* Of what cannot be compared, each side's own digest is shown, if it has one. */
        fill_side(&c->from, &from, sides.before, from.count);
        fill_side(&c->to, &to, sides.after, to.count);
    }
    free(sides.before);
    free(sides.after);
    free((struct dissent_row *)from.rows);
    free((struct dissent_row *)to.rows);
}
