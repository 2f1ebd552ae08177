/* How fast results become durable: bench-ingest store|whole|raw FOLDER RUNS [CELLS
 * [DEVICES]], and how fast old ones are folded: bench-ingest fold FOLDER RUNS, after
 * `store` or `whole`
 *
 *   store  runs_finish on the writer thread, WINDOW results outstanding
 *   whole  a run's three writes: intent, started, result
 *   raw    SQLite alone: one INSERT a run with the same texts and numbers, no index,
 * WINDOW rows a commit, the same durability
 *
 * Prints {"runs":…,"seconds":…,"cpu_seconds":…}.  FOLDER is empty, and holds the database
 * afterwards: CELLS cells (32) of DEVICES (1), every other one a control that varies. */
#include <inttypes.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/jobs.h"
#include "db/runs.h"
#include "db/store.h"
#include "db/upkeep/retention.h"

enum { WINDOW = 512, VARIANTS = 2, CELLS_DEFAULT = 32 };

#define ENVIRONMENT                                                                      \
    "{\"architecture\":\"x86_64\",\"backend\":\"cpu\",\"libc\":\"glibc 2.36\","          \
    "\"model\":\"AMD EPYC\",\"openmp\":\"libgomp.so.1.0.0 (OpenMP 201511)\","            \
    "\"threads\":2,\"vector_isa\":\"avx2 fma\","                                         \
    "\"worker_build\":\"e08393d4ba4c417e0bf914957c2b8f540232b2b9\"}"
#define LIBRARIES                                                                        \
    "[{\"path\":\"/lib/x86_64-linux-gnu/libm.so.6\","                                    \
    "\"build_id\":\"d6e6f9e3af1243eed9bf5efd366dd015a9f22c13\"},"                        \
    "{\"path\":\"/lib/x86_64-linux-gnu/libc.so.6\","                                     \
    "\"build_id\":\"58254ca972028402bc40624f81388d85ec95f70d\"}]"
#define EVENT                                                                            \
    "{\"id\":\"01R00000000000000000000000\",\"job\":\"01J00000000000000000000000\","     \
    "\"workload\":\"workload_00\",\"variant\":\"unordered\","                            \
    "\"outcome\":\"completed\",\"cell\":1}"

/* Of which step of which run a write is. */
struct step {
    struct bench *bench;
    int run;
    store_fn fn;
};

/* Nanoseconds. */
struct cost {
    int64_t wall, cpu;
};

struct bench {
    struct store *store;
    int runs, cells, devices, next, outstanding;
    store_fn first; /* step of every run */
    struct step *steps;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void make_id(char kind, int n, char ret_id[ID_SIZE])
{
    snprintf(ret_id, ID_SIZE, "01%c%023d", kind, n);
}

static void name_device(int n, char *ret_name, size_t size)
{
    snprintf(ret_name, size, "cpu:host-%04d", n);
}

/* Items are cell by cell, device by device. */
static void fill_run(int n, int cells, int devices, struct run_record *run,
                     struct run_digest *ret_digest)
{
    bool is_control = n % VARIANTS == 0;
    int result = is_control ? n / cells % 7 : 0;

    *run = (struct run_record){ .outcome = OUTCOME_COMPLETED,
                                .item = n % (cells * devices),
                                .intent_ms = 1000 + n,
                                .started_ms = 2000 + n,
                                .finished_ms = 3000 + n,
                                .pid = 1000 + n,
                                .process_start = n,
                                .iterations = 10,
                                .distinct_digests = 1,
                                .min_ns = 1000000 + n,
                                .median_ns = 1100000 + n % 4096,
                                .max_ns = 1300000 + n,
                                .elements = 4608,
                                .bytes_hashed = 552960,
                                .wall_ns = 20000000,
                                .max_rss_kb = 14000 };
    make_id('R', n, run->id);
    snprintf(run->digest, sizeof run->digest, "%032x", result);
    snprintf(run->input_digest, sizeof run->input_digest, "%032x", n % cells / VARIANTS);
    snprintf(run->environment, sizeof run->environment, "%032x", 1);
    snprintf(run->weight_sum, sizeof run->weight_sum, "%016x", result);
    snprintf(run->loss, sizeof run->loss, "%016x", result);
    snprintf(run->algorithm, sizeof run->algorithm, "in order, fixed tree of images");
    name_device(n / cells % devices, run->device, sizeof run->device);
    name_device(n / cells % devices, run->device_read_back, sizeof run->device_read_back);
    /* As workers do: the first of each cell compare what they computed. */
    run->check.state = CHECK_KNOWN;
    if (n < cells || (is_control && n < 2 * cells)) {
        run->check.state = CHECK_PASSED;
        memcpy(run->check.digest, run->digest, sizeof run->check.digest);
    }
    *ret_digest = (struct run_digest){ .iterations = 10 };
    memcpy(ret_digest->digest, run->digest, sizeof ret_digest->digest);
}

static enum err_code finish(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = arg;
    struct run_record run;
    struct run_digest digest;
    struct run_effect effect;
    struct run_result result = { .run = &run,
                                 .digests = &digest,
                                 .digest_count = 1,
                                 .environment_json = ENVIRONMENT,
                                 .environment_title = "cpu AMD EPYC 2 threads",
                                 .libraries_json = LIBRARIES };

    fill_run(step->run, step->bench->cells, step->bench->devices, &run, &digest);
    return runs_finish(tx, &result, &effect, err);
}

static enum err_code start(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = arg;
    char id[ID_SIZE];

    make_id('R', step->run, id);
    return runs_started(tx, id, 1000 + step->run, step->run, "boot", 2000 + step->run,
                        err);
}

static enum err_code begin(struct tx *tx, void *arg, struct err *err)
{
    const struct step *step = arg;
    const struct bench *bench = step->bench;
    struct run_intent intent = { .item = step->run % (bench->cells * bench->devices),
                                 .intent_ms = 1000 + step->run };

    make_id('R', step->run, intent.id);
    make_id('J', 0, intent.job);
    return runs_begin(tx, &intent, err);
}

static enum err_code begin_all(struct tx *tx, void *arg, struct err *err)
{
    struct bench *bench = arg;
    enum err_code code = ERR_OK;

    for (int i = 0; i < bench->runs && code == ERR_OK; i++) {
        code = begin(tx, &bench->steps[i], err);
    }
    return code;
}

static enum err_code insert_job(struct tx *tx, void *arg, struct err *err)
{
    const struct bench *bench = arg;
    const int count = bench->cells * bench->devices;
    struct job_item *items = xcalloc((size_t)count, sizeof *items);
    static char request[] = "{}";
    struct job job = { .iterations = 10,
                       .timeout_ms = 60000,
                       .created_ms = 1,
                       .request = request,
                       .items = items,
                       .item_count = count };
    char existing[ID_SIZE];
    enum err_code code;

    make_id('J', 0, job.id);
    for (int i = 0; i < count; i++) {
        struct job_item *item = &items[i];

        *item = (struct job_item){ .seq = i,
                                   .key = { .version = 1, .seed = 1 },
                                   .runs_wanted = bench->runs / count + 1,
                                   .is_control = i % VARIANTS == 0 };
        snprintf(item->key.workload, sizeof item->key.workload, "workload_%05d",
                 i % bench->cells / VARIANTS);
        snprintf(item->key.variant, sizeof item->key.variant, "%s",
                 item->is_control ? "unordered" : "ordered");
        snprintf(item->key.size, sizeof item->key.size, "small");
        snprintf(item->key.dtype, sizeof item->key.dtype, "float32");
        name_device(i / bench->cells, item->device, sizeof item->device);
        snprintf(item->stack, sizeof item->stack, "cpu");
        job.runs_total += item->runs_wanted;
    }
    code = jobs_insert(tx, &job, NULL, existing, err);
    free(items);
    return code;
}

static void submit(struct step *step);

static void fill_window(struct bench *bench)
{
    while (bench->next < bench->runs && bench->outstanding < WINDOW) {
        struct step *step = &bench->steps[bench->next++];

        step->fn = bench->first;
        submit(step);
    }
}

static void stored(void *arg, const struct err *result)
{
    struct step *step = arg;
    struct bench *bench = step->bench;

    if (result->code != ERR_OK) {
        fail("write", result->message);
    }
    bench->outstanding--;
    if (step->fn != finish) {
        step->fn = step->fn == begin ? start : finish;
        submit(step);
        return;
    }
    fill_window(bench);
}

static void submit(struct step *step)
{
    step->bench->outstanding++;
    store_write(step->bench->store, step->fn, step, stored);
}

/* Processor time of this process, in nanoseconds. */
static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct cost since(const struct cost *from)
{
    return (struct cost){ clock_monotonic_ns() - from->wall, cpu_ns() - from->cpu };
}

static struct cost through_the_store(const char *folder, int runs, int cells, int devices,
                                     bool whole)
{
    static const struct store_options options = { .readers = 1 };
    struct bench bench = {
        .runs = runs, .cells = cells, .devices = devices, .first = whole ? begin : finish
    };
    char *path = xasprintf("%s/reprod.db", folder);
    struct err err;
    struct cost from = { 0, 0 };

    bench.steps = xcalloc((size_t)runs, sizeof *bench.steps);
    for (int i = 0; i < runs; i++) {
        bench.steps[i] = (struct step){ .bench = &bench, .run = i };
    }
    if (store_open(path, &options, &bench.store, &err) != ERR_OK ||
        store_write_sync(bench.store, insert_job, &bench, &err) != ERR_OK ||
        (!whole && store_write_sync(bench.store, begin_all, &bench, &err) != ERR_OK)) {
        fail(path, err.message);
    }
    from = since(&from);
    fill_window(&bench);
    while (bench.outstanding > 0) {
        struct pollfd fd = { .fd = store_fd(bench.store), .events = POLLIN };

        poll(&fd, 1, -1);
        store_dispatch(bench.store);
    }
    from = since(&from);
    store_close(bench.store);
    free(bench.steps);
    free(path);
    return from;
}

/* Ten days after the others, so that these are old; and the job is over. */
static enum err_code end_job(struct tx *tx, void *arg, struct err *err)
{
    struct bench *bench = arg;
    struct step step = { .bench = bench, .run = bench->runs };
    const int64_t later_ms = 10LL * 24 * 3600 * 1000;
    struct run_record run;
    struct run_digest digest;
    struct run_effect effect;
    struct run_result result = { .run = &run, .digests = &digest, .digest_count = 1 };
    char job[ID_SIZE];

    fill_run(step.run, bench->cells, bench->devices, &run, &digest);
    run.finished_ms += later_ms;
    result.environment_json = ENVIRONMENT;
    result.environment_title = "cpu AMD EPYC 2 threads";
    make_id('J', 0, job);
    if (begin(tx, &step, err) != ERR_OK ||
        runs_finish(tx, &result, &effect, err) != ERR_OK) {
        return err->code;
    }
    return jobs_cancel(tx, job, run.finished_ms, err);
}

struct folding {
    struct retention retention;
    struct retention_place place;
};

static enum err_code fold(struct tx *tx, void *arg, struct err *err)
{
    struct folding *f = arg;

    return retention_fold(tx, &f->retention, INT64_MAX / 2, &f->place, err);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Prints what a slice took, in milliseconds. */
static struct cost fold_all(const char *folder, int runs)
{
    static const struct store_options options = { .readers = 1 };
    struct bench bench = { .runs = runs, .cells = CELLS_DEFAULT, .devices = 1 };
    struct folding f = { .retention = { .days = 1, .runs = 100, .at_once = 200 } };
    int64_t *slices = xcalloc((size_t)runs, sizeof *slices);
    char *path = xasprintf("%s/reprod.db", folder);
    struct cost from = { 0, 0 };
    struct err err;
    int count = 0;

    if (store_open(path, &options, &bench.store, &err) != ERR_OK ||
        store_write_sync(bench.store, end_job, &bench, &err) != ERR_OK) {
        fail(path, err.message);
    }
    from = since(&from);
    while (!f.place.finished && count < runs) {
        struct cost slice = { 0, 0 };

        slice = since(&slice);
        if (store_write_sync(bench.store, fold, &f, &err) != ERR_OK) {
            fail(path, err.message);
        }
        slices[count++] = since(&slice).wall;
    }
    from = since(&from);
    qsort(slices, (size_t)count, sizeof *slices, by_time);
    fprintf(stderr,
            "%" PRId64 " runs folded into %" PRId64
            " summaries in %d slices; a slice: "
            "median %.1f ms, 99 %% within %.1f ms, longest %.1f ms\n",
            f.place.folded, f.place.summaries, count, (double)slices[count / 2] / 1e6,
            (double)slices[(size_t)count * 99 / 100] / 1e6,
            (double)slices[count - 1] / 1e6);
    store_close(bench.store);
    free(slices);
    free(path);
    return from;
}

static void execute(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail(sql, sqlite3_errmsg(db));
    }
}

static void insert_raw(sqlite3 *db, sqlite3_stmt *insert, const struct run_record *run)
{
    const char *const texts[] = {
        run->id,         run->device, run->digest,    run->input_digest,
        run->weight_sum, run->loss,   run->algorithm, run->device_read_back,
        "boot",          "completed", EVENT
    };
    const int64_t numbers[] = { run->intent_ms,    run->started_ms,    run->finished_ms,
                                run->pid,          run->process_start, run->min_ns,
                                run->median_ns,    run->max_ns,        run->elements,
                                run->bytes_hashed, run->wall_ns,       run->max_rss_kb };
    int at = 0;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sqlite3_bind_text(insert, ++at, texts[i], -1, SQLITE_STATIC);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sqlite3_bind_int64(insert, ++at, numbers[i]);
    }
    if (sqlite3_step(insert) != SQLITE_DONE) {
        fail("insert", sqlite3_errmsg(db));
    }
    sqlite3_reset(insert);
}

static struct cost raw(const char *folder, int runs)
{
    char *path = xasprintf("%s/raw.db", folder);
    sqlite3_stmt *insert;
    sqlite3 *db;
    struct run_record run;
    struct run_digest digest;
    struct cost from = { 0, 0 };

    if (sqlite3_open(path, &db) != SQLITE_OK) {
        fail(path, sqlite3_errmsg(db));
    }
    execute(db,
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE TABLE run (a TEXT PRIMARY KEY, b, c, d, e, f, g, h, i, j, k, l, m,"
            " n, o, p, q, r, s, t, u, v, w) WITHOUT ROWID");
    if (sqlite3_prepare_v2(db,
                           "INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                           "?,?,?,?,?,?,?)",
                           -1, &insert, NULL) != SQLITE_OK) {
        fail("insert", sqlite3_errmsg(db));
    }
    from = since(&from);
    for (int i = 0; i < runs; i++) {
        if (i % WINDOW == 0) {
            execute(db, i ? "COMMIT; BEGIN IMMEDIATE" : "BEGIN IMMEDIATE");
        }
        fill_run(i, CELLS_DEFAULT, 1, &run, &digest);
        insert_raw(db, insert, &run);
    }
    execute(db, "COMMIT");
    from = since(&from);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    free(path);
    return from;
}

int main(int argc, char **argv)
{
    bool complete = argc >= 4 && argc <= 6;
    const char *kind = complete ? argv[1] : "";
    int runs = complete ? (int)strtol(argv[3], NULL, 10) : 0;
    int cells = argc >= 5 ? (int)strtol(argv[4], NULL, 10) : CELLS_DEFAULT;
    int devices = argc == 6 ? (int)strtol(argv[5], NULL, 10) : 1;
    struct cost cost;

    if (runs < 1 || cells < VARIANTS || devices < 1) {
        fail("usage", "bench-ingest store|whole|raw|fold FOLDER RUNS [CELLS [DEVICES]]");
    }
    cost = strcmp(kind, "raw") == 0    ? raw(argv[2], runs)
           : strcmp(kind, "fold") == 0 ? fold_all(argv[2], runs)
                                       : through_the_store(argv[2], runs, cells, devices,
                                                           strcmp(kind, "whole") == 0);
    printf("{\"runs\":%d,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n", runs,
           (double)cost.wall / 1e9, (double)cost.cpu / 1e9);
    return 0;
}
