/* Drift for a terminal: what changed, as release notes say it. */
#include "api/render/drift.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/text.h"

enum { PAGE_WIDTH = 100, NAME_WIDTH = 8, CASE_INDENT = 6 };

static void fact(struct buf *buf, const char *name, const char *text)
{
    text_pad(buf, name, NAME_WIDTH);
    text_wrap(buf, text, PAGE_WIDTH, NAME_WIDTH);
}

static void end_text(struct buf *buf, const char *name, const struct drift_end *end)
{
    const struct environment *e = &end->environment;
    char when[CLOCK_RFC3339_SIZE];
    char line[CASE_TITLE_SIZE + DIGEST_TEXT_SIZE + CLOCK_RFC3339_SIZE + 32];

    clock_rfc3339(e->last_seen_ms, when);
    snprintf(line, sizeof line, "%s (%.8s), last used %.10s", e->title, e->id, when);
    fact(buf, name, line);
}

/* Of a kind: cases that are listed, and groups that are counted. */
enum { VERDICTS_LISTED = 20, CASES_LISTED = 200, GROUPS_COUNTED = 20 };

/* What matters less is counted, not listed. */
static bool is_listed(enum drift_kind kind, const struct drift_counts *counts)
{
    return kind <= DRIFT_DISAPPEARED &&
           (kind != DRIFT_VERDICT || counts->kinds[kind] <= VERDICTS_LISTED);
}

static void case_text(const struct drift_case *c, struct buf *buf)
{
    char line[DRIFT_REASON_SIZE + 4 * CASE_NAME_SIZE + 96];

    snprintf(line, sizeof line, "%s  %s %s seed %" PRIu64 "%s: %s", c->key.variant,
             c->key.size, c->key.dtype, c->key.seed, c->is_control ? " (control)" : "",
             c->reason);
    text_pad(buf, "", CASE_INDENT - 2);
    text_wrap(buf, line, PAGE_WIDTH, CASE_INDENT);
}

static const char *whose(const struct drift_case *c)
{
    return c->subject == SUBJECT_MODEL ? "our models" : c->subject_name;
}

enum { HEAD_SIZE = CASE_NAME_SIZE + SUBJECT_NAME_SIZE + 2 * DRIFT_ALGORITHM_SIZE + 64 };

/* Of what is counted alone, the algorithms are not shown. */
static bool is_like(const struct drift_case *a, const struct drift_case *b, bool listed)
{
    return drift_same_group(a, b) ||
           (!listed && a->kind == b->kind && a->subject == b->subject &&
            strcmp(a->key.workload, b->key.workload) == 0 &&
            strcmp(a->subject_name, b->subject_name) == 0);
}

/* What is shown of a kind so far, and what is not. */
struct shown {
    char line[HEAD_SIZE]; /* of the group before, which is not repeated */
    int cases, groups;
    int more_cases, more_groups;
};

static int group_text(const struct drift *drift, int first, bool listed,
                      struct shown *shown, struct buf *buf)
{
    const struct drift_case *head = &drift->cases[first];
    char line[HEAD_SIZE];
    bool changed = head->algorithm_changed && listed;
    char number[48] = "";
    int end = first;

    while (end < drift->case_count && is_like(head, &drift->cases[end], listed)) {
        end++;
    }
    if (listed ? shown->cases >= CASES_LISTED : shown->groups >= GROUPS_COUNTED) {
        shown->more_groups++;
        shown->more_cases += end - first;
        return end;
    }
    shown->groups++;
    if (!listed) {
        snprintf(number, sizeof number, ": %d case%s", end - first,
                 end - first == 1 ? "" : "s");
    }
    snprintf(line, sizeof line, "%s (%s)%s%s%s%s%s", head->key.workload, whose(head),
             changed ? ", " : "", changed ? head->from.algorithm : "",
             changed ? " → " : "", changed ? head->to.algorithm : "", number);
    if (strcmp(line, shown->line) != 0) {
        text_pad(buf, "", 2);
        text_wrap(buf, line, PAGE_WIDTH, 4);
    }
    memcpy(shown->line, line, sizeof line);
    for (int i = first; i < end && listed; i++) {
        if (shown->cases < CASES_LISTED) {
            case_text(&drift->cases[i], buf);
            shown->cases++;
        } else {
            shown->more_cases++;
        }
    }
    return end;
}

static void more_text(struct shown *shown, bool listed, struct buf *buf)
{
    if (shown->more_cases > 0 && listed) {
        buf_printf(buf, "  and %d more cases: /v1/drift.csv has all\n",
                   shown->more_cases);
    } else if (shown->more_cases > 0) {
        buf_printf(buf, "  and %d more cases of %d more workloads\n", shown->more_cases,
                   shown->more_groups);
    }
    *shown = (struct shown){ .cases = 0 };
}

static void kind_text(enum drift_kind kind, int count, struct buf *buf)
{
    char words[64];

    snprintf(words, sizeof words, "%s", drift_kind_words(kind));
    words[0] = (char)toupper((unsigned char)words[0]);
    buf_printf(buf, "\n%s (%d)\n", words, count);
}

static void jobs_text(const struct drift *drift, struct buf *buf)
{
    json_t *jobs = drift_jobs(drift);
    size_t i;
    json_t *job;

    if (json_array_size(jobs) > 0) {
        buf_puts(buf, "\nWhat would tell the rest, each line for POST /v1/jobs:\n");
    }
    json_array_foreach(jobs, i, job)
    {
        char *text = json_dumps(job, JSON_COMPACT);

        buf_printf(buf, "  %s\n", text);
        free(text);
    }
    json_decref(jobs);
}

void drift_text(const struct drift *drift, struct buf *buf)
{
    struct drift_counts counts = drift_count(drift->cases, drift->case_count);
    char headline[DRIFT_HEADLINE_SIZE];
    char *title = drift_title(drift);
    enum drift_kind last = DRIFT_KIND_COUNT;
    struct shown shown = { .cases = 0 };

    text_wrap(buf, title, PAGE_WIDTH, 0);
    if (drift->unmeasured) {
        free(title);
        return;
    }
    drift_headline(drift->cases, drift->case_count, headline);
    text_wrap(buf, headline, PAGE_WIDTH, 0);
    buf_putc(buf, '\n');
    end_text(buf, "Before", &drift->from);
    end_text(buf, "Now", &drift->to);
    for (int i = 0; i < drift->case_count;) {
        enum drift_kind kind = drift->cases[i].kind;

        if (kind != last) {
            more_text(&shown, last < DRIFT_KIND_COUNT && is_listed(last, &counts), buf);
            kind_text(kind, counts.kinds[kind], buf);
            last = kind;
        }
        i = group_text(drift, i, is_listed(kind, &counts), &shown, buf);
    }
    more_text(&shown, last < DRIFT_KIND_COUNT && is_listed(last, &counts), buf);
    jobs_text(drift, buf);
    free(title);
}
