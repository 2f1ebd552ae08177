#include "daemon/peers/peer_page.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/request.h"
#include "daemon/peers/peer_checks.h"
#include "daemon/process/wire.h"
#include "daemon/run/run_event.h"
#include "workloads/instruments/digest.h"

/* As little as our own agents may say: sums over runs have to stay numbers. */
#define NS_MAX     (INT64_C(7) * 24 * 3600 * 1000000000)
#define AMOUNT_MAX (INT64_C(1) << 53)

/* Members, as texts, which the page owns. */

struct said_page {
    const char *service, *reprod, *since, *cursor, *waits_for;
    int64_t format, folded, of_peers;
    bool more;
    const json_t *items;
};

struct said_check {
    const char *state, *digest, *words;
    int64_t share_ppm;
};

struct said_digest {
    const char *digest;
    int64_t iterations, first_iteration;
};

struct said_run {
    const char *job, *workload, *variant, *size, *dtype, *seed, *item_seed, *kind,
        *no_control, *subject, *subject_name, *stack, *options, *host, *boot_id, *device,
        *backend, *model, *device_state, *device_state_since, *outcome, *cause,
        *circumstances, *input_digest, *weight_sum, *loss, *algorithm, *claim,
        *device_read_back;
    const json_t *attributes, *environment, *digests, *check;
    int64_t item, asked, job_created_ms, version, intent_ms, started_ms, finished_ms,
        iterations, min_ns, median_ns, max_ns, elements, bytes_hashed, wall_ns,
        max_rss_kb;
    bool challenge, control, unseeded;
};

#define PAGE(member) IN_AT(struct said_page, member)
#define RUN(member)  IN_AT(struct said_run, member)
#define NAME(member, room)                                                               \
    {                                                                                    \
#member, IN_TEXT, RUN(member), .least = 1, .most = (room)-1                      \
    }
#define TEXT(member, room)                                                               \
    {                                                                                    \
#member, IN_TEXT, RUN(member), .most = (room)-1                                  \
    }
#define SEEN(member, room, check_)                                                       \
    {                                                                                    \
#member, IN_TEXT, RUN(member), .most = (room)-1, .check = check_                 \
    }
#define COUNT(member, most_)                                                             \
    {                                                                                    \
#member, IN_INT, RUN(member), .least = 0, .most = (most_)                        \
    }
/* 0 is no time. */
#define TIME(member)                                                                     \
    {                                                                                    \
#member, IN_INT, RUN(member), .least = 1, .most = INT64_MAX                      \
    }
#define IS(member)                                                                       \
    {                                                                                    \
#member, IN_BOOL, RUN(member)                                                    \
    }

/* Of any format. */
static const struct in_member format_members[] = {
    { "format", IN_INT, PAGE(format), .least = 1, .most = INT32_MAX },
};
static const struct in_shape format_shape = IN_SHAPE(format_members, NULL);

static const struct in_member page_members[] = {
    { "reprod", IN_TEXT, PAGE(reprod), .least = 1, .most = PEER_VERSION_SIZE - 1 },
    { "service", IN_HEX, PAGE(service), .most = PEER_SERVICE_SIZE - 1 },
    { "since", IN_TEXT, PAGE(since), .check = peer_check_id },
    { "cursor", IN_TEXT, PAGE(cursor), .check = peer_check_id },
    { "more", IN_BOOL, PAGE(more) },
    { "waits_for", IN_TEXT, PAGE(waits_for), IN_NULLABLE, .check = peer_check_id },
    { "folded", IN_INT, PAGE(folded), .least = 0, .most = INT64_MAX },
    { "of_peers", IN_INT, PAGE(of_peers), .least = 0, .most = PEER_PAGE_RUNS },
    { "items", IN_ARRAY, PAGE(items), .most = PEER_PAGE_RUNS },
};
static const struct in_shape page_shape = IN_SHAPE(page_members, NULL);

static const struct in_member check_members[] = {
    { "state", IN_TEXT, IN_AT(struct said_check, state), .check = peer_check_check },
    { "digest", IN_TEXT, IN_AT(struct said_check, digest), .check = peer_check_digest },
    { "share_ppm", IN_INT, IN_AT(struct said_check, share_ppm) },
    { "words", IN_TEXT, IN_AT(struct said_check, words), .most = CASE_TITLE_SIZE - 1 },
};
static const struct in_shape check_shape = IN_SHAPE(check_members, NULL);

static const struct in_member digest_members[] = {
    { "digest", IN_HEX, IN_AT(struct said_digest, digest), .most = DIGEST_TEXT_SIZE - 1 },
    { "iterations", IN_INT, IN_AT(struct said_digest, iterations), .least = 1,
      .most = JOB_ITERATIONS_MAX },
    { "first_iteration", IN_INT, IN_AT(struct said_digest, first_iteration), .least = 0,
      .most = JOB_ITERATIONS_MAX },
};
static const struct in_shape digest_shape = IN_SHAPE(digest_members, NULL);
static const struct in_member a_digest = { .kind = IN_OBJECT, .shape = &digest_shape };
static const struct in_member a_fact = { .kind = IN_JSON, .check = peer_check_fact };

static const struct in_member run_members[] = {
    { "job", IN_TEXT, RUN(job), .check = peer_check_id },
    { "item", IN_INT, RUN(item), .least = 0, .most = INT32_MAX },
    TIME(job_created_ms),
    { "asked", IN_INT, RUN(asked), .least = 1, .most = JOB_ITERATIONS_MAX },
    NAME(workload, CASE_NAME_SIZE),
    { "version", IN_INT, RUN(version), .least = 1, .most = INT32_MAX },
    NAME(variant, CASE_NAME_SIZE),
    NAME(size, CASE_NAME_SIZE),
    NAME(dtype, CASE_NAME_SIZE),
    SEEN(seed, 21, peer_check_seed),
    SEEN(item_seed, 21, peer_check_seed),
    IS(challenge),
    IS(control),
    { "kind", IN_TEXT, RUN(kind), .names = control_kinds },
    TEXT(no_control, CASE_TITLE_SIZE),
    IS(unseeded),
    SEEN(subject, CASE_NAME_SIZE, peer_check_subject),
    TEXT(subject_name, SUBJECT_NAME_SIZE),
    { "stack", IN_TEXT, RUN(stack), .least = 1, .most = CASE_NAME_SIZE - 1,
      .check = peer_check_stack },
    SEEN(options, RUN_OPTIONS_SIZE, peer_check_options),
    NAME(host, CASE_TITLE_SIZE),
    TEXT(boot_id, CASE_NAME_SIZE),
    NAME(device, CASE_TITLE_SIZE),
    NAME(backend, CASE_NAME_SIZE),
    TEXT(model, CASE_TITLE_SIZE),
    { "attributes", IN_OBJECT, RUN(attributes) },
    SEEN(device_state, PEER_STATE_SIZE, peer_check_state),
    SEEN(device_state_since, ID_SIZE, peer_check_since),
    TIME(intent_ms),
    COUNT(started_ms, INT64_MAX),
    TIME(finished_ms),
    SEEN(outcome, CASE_NAME_SIZE, peer_check_outcome),
    TEXT(cause, CASE_TITLE_SIZE * 2),
    SEEN(circumstances, RUN_CIRCUMSTANCES_SIZE, peer_check_circumstances),
    { "environment", IN_OBJECT, RUN(environment), IN_NULLABLE, .least = 1,
      .item = &a_fact, .check = peer_check_environment },
    COUNT(iterations, AMOUNT_MAX),
    { "digests", IN_ARRAY, RUN(digests), .most = JOB_ITERATIONS_MAX, .item = &a_digest },
    SEEN(input_digest, DIGEST_TEXT_SIZE, peer_check_digest),
    SEEN(weight_sum, BITS_TEXT_SIZE, peer_check_bits),
    SEEN(loss, BITS_TEXT_SIZE, peer_check_bits),
    TEXT(algorithm, CASE_TITLE_SIZE),
    TEXT(claim, CASE_NAME_SIZE),
    COUNT(min_ns, NS_MAX),
    COUNT(median_ns, NS_MAX),
    COUNT(max_ns, NS_MAX),
    COUNT(elements, AMOUNT_MAX),
    COUNT(bytes_hashed, AMOUNT_MAX),
    TEXT(device_read_back, CASE_TITLE_SIZE),
    COUNT(wall_ns, NS_MAX),
    COUNT(max_rss_kb, AMOUNT_MAX),
    { "check", IN_OBJECT, RUN(check), IN_NULLABLE, .shape = &check_shape },
};
static const struct in_shape run_shape = IN_SHAPE(run_members, NULL);

/* A run */

#define TAKE(to, text) copy_text(to, sizeof(to), text)

static void take_case(const struct said_run *said, struct peer_run *run)
{
    struct case_key *key = &run->run.key;

    TAKE(key->workload, said->workload);
    TAKE(key->variant, said->variant);
    TAKE(key->size, said->size);
    TAKE(key->dtype, said->dtype);
    key->version = (int)said->version;
    key->seed = strtoull(said->seed, NULL, 10);
    run->item_seed = strtoull(said->item_seed, NULL, 10);
    run->run.is_challenge = said->challenge;
    run->is_control = said->control;
    run->unseeded = said->unseeded;
    TAKE(run->kind, said->kind);
    TAKE(run->no_control, said->no_control);
    TAKE(run->options, said->options);
    run->asked = said->asked;
    run->job_created_ms = said->job_created_ms;
    subject_parse(said->subject, &run->run.subject);
    TAKE(run->run.subject_name, said->subject_name);
}

static void take_device(const struct said_run *said, struct peer_run *run)
{
    TAKE(run->run.device, said->device);
    TAKE(run->run.stack, said->stack);
    TAKE(run->run.device_read_back, said->device_read_back);
    TAKE(run->device.id, said->device);
    TAKE(run->device.host, said->host);
    TAKE(run->device.backend, said->backend);
    TAKE(run->device.model, said->model);
    TAKE(run->boot_id, said->boot_id);
    run->attributes = json_dumps(said->attributes, JSON_COMPACT | JSON_SORT_KEYS);
    TAKE(run->state, said->device_state);
    TAKE(run->state_since, said->device_state_since);
}

static void take_environment(const json_t *said, struct peer_run *run)
{
    if (said) {
        run->environment = run_environment_canonical(said);
        run->environment_title = run_environment_title(said);
        digest_hex(digest_bytes(run->environment, strlen(run->environment)),
                   run->run.environment);
    }
}

static void take_check(const json_t *json, struct run_check *check)
{
    struct said_check said = { 0 };

    if (json) { /* it was checked with its run */
        in_read(&check_shape, json, &said, NULL, NULL);
        check->state = check_state_parse(said.state);
        check->share_ppm = said.share_ppm;
        TAKE(check->digest, said.digest);
        TAKE(check->words, said.words);
    }
}

/* What only a completed run shows (daemon/run/run_judge.h). */
static void take_results(const struct said_run *said, struct peer_run *run)
{
    struct run_record *r = &run->run;
    size_t i;
    json_t *json;

    run->digests = xcalloc(json_array_size(said->digests) + 1, sizeof *run->digests);
    json_array_foreach((json_t *)said->digests, i, json)
    {
        struct run_digest *digest = &run->digests[run->digest_count++];
        struct said_digest one = { 0 };

        in_read(&digest_shape, json, &one, NULL, NULL);
        TAKE(digest->digest, one.digest);
        digest->iterations = one.iterations;
        digest->first_iteration = one.first_iteration;
    }
    TAKE(r->digest, run->digest_count ? run->digests[0].digest : "");
    r->distinct_digests = run->digest_count;
    TAKE(r->weight_sum, said->weight_sum);
    TAKE(r->loss, said->loss);
    r->min_ns = said->min_ns;
    r->median_ns = said->median_ns;
    r->max_ns = said->max_ns;
    r->elements = said->elements;
    r->bytes_hashed = said->bytes_hashed;
}

static void take_run(const struct said_run *said, struct peer_run *run)
{
    struct run_record *r = &run->run;

    TAKE(r->job, said->job);
    r->item = (int)said->item;
    take_case(said, run);
    take_device(said, run);
    take_environment(said->environment, run);
    take_check(said->check, &r->check);
    r->finished = true;
    outcome_parse(said->outcome, &r->outcome);
    TAKE(r->cause, said->cause);
    TAKE(r->circumstances, said->circumstances);
    r->intent_ms = said->intent_ms;
    r->started_ms = said->started_ms;
    r->finished_ms = said->finished_ms;
    r->iterations = said->iterations;
    TAKE(r->input_digest, said->input_digest);
    TAKE(r->algorithm, said->algorithm);
    TAKE(r->claim, said->claim);
    r->wall_ns = said->wall_ns;
    r->max_rss_kb = said->max_rss_kb;
    if (r->outcome == OUTCOME_COMPLETED) {
        take_results(said, run);
    } else if (r->check.state != CHECK_NONE && r->check.state != CHECK_CUT_OFF) {
        r->check = (struct run_check){ .state = CHECK_ASKED };
    }
}

/* What holds of any run. */
static bool is_sound(const struct said_run *said, struct peer_run *run)
{
    const struct run_record *r = &run->run;

    if (r->is_challenge == (r->key.seed == run->item_seed)) {
        peer_run_refuse(run, PEER_MALFORMED,
                        r->is_challenge ? "a challenge with the seed of its item"
                                        : "another seed than its item's");
    } else if ((r->subject == SUBJECT_MODEL) != !r->subject_name[0]) {
        peer_run_refuse(run, PEER_MALFORMED, "a subject without its name");
    } else if (r->outcome != OUTCOME_COMPLETED && !r->cause[0]) {
        peer_run_refuse(run, PEER_MALFORMED, "%s without a cause",
                        outcome_name(r->outcome));
    } else if (run->environment && strcmp(in_text_or_empty(said->environment, "backend"),
                                          said->backend) != 0) {
        peer_run_refuse(run, PEER_MALFORMED, "its environment is of another backend");
    } else if (r->finished_ms < r->intent_ms) {
        peer_run_refuse(run, PEER_MALFORMED, "it ended before it began");
    } else if (strcmp(r->job, r->id) >= 0) {
        /* Our own next ids would be behind that of a job of a time to come. */
        peer_run_refuse(run, PEER_MALFORMED, "it began before its job was there");
    }
    return run->refusal == PEER_TAKEN;
}

static void read_run(const json_t *json, const char *peer, struct peer_run *run)
{
    struct said_run said = { 0 };
    struct err err;

    if (json_is_true(json_object_get(json, "damaged"))) {
        peer_run_refuse(run, PEER_DAMAGED,
                        "its service says that it is not what was stored there");
        return;
    }
    if (in_read_wire(&run_shape, json, &said, &err) != ERR_OK) {
        peer_run_refuse(run, PEER_MALFORMED, "%.200s", err.message);
        return;
    }
    take_run(&said, run);
    if (is_sound(&said, run) &&
        (run->run.outcome != OUTCOME_COMPLETED || peer_run_prove(run))) {
        peer_run_qualify(run, peer);
    }
}

/* The page */

static enum err_code take_page(const struct said_page *said, const char *since,
                               struct peer_page *page, struct err *err)
{
    TAKE(page->service, said->service);
    TAKE(page->reprod, said->reprod);
    TAKE(page->since, said->since);
    TAKE(page->cursor, said->cursor);
    TAKE(page->waits_for, said->waits_for ? said->waits_for : "");
    page->more = said->more;
    page->folded = said->folded;
    page->of_peers = said->of_peers;
    if (strcmp(page->since, since) != 0) {
        return err_set(err, ERR_PROTOCOL, "it answers of runs since %s, asked since %s",
                       page->since, since);
    }
    if (strcmp(page->cursor, since) < 0 ||
        (page->more && strcmp(page->cursor, since) == 0)) {
        return err_set(err, ERR_PROTOCOL, "its cursor goes back");
    }
    return ERR_OK;
}

/* The ids are those of the span that the page is of, in order. */
static enum err_code read_items(const json_t *items, const char *peer,
                                struct peer_page *page, struct err *err)
{
    const char *last = page->since;
    size_t i;
    json_t *json;

    page->runs = xcalloc(json_array_size(items) + 1, sizeof *page->runs);
    json_array_foreach((json_t *)items, i, json)
    {
        struct peer_run *run = &page->runs[i];
        const char *id = in_text_or_empty(json, "id");

        if (!id_valid(id)) {
            return err_set(err, ERR_PROTOCOL, "/items/%zu has no id", i);
        }
        if (strcmp(id, last) <= 0 || strcmp(id, page->cursor) > 0) {
            return err_set(err, ERR_PROTOCOL, "run %s is out of order", id);
        }
        TAKE(run->run.id, id);
        page->count++;
        read_run(json, peer, run);
        last = run->run.id;
    }
    return ERR_OK;
}

/* What is of a later time would never grow old, and would have later ids than ours. */
static bool is_to_come(const struct peer_run *run, int64_t now_ms)
{
    char now[ID_SIZE];

    id_first(now_ms + 1, now);
    return strcmp(run->run.id, now) >= 0 || run->run.finished_ms > now_ms ||
           run->run.started_ms > now_ms || run->job_created_ms > now_ms;
}

/* No two clocks agree to the millisecond: the page ends before what is to come.  What it
 * counts is of all of its span, and so waits for the whole. */
static enum err_code end_before(struct peer_page *page, int first, struct err *err)
{
    const struct peer_run *run = &page->runs[first];

    if (page->folded > 0) {
        return err_set(err, ERR_BUSY, "run %s is of a time that is still to come",
                       run->run.id);
    }
    page->of_peers = 0;
    page->more = false;
    page->cut = true;
    TAKE(page->cursor, first ? page->runs[first - 1].run.id : page->since);
    TAKE(page->waits_for, run->run.id);
    for (int i = first; i < page->count; i++) {
        peer_run_release(&page->runs[i]);
    }
    page->count = first;
    return ERR_OK;
}

static enum err_code wait_for_clock(struct peer_page *page, int64_t now_ms,
                                    struct err *err)
{
    char limit[ID_SIZE];

    id_first(now_ms + PEER_AHEAD_MS + 1, limit);
    if (strcmp(page->cursor, limit) >= 0) {
        return err_set(err, ERR_BUSY, "run %s is of a time that is still to come",
                       page->cursor);
    }
    for (int i = 0; i < page->count; i++) {
        if (is_to_come(&page->runs[i], now_ms + PEER_AHEAD_MS)) {
            return err_set(err, ERR_BUSY, "run %s is of a time that is still to come",
                           page->runs[i].run.id);
        }
    }
    for (int i = 0; i < page->count; i++) {
        if (is_to_come(&page->runs[i], now_ms)) {
            return end_before(page, i, err);
        }
    }
    return ERR_OK;
}

static enum err_code read_page(const json_t *json, const char *peer, const char *since,
                               int64_t now_ms, struct peer_page *page, struct err *err)
{
    struct said_page said = { 0 };

    if (in_read_wire(&format_shape, json, &said, err) != ERR_OK) {
        return err->code;
    }
    if (said.format != PEER_FORMAT) {
        return err_set(err, ERR_UNSUPPORTED,
                       "it hands out runs in format %lld, and this reprod reads %d",
                       (long long)said.format, PEER_FORMAT);
    }
    if (in_read_wire(&page_shape, json, &said, err) != ERR_OK ||
        take_page(&said, since, page, err) != ERR_OK ||
        read_items(said.items, peer, page, err) != ERR_OK) {
        return err->code;
    }
    return wait_for_clock(page, now_ms, err);
}

enum err_code peer_page_read(const char *text, size_t length, const char *peer,
                             const char *since, int64_t now_ms,
                             struct peer_page *ret_page, struct err *err)
{
    json_t *json = wire_parse(text, length, err);

    enum err_code code = ERR_PROTOCOL;

    *ret_page = (struct peer_page){ .count = 0 };
    if (json) {
        code = read_page(json, peer, since, now_ms, ret_page, err);
    }
    json_decref(json);
    return code;
}
