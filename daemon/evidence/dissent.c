#include "daemon/evidence/dissent.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

const char *dissent_mark_name(enum dissent_mark mark)
{
    static const char *const names[DISSENT_MARKS] = { "agrees", "departs", "dissents" };

    return names[mark];
}

const char *dissent_state_name(enum dissent_state state)
{
    static const char *const names[DISSENT_STATES] = { "none", "varies", "disagree",
                                                       "both", "undecided" };

    return names[state];
}

enum dissent_state dissent_state_parse(const char *name)
{
    for (int i = 0; i < DISSENT_STATES; i++) {
        if (strcmp(name, dissent_state_name((enum dissent_state)i)) == 0) {
            return (enum dissent_state)i;
        }
    }
    return DISSENT_NONE;
}

/* Likelihoods, as natural logarithms. */

static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign); /* lgamma writes a global */
}

static double log_choose(int n, int k)
{
    return log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0);
}

/* b log(b / n), 0 for b = 0. */
static double log_power(double b, double n)
{
    return b > 0 ? b * log(b / n) : 0;
}

/* The largest probability that B of N depart, in this order, whatever the rate. */
static double log_common(int64_t b, int64_t n)
{
    return log_power((double)b, (double)n) + log_power((double)(n - b), (double)n);
}

/* That B of N depart at a rate of which nothing is known: half of the weight on ATOM (all
 * depart, or none does), half on Jeffreys' prior. */
static double log_mixture(int64_t b, int64_t n, bool atom)
{
    double spread = log_gamma((double)b + 0.5) + log_gamma((double)(n - b) + 0.5) -
                    log_gamma((double)n + 1) - log(M_PI);

    return log(0.5 * exp(spread) + (atom ? 0.5 : 0)) > -700
               ? log(0.5 * exp(spread) + (atom ? 0.5 : 0))
               : spread - M_LN2;
}

double dissent_evidence(int64_t departing, int64_t runs, int64_t others_departing,
                        int64_t others_runs, int k, int devices)
{
    int64_t b = departing + others_departing;
    int64_t n = runs + others_runs - 1;
    double weight = -k * M_LN2 - log_choose(devices, k);
    double alternative = log_mixture(departing, runs, departing == runs) +
                         log_mixture(others_departing, others_runs, !others_departing);

    return n < b ? -INFINITY : (weight + alternative - log_common(b, n)) / M_LN10;
}

/* Rows under the same conditions: a stratum. */

struct stratum {
    struct dissent_row *rows;
    int count;
    int strata; /* how many there are */
    bool lone;  /* one device alone was measured under these conditions, others under
                   others */
    /* Those that are not named under any conditions come to. */
    bool varies, disagree, undecided, hosts_differ;
    bool unnamed; /* they disagree, and further runs would tell who dissents */
};

static const char *state_of(const struct dissent_row *row)
{
    return row->state ? row->state : "";
}

int dissent_order_conditions(const struct dissent_row *a, const struct dissent_row *b)
{
    int order = strcmp(a->options, b->options);

    return order ? order : strcmp(state_of(a), state_of(b));
}

static int by_conditions(const void *a, const void *b)
{
    const struct dissent_row *x = a, *y = b;
    int order = dissent_order_conditions(x, y);

    return order ? order : strcmp(x->device, y->device);
}

static int stratum_end(const struct dissent_row *rows, int count, int begin)
{
    int end = begin + 1;

    while (end < count && dissent_order_conditions(&rows[end], &rows[begin]) == 0) {
        end++;
    }
    return end;
}

/* The digest that ROW votes for; NULL: it has none. */
static const char *vote(const struct dissent_row *row)
{
    return row->mode[0] && 2 * row->mode_runs > row->runs ? row->mode : NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of COUNT texts, sorted here, the one that more than half of OF are; else NULL. */
static const char *most_of(const char **texts, int count, int of)
{
    qsort(texts, (size_t)count, sizeof *texts, by_text);
    for (int i = 0, run = 0; i < count; i++) {
        run = i > 0 && strcmp(texts[i], texts[i - 1]) == 0 ? run + 1 : 1;
        if (2 * run > of) {
            return texts[i];
        }
    }
    return NULL;
}

static void find_majority(struct dissent_row *rows, int count)
{
    const char **votes = xcalloc((size_t)count, sizeof *votes);
    const char *majority;
    int cast = 0;

    for (int i = 0; i < count; i++) {
        votes[cast] = vote(&rows[i]);
        cast += votes[cast] != NULL;
    }
    majority = most_of(votes, cast, count);
    free(votes);
    for (int i = 0; i < count; i++) {
        struct dissent_row *row = &rows[i];

        row->majority = majority;
        row->majority_runs = majority && strcmp(row->mode, majority) == 0 ? row->mode_runs
                             : majority && row->varied                    ? -1
                                                                          : 0;
    }
}

void dissent_majorities(struct dissent_row *rows, int count)
{
    if (count > 0) {
        qsort(rows, (size_t)count, sizeof *rows, by_conditions);
    }
    for (int begin = 0; begin < count;) {
        int end = stratum_end(rows, count, begin);

        find_majority(rows + begin, end - begin);
        begin = end;
    }
}

static int64_t departing(const struct dissent_row *row)
{
    return row->runs - row->majority_runs;
}

/* Those that depart most first. */
static int by_departures(const void *a, const void *b)
{
    const struct dissent_row *x = *(struct dissent_row *const *)a;
    const struct dissent_row *y = *(struct dissent_row *const *)b;
    double left = (double)departing(x) * (double)y->runs;
    double right = (double)departing(y) * (double)x->runs;

    return left != right ? (left < right ? 1 : -1) : strcmp(x->device, y->device);
}

/* Hosts have a say where camps follow the lines between them: a camp is whole hosts, and
 * the others are, too. */
struct lines {
    bool follow;
    int inside, outside; /* hosts in the set, and in the rest */
};

struct placed {
    const char *host;
    bool inside;
};

static int by_host(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    return order ? order : (int)x->inside - (int)y->inside;
}

/* The first COUNT of SORTED are the set, the others up to ALL the rest. */
static struct lines lines_of(struct dissent_row **sorted, int count, int all)
{
    struct placed *placed = xcalloc((size_t)all, sizeof *placed);
    struct lines lines = { .follow = true };

    for (int i = 0; i < all; i++) {
        placed[i] = (struct placed){ sorted[i]->host, i < count };
    }
    qsort(placed, (size_t)all, sizeof *placed, by_host);
    for (int i = 0; i < all; i++) {
        bool same = i > 0 && strcmp(placed[i].host, placed[i - 1].host) == 0;

        if (same && placed[i].inside != placed[i - 1].inside) {
            lines.follow = false;
        }
        lines.inside += !same && placed[i].inside;
        lines.outside += !same && !placed[i].inside;
    }
    free(placed);
    return lines;
}

/* Whether the first K of SORTED, which depart most, dissent from the others: each one of
 * them does by itself. */
static bool dissent_from_rest(struct dissent_row **sorted, int k, int count, int strata)
{
    int64_t others_departing = 0, others_runs = 0;

    for (int i = k; i < count; i++) {
        others_departing += departing(sorted[i]);
        others_runs += sorted[i]->runs;
    }
    if (2 * others_departing > others_runs) {
        return false;
    }
    for (int i = k - 1; i >= 0; i--) { /* the weakest first */
        const struct dissent_row *row = sorted[i];
        int64_t b = departing(row);

        if ((others_departing > 0 && b < row->runs) ||
            dissent_evidence(b, row->runs, others_departing, others_runs, k, count) <
                log10(DISSENT_EVIDENCE * strata)) {
            return false;
        }
    }
    return true;
}

/* Names the largest minority whose members all dissent. */
static void name_dissenters(struct stratum *s)
{
    struct dissent_row **sorted = xcalloc((size_t)s->count, sizeof(struct dissent_row *));
    int most = 0;

    for (int i = 0; i < s->count; i++) {
        sorted[i] = &s->rows[i];
        most += departing(sorted[i]) > 0;
    }
    qsort(sorted, (size_t)s->count, sizeof(struct dissent_row *), by_departures);
    if (most > (s->count - 1) / 2) {
        most = (s->count - 1) / 2;
    }
    for (int k = most; k > 0; k--) {
        struct lines lines;

        if (!dissent_from_rest(sorted, k, s->count, s->strata)) {
            continue;
        }
        lines = lines_of(sorted, k, s->count);
        s->disagree = true;
        s->hosts_differ = lines.follow && lines.inside >= lines.outside;
        for (int i = 0; i < k; i++) {
            sorted[i]->mark = s->hosts_differ ? DISSENT_DEPARTS : DISSENT_DISSENTS;
        }
        break;
    }
    free(sorted);
}

static bool has_camp(const struct dissent_row *row)
{
    return !row->varied;
}

static int by_mode(const void *a, const void *b)
{
    return strcmp((*(struct dissent_row *const *)a)->mode,
                  (*(struct dissent_row *const *)b)->mode);
}

/* Whether devices that agree with themselves disagree with each other: each digest's
 * first run only names it; camps have the prior of a Chinese restaurant.  None of S is
 * named. */
static bool camps_differ(const struct stratum *s)
{
    struct dissent_row **sorted = xcalloc((size_t)s->count, sizeof(struct dissent_row *));
    double log_prior, log_null = 0;
    int count = 0, camps = 0;
    int64_t runs = 0;

    for (int i = 0; i < s->count; i++) {
        if (has_camp(&s->rows[i])) {
            sorted[count++] = &s->rows[i];
            runs += s->rows[i].runs;
        }
    }
    qsort(sorted, (size_t)count, sizeof(struct dissent_row *), by_mode);
    for (int i = 0; i < count; i++) {
        camps += i == 0 || by_mode(&sorted[i], &sorted[i - 1]) != 0;
    }
    log_prior = -log_gamma(count + 1.0) - (count < s->count ? s->count : 1) * M_LN2;
    for (int i = 0, size; i < count; i += size) {
        int64_t of_camp = 0;

        for (size = 0; i + size < count && !by_mode(&sorted[i], &sorted[i + size]);
             size++) {
            of_camp += sorted[i + size]->runs;
        }
        log_prior += log_gamma(size);
        log_null += log_power((double)(of_camp - 1), (double)(runs - camps));
    }
    free(sorted);
    return camps > 1 && runs > camps &&
           (log_prior - log_null) / M_LN10 >= log10(DISSENT_EVIDENCE * s->strata);
}

/* Lines between the rows that IS_IN says and the others, of those that are not named. */
static struct lines lines_between(const struct stratum *s,
                                  bool (*is_in)(const struct stratum *s,
                                                const struct dissent_row *row))
{
    struct dissent_row **sorted = xcalloc((size_t)s->count, sizeof(struct dissent_row *));
    int inside = 0, all = 0;
    struct lines lines;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < s->count; i++) {
            if (s->rows[i].mark != DISSENT_DISSENTS &&
                is_in(s, &s->rows[i]) == (pass == 0)) {
                sorted[all++] = &s->rows[i];
                inside += pass == 0;
            }
        }
    }
    lines = lines_of(sorted, inside, all);
    free(sorted);
    return lines;
}

static bool is_departing(const struct stratum *s, const struct dissent_row *row)
{
    (void)s;
    return departing(row) > 0;
}

static bool has_varied(const struct stratum *s, const struct dissent_row *row)
{
    (void)s;
    return row->varied;
}

static bool is_like_first(const struct stratum *s, const struct dissent_row *row)
{
    return strcmp(row->mode, s->rows[0].mode) == 0;
}

/* Whether the camps follow the lines between hosts, and hosts have no majority either. */
static bool do_hosts_differ(const struct stratum *s)
{
    bool majority = s->rows[0].majority;
    struct lines lines = lines_between(s, majority ? is_departing : is_like_first);

    return lines.follow && lines.outside > 0 &&
           (majority ? lines.inside >= lines.outside
                     : lines.inside + lines.outside < s->count);
}

/* More than half of the devices differ with themselves, and of the hosts, too, where
 * those that do are all devices of some hosts. */
static bool does_vary(const struct stratum *s, int varied, int devices)
{
    struct lines lines;

    if (2 * varied <= devices || varied == devices) {
        return 2 * varied > devices;
    }
    lines = lines_between(s, has_varied);
    return !lines.follow || lines.inside > lines.outside;
}

/* What those of a stratum come to that are not named. */
static void settle(struct stratum *s)
{
    const char *first = NULL;
    int devices = 0, varied = 0, digests = 1;

    for (int i = 0; i < s->count; i++) {
        struct dissent_row *row = &s->rows[i];

        if (row->mark == DISSENT_DISSENTS) {
            continue;
        }
        devices++;
        varied += row->varied;
        if (row->varied || (row->majority ? departing(row) > 0 : s->count > 1)) {
            row->mark = DISSENT_DEPARTS;
        }
        digests += first && strcmp(first, row->mode) != 0;
        first = first ? first : row->mode;
    }
    if (varied == 0 && digests == 1) {
        for (int i = 0; i < s->count; i++) {
            struct dissent_row *row = &s->rows[i];

            row->mark = row->mark == DISSENT_DEPARTS ? DISSENT_AGREES : row->mark;
        }
        return;
    }
    s->varies = !s->lone && does_vary(s, varied, devices);
    if (s->varies || s->disagree) {
        return; /* what departs beside a named device is too little to speak of */
    }
    s->disagree = camps_differ(s);
    s->hosts_differ = s->disagree && do_hosts_differ(s);
    s->undecided = !s->disagree;
    s->unnamed = s->disagree && !s->hosts_differ && s->rows[0].majority;
}

static bool is_fewer(const struct dissent_row *row, const struct dissent_row *than)
{
    return !than || row->runs < than->runs;
}

/* Asks for further runs of those that depart, and of as many that agree, as controls:
 * those with the fewest runs, that can still be run so. */
static void want_runs(struct stratum *s)
{
    static const enum dissent_mark marks[] = { DISSENT_DEPARTS, DISSENT_AGREES };

    for (int m = 0; m < 2; m++) {
        for (int n = 0; n < DISSENT_SUSPECTS_MAX; n++) {
            struct dissent_row *best = NULL;

            for (int i = 0; i < s->count; i++) {
                struct dissent_row *row = &s->rows[i];

                if (row->mark == marks[m] && !row->wanted && !row->past &&
                    is_fewer(row, best)) {
                    best = row;
                }
            }
            if (best) {
                best->wanted = true;
            }
        }
    }
}

/* A device is named as a whole, under whatever conditions it was. */
static void spread_names(struct dissent_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count && rows[i].mark == DISSENT_DISSENTS; j++) {
            if (strcmp(rows[i].device, rows[j].device) == 0) {
                rows[j].mark = DISSENT_DISSENTS;
            }
        }
    }
}

/* By device, with the worst mark first. */
static int by_device(const void *a, const void *b)
{
    const struct dissent_row *x = *(const struct dissent_row *const *)a;
    const struct dissent_row *y = *(const struct dissent_row *const *)b;
    int order = strcmp(x->device, y->device);

    return order ? order : (int)y->mark - (int)x->mark;
}

/* Counts the devices, each once, whatever conditions it had. */
static void count_devices(const struct dissent_row *rows, int count, struct dissent *d)
{
    const struct dissent_row **sorted =
        xcalloc((size_t)count + 1, sizeof(struct dissent_row *));
    int marked[DISSENT_MARKS] = { 0 };

    for (int i = 0; i < count; i++) {
        sorted[i] = &rows[i];
    }
    qsort(sorted, (size_t)count, sizeof(struct dissent_row *), by_device);
    for (int i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i]->device, sorted[i - 1]->device) != 0) {
            marked[sorted[i]->mark]++;
            d->devices++;
        }
    }
    free(sorted);
    d->dissenters = marked[DISSENT_DISSENTS];
    d->agreeing = marked[DISSENT_AGREES];
}

static void sum_agreeing(const struct dissent_row *rows, int count, struct dissent *d)
{
    const char *digest = NULL;
    bool one = true;

    for (int i = 0; i < count; i++) {
        const char *shown = rows[i].majority;

        if (rows[i].mark != DISSENT_DISSENTS) {
            d->agreeing_runs += rows[i].runs;
            d->agreeing_iterations += rows[i].iterations;
            one = one && shown && (!digest || strcmp(digest, shown) == 0);
            digest = shown;
        }
    }
    if (one && digest) {
        copy_text(d->digest, sizeof d->digest, digest);
    }
}

static bool is_one_device(const struct dissent_row *rows, int count)
{
    for (int i = 1; i < count; i++) {
        if (strcmp(rows[i].device, rows[0].device) != 0) {
            return false;
        }
    }
    return true;
}

/* Where one device alone was measured under some conditions and shows there what is not
 * shown under those that most devices were measured under, either may be why. */
static bool lone_ones_depart(struct stratum *strata, int count)
{
    const struct stratum *most = strata;
    bool depart = false;

    for (int i = 1; i < count; i++) {
        most = strata[i].count > most->count ? &strata[i] : most;
    }
    for (int i = 0; i < count; i++) {
        struct dissent_row *row = &strata[i].rows[0];

        if (strata[i].lone && &strata[i] != most &&
            strcmp(row->mode, most->rows[0].mode) != 0) {
            row->mark = DISSENT_DEPARTS;
            depart = true;
        }
    }
    return depart;
}

static void judge_stratum(struct stratum *s, struct dissent *d, bool *ret_varies,
                          bool *ret_disagree, bool *ret_undecided)
{
    settle(s);
    if ((s->undecided && !s->lone) || s->unnamed) {
        want_runs(s);
    }
    *ret_varies |= s->varies;
    *ret_disagree |= s->disagree;
    *ret_undecided |= s->undecided;
    d->hosts_differ |= s->hosts_differ;
}

struct dissent dissent_judge(struct dissent_row *rows, int count)
{
    struct stratum *strata = xcalloc((size_t)count + 1, sizeof *strata);
    struct dissent d = { .state = DISSENT_NONE };
    bool varies = false, disagree = false, undecided = false;
    bool one_device = is_one_device(rows, count);
    int n = 0;

    for (int begin = 0; begin < count; n++) {
        int end = stratum_end(rows, count, begin);

        strata[n] = (struct stratum){ .rows = rows + begin,
                                      .count = end - begin,
                                      .lone = !one_device && end - begin == 1 };
        begin = end;
    }
    for (int i = 0; i < count; i++) {
        rows[i].mark = DISSENT_AGREES;
        rows[i].wanted = false;
    }
    for (int i = 0; i < n; i++) {
        strata[i].strata = n;
        if (strata[i].count >= DISSENT_DEVICES_MIN && strata[i].rows[0].majority) {
            name_dissenters(&strata[i]);
        }
    }
    if (n > 1) {
        spread_names(rows, count);
    }
    for (int i = 0; i < n; i++) {
        judge_stratum(&strata[i], &d, &varies, &disagree, &undecided);
    }
    if (!varies && !disagree && !undecided && n > 1) {
        undecided = lone_ones_depart(strata, n);
    }
    free(strata);
    count_devices(rows, count, &d);
    sum_agreeing(rows, count, &d);
    d.state = disagree && varies ? DISSENT_BOTH
              : disagree         ? DISSENT_DISAGREE
              : varies           ? DISSENT_VARIES
              : undecided        ? DISSENT_UNDECIDED
                                 : DISSENT_NONE;
    dissent_words(rows, count, &d);
    return d;
}
