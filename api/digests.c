/* GET /v1/jobs/{id}/digests: the sums of weights and the losses that show reproducibility
 * at a glance, a line a run, grouped by case. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "db/jobs.h"
#include "db/runs.h"
#include "db/upkeep/summaries.h"

enum { LINES_MAX = 10000, LINES_PAGE = 1000 };

struct line {
    bool is_challenge; /* then it stands behind the others, and has a seed of its own */
    uint64_t seed;
    char run[ID_SIZE];
    char last_run[ID_SIZE]; /* of a summary: `run` is its first; "" for a run */
    int64_t runs;           /* in it; 1 */
    int item;
    bool finished;
    enum outcome outcome;
    int64_t distinct_digests, median_ns;
    char digest[DIGEST_TEXT_SIZE];
    char weight_sum_bits[BITS_TEXT_SIZE], loss_bits[BITS_TEXT_SIZE];
};

struct table {
    struct job job;
    struct line *lines; /* by item, oldest first */
    int count;
    bool truncated; /* there are more than LINES_MAX runs; the oldest are left out */
};

static void table_free(void *state)
{
    struct table *t = state;

    job_release(&t->job);
    free(t->lines);
    free(t);
}

static void take_run(void *arg, const struct run_record *run)
{
    struct table *t = arg;
    struct line *line;

    t->lines = xgrow(t->lines, t->count, sizeof *t->lines);
    line = &t->lines[t->count++];
    *line = (struct line){ .runs = 1,
                           .is_challenge = run->is_challenge,
                           .seed = run->key.seed,
                           .item = run->item,
                           .finished = run->finished,
                           .outcome = run->outcome,
                           .distinct_digests = run->distinct_digests,
                           .median_ns = run->median_ns };
    copy_text(line->run, sizeof line->run, run->id);
    copy_text(line->digest, sizeof line->digest, run->digest);
    copy_text(line->weight_sum_bits, sizeof line->weight_sum_bits, run->weight_sum);
    copy_text(line->loss_bits, sizeof line->loss_bits, run->loss);
}

/* A summary is a line, too. */
static void take_summary(void *arg, const struct run_summary *summary)
{
    struct table *t = arg;
    struct line *line;

    t->lines = xgrow(t->lines, t->count, sizeof *t->lines);
    line = &t->lines[t->count++];
    *line =
        (struct line){ .runs = summary->runs,
                       .item = summary->item,
                       .finished = true,
                       .outcome = summary->refused ? OUTCOME_INVALID : OUTCOME_COMPLETED,
                       .distinct_digests = 1 };
    copy_text(line->run, sizeof line->run, summary->first_run);
    copy_text(line->last_run, sizeof line->last_run, summary->last_run);
    copy_text(line->digest, sizeof line->digest, summary->digest);
    copy_text(line->weight_sum_bits, sizeof line->weight_sum_bits, summary->weight_sum);
    copy_text(line->loss_bits, sizeof line->loss_bits, summary->loss);
}

static int by_item(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;

    return x->item != y->item ? (x->item > y->item) - (x->item < y->item)
           : x->is_challenge != y->is_challenge ? x->is_challenge - y->is_challenge
                                                : strcmp(x->run, y->run);
}

/* All runs, newest first, as far as there is room; or all challenges. */
static enum err_code read_runs(struct tx *tx, struct table *t, bool challenges,
                               struct err *err)
{
    struct runs_filter filter = { .challenges = challenges };
    int before = -1, first = t->count;

    copy_text(filter.job, sizeof filter.job, t->job.id);
    while (t->count > before && t->count - first < LINES_MAX) {
        char last[ID_SIZE] = "";

        before = t->count;
        copy_text(last, sizeof last, before > first ? t->lines[before - 1].run : "");
        if (runs_list(tx, &filter, last, LINES_PAGE, take_run, t, err) != ERR_OK) {
            return err->code;
        }
    }
    t->truncated |= t->count - first >= LINES_MAX;
    return ERR_OK;
}

static enum err_code read_lines(struct tx *tx, struct table *t, struct err *err)
{
    if (read_runs(tx, t, false, err) != ERR_OK || read_runs(tx, t, true, err) != ERR_OK ||
        summaries_each_of_job(tx, t->job.id, take_summary, t, err) != ERR_OK) {
        return err->code;
    }
    if (t->count > 0) {
        qsort(t->lines, (size_t)t->count, sizeof *t->lines, by_item);
    }
    return ERR_OK;
}

/* What a line shows for its sums, "" where it has none. */
struct sums {
    char weight_sum[DECIMAL_SIZE], loss[DECIMAL_SIZE];
};

static struct sums sums_of(const struct line *line)
{
    struct sums s = { "", "" };

    decimal_from_bits(line->weight_sum_bits, s.weight_sum);
    decimal_from_bits(line->loss_bits, s.loss);
    return s;
}

static const char *outcome_of(const struct line *line)
{
    return line->finished ? outcome_name(line->outcome) : "running";
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Distinct first digests of the completed runs among the lines FIRST … END - 1. */
static int64_t count_digests(const struct line *first, const struct line *end)
{
    const char **digests = xcalloc((size_t)(end - first) + 1, sizeof *digests);
    size_t n = 0;
    int64_t count = 0;

    for (const struct line *l = first; l < end; l++) {
        if (l->finished && l->outcome == OUTCOME_COMPLETED) {
            digests[n++] = l->digest;
        }
    }
    qsort(digests, n, sizeof *digests, by_text);
    for (size_t i = 0; i < n; i++) {
        count += i == 0 || strcmp(digests[i], digests[i - 1]) != 0;
    }
    free(digests);
    return count;
}

/* What is known of the results of the completed runs among the lines FIRST … END - 1: of
 * a run with several, only its first is at hand. */
struct results {
    int64_t runs, completed, digests;
    bool more; /* there may be more digests than these */
};

static struct results count_results(const struct line *first, const struct line *end)
{
    struct results results = { .digests = count_digests(first, end) };

    for (const struct line *l = first; l < end; l++) {
        results.runs += l->runs;
        if (l->finished && l->outcome == OUTCOME_COMPLETED) {
            results.completed += l->runs;
            results.more |= l->distinct_digests > 1;
            if (l->distinct_digests > results.digests) {
                results.digests = l->distinct_digests;
            }
        }
    }
    return results;
}

/* Where the lines of ITEM end that are challenges, or that are not; FIRST begins with
 * them. */
static const struct line *group_end(const struct table *t, const struct line *first,
                                    int item, bool challenges)
{
    const struct line *end = first;

    while (end < t->lines + t->count && end->item == item &&
           end->is_challenge == challenges) {
        end++;
    }
    return end;
}

static void line_json(struct json_out *out, const struct line *line)
{
    out_open(out, NULL, '{');
    out_text(out, "run", line->run);
    if (line->is_challenge) {
        out_format(out, "seed", "%" PRIu64, line->seed);
    }
    out_text(out, "outcome", line->finished ? outcome_name(line->outcome) : NULL);
    out_name(out, "digest", line->digest);
    out_int(out, "distinct_digests", line->distinct_digests);
    sum_json(out, "weight_sum", line->weight_sum_bits);
    sum_json(out, "loss", line->loss_bits);
    out_ms_if(out, "milliseconds", line->median_ns, line->median_ns);
    out_close(out, '}');
}

static void folded_json(struct json_out *out, const struct line *line)
{
    out_open(out, NULL, '{');
    out_int(out, "runs", line->runs);
    out_text(out, "first_run", line->run);
    out_text(out, "last_run", line->last_run);
    out_text(out, "outcome", outcome_name(line->outcome));
    out_text(out, "digest", line->digest);
    sum_json(out, "weight_sum", line->weight_sum_bits);
    sum_json(out, "loss", line->loss_bits);
    out_close(out, '}');
}

/* Either the summaries among the lines FIRST … END - 1, or the others. */
static void lines_json(struct json_out *out, const char *name, const struct line *first,
                       const struct line *end, bool folded)
{
    out_open(out, name, '[');
    for (const struct line *l = first; l < end; l++) {
        if ((l->last_run[0] != '\0') == folded) {
            (folded ? folded_json : line_json)(out, l);
        }
    }
    out_close(out, ']');
}

static void render_json(struct request *r, const struct table *t)
{
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    out_text(&out, "job", t->job.id);
    out_text(&out, "state", job_state_name(t->job.state));
    out_bool(&out, "truncated", t->truncated);
    out_open(&out, "groups", '[');
    for (const struct line *l = t->lines, *end; l < t->lines + t->count;) {
        const struct job_item *item = &t->job.items[l->item];
        char options[RUN_OPTIONS_SIZE];

        end = group_end(t, l, item->seq, false);
        out_open(&out, NULL, '{');
        case_json(&out, &item->key);
        out_text(&out, "device", item->device);
        out_text(&out, "stack", item->stack);
        run_options_write(&item->options, options);
        out_json(&out, "options", options);
        out_int(&out, "distinct_first_digests", count_digests(l, end));
        lines_json(&out, "folded", l, end, true);
        lines_json(&out, "runs", l, end, false);
        l = end;
        end = group_end(t, l, item->seq, true);
        lines_json(&out, "challenges", l, end, false);
        l = end;
        out_close(&out, '}');
    }
    out_close(&out, ']');
    out_close(&out, '}');
    reply_json(r, 200, &out);
}

static void heading(struct buf *buf, const struct job_item *item,
                    const struct results *results)
{
    int64_t runs = results->runs;
    struct buf options = BUF_INIT;
    struct buf line = BUF_INIT;

    buf_printf(&line, "%s %s (%s, %s, seed %" PRIu64, item->key.workload,
               item->key.variant, item->key.size, item->key.dtype, item->key.seed);
    run_options_words(&item->options, &options);
    buf_printf(&line, "%s%s", options.length ? ", " : "",
               options.length ? options.data : "");
    buf_release(&options);
    buf_printf(&line, ") on %s: %" PRId64 " run%s, ", item->device, runs,
               runs == 1 ? "" : "s");
    if (results->completed != runs) {
        buf_printf(&line, "%" PRId64 " completed, ", results->completed);
    }
    buf_printf(&line, "%s%" PRId64 " distinct result%s", results->more ? "at least " : "",
               results->digests, results->digests == 1 ? "" : "s");
    buf_putc(buf, '\n');
    text_line(buf, "%s", line.data);
    buf_release(&line);
}

static void line_text(struct buf *buf, const struct line *line)
{
    enum { SUM_WIDTH = 20 };
    struct sums s = sums_of(line);
    double ms = (double)line->median_ns / 1e6;

    buf_puts(buf, "  ");
    text_pad(buf, s.weight_sum[0] ? s.weight_sum : "-", SUM_WIDTH);
    buf_printf(buf, " | %s", s.loss[0] ? s.loss : "-");
    if (ms >= 1000) {
        buf_printf(buf, " (%.2f s)", ms / 1000);
    } else if (ms > 0) {
        buf_printf(buf, " (%.1f ms)", ms);
    }
    if (line->is_challenge) {
        buf_printf(buf, "  (challenge: seed %" PRIu64 ")", line->seed);
    }
    if (!line->finished || line->outcome != OUTCOME_COMPLETED) {
        buf_printf(buf, "  (%s)", outcome_of(line));
    } else if (line->distinct_digests > 1) {
        buf_printf(buf, "  (%" PRId64 " digests within the run)", line->distinct_digests);
    }
    if (line->last_run[0]) {
        buf_printf(buf, "  (%" PRId64 " old run%s, folded)", line->runs,
                   line->runs == 1 ? "" : "s");
    }
    buf_putc(buf, '\n');
}

static bool has_times(const struct table *t)
{
    for (int i = 0; i < t->count; i++) {
        if (t->lines[i].median_ns > 0) {
            return true;
        }
    }
    return false;
}

static void render_text(struct request *r, const struct table *t)
{
    struct buf buf = BUF_INIT;

    buf_printf(&buf, "Job %s (%s)\n\n", t->job.id, job_state_name(t->job.state));
    buf_printf(&buf, "  SUM OF WEIGHTS       | FINAL LOSS%s\n",
               has_times(t) ? " (time of one computation)" : "");
    buf_puts(&buf, "  ==================== | ====================\n");
    for (const struct line *l = t->lines, *end; l < t->lines + t->count;) {
        const struct job_item *item = &t->job.items[l->item];
        struct results results;

        end = group_end(t, l, item->seq, false);
        results = count_results(l, end);
        heading(&buf, item, &results);
        for (; l < end; l++) {
            line_text(&buf, l);
        }
        for (end = group_end(t, l, item->seq, true); l < end; l++) {
            line_text(&buf, l);
        }
    }
    buf_puts(&buf, t->count == 0 ? "\nno run has started yet\n" : "");
    buf_puts(&buf, t->truncated ? "\n(the newest runs only)\n" : "");
    reply_text(r, &buf);
}

static void line_csv(struct buf *buf, const struct job_item *item,
                     const struct line *line)
{
    struct sums s = sums_of(line);
    const char *const texts[] = {
        item->key.workload,    item->key.variant, item->key.size,
        item->key.dtype,       item->device,      line->run,
        outcome_of(line),      s.weight_sum,      s.loss,
        line->weight_sum_bits, line->loss_bits,   line->digest
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text_csv(buf, texts[i]);
        buf_putc(buf, ',');
    }
    buf_printf(buf, "%" PRIu64 ",%.6f,%" PRId64 "\r\n", item->key.seed,
               (double)line->median_ns / 1e6, line->runs);
}

static void render_csv(struct request *r, const struct table *t)
{
    struct buf buf = BUF_INIT;

    buf_puts(&buf,
             "workload,variant,size,dtype,device,run,outcome,weight_sum,loss,"
             "weight_sum_bits,loss_bits,digest,seed,milliseconds,runs\r\n");
    for (int i = 0; i < t->count; i++) {
        if (!t->lines[i].is_challenge) {
            line_csv(&buf, &t->job.items[t->lines[i].item], &t->lines[i]);
        }
    }
    reply_csv(r, &buf);
}

static enum err_code read_table(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct table *t = r->state;

    if (jobs_get(tx, r->arguments[0], &t->job, err) != ERR_OK ||
        read_lines(tx, t, err) != ERR_OK) {
        return err->code;
    }
    if (r->format == FORMAT_TEXT) {
        render_text(r, t);
    } else if (r->format == FORMAT_CSV) {
        render_csv(r, t);
    } else {
        render_json(r, t);
    }
    return ERR_OK;
}

void digests_get(struct request *r)
{
    struct table *t = xcalloc(1, sizeof *t);

    request_keep(r, t, table_free);
    request_read(r, read_table, NULL);
}
