#include "daemon/engine/slurm_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/slurm_launch.h"

enum {
    STALE_PERIODS = 3, /* without an answer: then nodes are not known any more */
    STALE_LEAST_MS = 5000,
    ASKED_MS = 16000,  /* after which a cause is not waited for */
    UNSTARTED_MOST = 2 /* listings in which a job has no agent here */
};

/* Ids begin anew some day, and where a controller lost its state; its clock may be set
 * back, so that what ended begins later than what goes on. */
static bool is_later(const struct slurm_job *job, const struct slurm_job *other)
{
    bool ended = slurm_job_phase(job) == SLURM_ENDED;

    if (other->id < 0 || ended != (slurm_job_phase(other) == SLURM_ENDED)) {
        return other->id < 0 || !ended;
    }
    return job->submitted != other->submitted ? job->submitted > other->submitted
                                              : job->id > other->id;
}

/* Hosts by their names and nodes. */

static int compare_names(const void *a, const void *b)
{
    const struct slurm_host *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

static int compare_nodes(const void *a, const void *b)
{
    const struct slurm_host *const *left = a, *const *right = b;

    return strcmp((*left)->node, (*right)->node);
}

/* The first of BY_NODE that is not before NODE: several hosts may share a node. */
static int find_node(const struct slurm_hosts *s, const char *node)
{
    int low = 0, high = s->count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (strcmp(s->by_node[middle]->node, node) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct slurm_host *find_host(const struct slurm_hosts *s, const char *name)
{
    struct slurm_host key = { .name = (char *)name };
    const struct slurm_host *key_at = &key;
    struct slurm_host **found =
        bsearch(&key_at, s->by_name, (size_t)s->count, sizeof(void *), compare_names);

    return found ? *found : NULL;
}

static bool has_agent(const struct slurm_hosts *s, const struct slurm_host *host)
{
    return s->hooks.has_agent(s->hooks.arg, host->name);
}

/* What is told of hosts. */

static void hold(const struct slurm_hosts *s, struct slurm_host *host, const char *cause,
                 bool leave)
{
    if (strcmp(host->held, cause) != 0) {
        copy_text(host->held, sizeof host->held, cause);
        s->hooks.hold(s->hooks.arg, host->name, cause[0] ? cause : NULL,
                      cause[0] && leave);
    }
}

static bool is_stale(const struct slurm_hosts *s, int64_t now)
{
    int64_t limit = s->period_ms * STALE_PERIODS;

    if (!s->trouble[0] && s->pause_ms > s->period_ms) {
        limit += 2 * s->pause_ms;
    }
    return !s->nodes_ms ||
           now - s->nodes_ms > (limit > STALE_LEAST_MS ? limit : STALE_LEAST_MS);
}

static void hold_host(const struct slurm_hosts *s, struct slurm_host *host, int64_t now)
{
    char cause[SLURM_CAUSE_SIZE] = "";

    if (!s->jobs_known || is_stale(s, now)) {
        if (!has_agent(s, host)) {
            snprintf(cause, sizeof cause, "slurm: %s",
                     s->trouble[0] ? s->trouble : "it was not asked yet");
            hold(s, host, cause, false);
        }
    } else if (host->orphan >= 0) {
        snprintf(cause, sizeof cause, "slurm: job %lld of an agent before is cancelled",
                 (long long)host->orphan);
        hold(s, host, cause, false);
    } else if (!host->known) {
        snprintf(cause, sizeof cause, "slurm: there is no node '%.100s'", host->node);
        hold(s, host, cause, true);
    } else {
        slurm_node_held(&host->facts, host->reservation, cause);
        hold(s, host, cause, true);
    }
}

static void hold_hosts(const struct slurm_hosts *s, int64_t now)
{
    for (int i = 0; i < s->count; i++) {
        hold_host(s, &s->hosts[i], now);
    }
}

static void tell_waiting(const struct slurm_hosts *s, struct slurm_host *host)
{
    char words[SLURM_CAUSE_SIZE] = "";

    if (has_agent(s, host) && host->job.id >= 0 &&
        slurm_job_phase(&host->job) == SLURM_WAITS) {
        slurm_job_waits(&host->job, words);
    }
    if (strcmp(host->waits, words) != 0) {
        copy_text(host->waits, sizeof host->waits, words);
        s->hooks.waits(s->hooks.arg, host->name, words[0] ? words : NULL);
    }
}

/* Its latest job is of an agent that is gone. */
static void set_gone(struct slurm_host *host)
{
    if (host->job.id >= 0) {
        host->gone = host->job.id;
        host->gone_submitted = host->job.submitted;
    }
}

static bool is_gone(const struct slurm_host *host, int64_t id, int64_t submitted)
{
    return host->gone == id && host->gone_submitted == submitted;
}

static void answer(const struct slurm_hosts *s, struct slurm_host *host,
                   const char *cause)
{
    host->asked_ms = 0;
    host->waits[0] = '\0';
    set_gone(host);
    s->hooks.ended(s->hooks.arg, host->name, cause[0] ? cause : NULL);
}

/* BEGAN: the listing did. */
static void maybe_answer(const struct slurm_hosts *s, struct slurm_host *host,
                         int64_t began)
{
    char cause[SLURM_CAUSE_SIZE] = "";
    bool has_job = host->job.id >= 0 && !is_gone(host, host->job.id, host->job.submitted);

    if (!host->asked_ms || host->asked_ms > began) {
        return;
    }
    if (!has_job) {
        answer(s, host, "");
    } else if (slurm_job_phase(&host->job) == SLURM_ENDED) {
        slurm_job_cause(&host->job, cause);
        answer(s, host, cause);
    }
}

/* What is listed. */

void slurm_hosts_list_nodes(struct slurm_hosts *s)
{
    for (int i = 0; i < s->count; i++) {
        s->hosts[i].seen = false;
    }
}

void slurm_hosts_node(struct slurm_hosts *s, const struct slurm_node *node)
{
    for (int i = find_node(s, node->name);
         i < s->count && strcmp(s->by_node[i]->node, node->name) == 0; i++) {
        s->by_node[i]->facts = *node;
        s->by_node[i]->seen = true;
    }
}

void slurm_hosts_nodes_listed(struct slurm_hosts *s, int64_t now_ms, int64_t wall_ms)
{
    for (int i = 0; i < s->count; i++) {
        s->hosts[i].known = s->hosts[i].seen;
    }
    s->nodes_ms = now_ms;
    s->heard_ms = wall_ms;
    s->trouble[0] = '\0';
    s->hooks.heard(s->hooks.arg);
}

void slurm_hosts_list_jobs(struct slurm_hosts *s)
{
    s->job_count = 0;
    for (int i = 0; i < s->count; i++) {
        s->hosts[i].listed.id = s->hosts[i].listed.submitted = -1;
    }
}

void slurm_hosts_job(struct slurm_hosts *s, const struct slurm_job *job)
{
    enum slurm_phase phase = slurm_job_phase(job);
    size_t prefix = strlen(slurm_comment);
    struct slurm_host *host = NULL;

    if (job->id < 0 || strcmp(job->name, s->job_name) != 0 || job->user != s->user) {
        return;
    }
    if (strncmp(job->comment, slurm_comment, prefix) == 0) {
        host = find_host(s, job->comment + prefix);
    } else if (s->jobs_known) {
        return; /* its site rewrites comments: it may be of any agent that is here */
    }
    if (phase == SLURM_WAITS || phase == SLURM_RUNS) {
        s->jobs = xgrow(s->jobs, s->job_count, sizeof *s->jobs);
        s->jobs[s->job_count++] = (struct slurm_own){ .id = job->id,
                                                      .submitted = job->submitted,
                                                      .host = host };
    }
    if (host && is_later(job, &host->listed)) {
        host->listed = *job;
    }
}

/* Whether JOB is of no agent that is here. */
static bool is_orphan(const struct slurm_hosts *s, const struct slurm_own *job)
{
    const struct slurm_host *host = job->host;

    return !host || !s->jobs_known || is_gone(host, job->id, job->submitted) ||
           host->job.id != job->id || host->unstarted >= UNSTARTED_MOST;
}

static void list_orphans(struct slurm_hosts *s)
{
    s->orphan_count = 0;
    for (int i = 0; i < s->count; i++) {
        s->hosts[i].orphan = -1;
        s->hosts[i].unstarted = has_agent(s, &s->hosts[i]) || s->hosts[i].asked_ms
                                    ? 0
                                    : s->hosts[i].unstarted + 1;
    }
    for (int i = 0; i < s->job_count; i++) {
        const struct slurm_own *job = &s->jobs[i];

        if (!is_orphan(s, job)) {
            continue;
        }
        if (job->host) {
            job->host->orphan = job->id;
        }
        s->orphans = xgrow(s->orphans, s->orphan_count, sizeof *s->orphans);
        s->orphans[s->orphan_count++] = job->id;
    }
}

/* All that were there before the first agent are of agents that are gone. */
static void begin_anew(struct slurm_hosts *s)
{
    for (int i = 0; i < s->count; i++) {
        set_gone(&s->hosts[i]);
    }
    if (s->orphan_count > 0) {
        log_info("slurm: %d job%s of the service before %s cancelled", s->orphan_count,
                 s->orphan_count == 1 ? "" : "s", s->orphan_count == 1 ? "is" : "are");
    }
    s->jobs_known = true;
}

void slurm_hosts_jobs_listed(struct slurm_hosts *s, int64_t began_ms, int64_t now_ms)
{
    for (int i = 0; i < s->count; i++) {
        s->hosts[i].job = s->hosts[i].listed;
    }
    list_orphans(s);
    if (!s->jobs_known) {
        begin_anew(s);
    }
    for (int i = 0; i < s->count; i++) {
        tell_waiting(s, &s->hosts[i]);
        maybe_answer(s, &s->hosts[i], began_ms);
    }
    hold_hosts(s, now_ms);
    s->hooks.heard(s->hooks.arg);
}

void slurm_hosts_failed(struct slurm_hosts *s, const char *cause, int64_t now_ms)
{
    if (strcmp(s->trouble, cause) != 0) {
        log_warning("slurm: %s", cause);
    }
    copy_text(s->trouble, sizeof s->trouble, cause);
    hold_hosts(s, now_ms);
    s->hooks.heard(s->hooks.arg);
}

bool slurm_hosts_ask(struct slurm_hosts *s, const char *name, int64_t now_ms)
{
    struct slurm_host *host = find_host(s, name);

    if (host) {
        host->asked_ms = now_ms;
    }
    return host != NULL;
}

void slurm_hosts_started(struct slurm_hosts *s, const char *name)
{
    struct slurm_host *host = find_host(s, name);

    if (host) {
        set_gone(host);
        host->asked_ms = 0;
    }
}

void slurm_hosts_let_go(struct slurm_hosts *s, const char *name)
{
    struct slurm_host *host = find_host(s, name);

    if (host) {
        set_gone(host);
        host->waits[0] = '\0';
    }
}

bool slurm_hosts_asked(struct slurm_hosts *s, int64_t now_ms)
{
    bool asked = false;

    for (int i = 0; i < s->count; i++) {
        if (s->hosts[i].asked_ms && now_ms - s->hosts[i].asked_ms > ASKED_MS) {
            answer(s, &s->hosts[i], "");
        }
        asked = asked || s->hosts[i].asked_ms;
    }
    return asked;
}

void slurm_hosts_look(struct slurm_hosts *s, int64_t now_ms)
{
    hold_hosts(s, now_ms);
}

/* Their life. */

void slurm_hosts_init(struct slurm_hosts *s, const json_t *json, const char *job_name,
                      int64_t user, int64_t period_ms, const struct slurm_hooks *hooks)
{
    const size_t most = json_array_size(json) + 1;
    json_t *each;
    size_t i;

    *s = (struct slurm_hosts){ .hooks = *hooks,
                               .job_name = xstrdup(job_name),
                               .user = user,
                               .period_ms = period_ms,
                               .hosts = xcalloc(most, sizeof *s->hosts),
                               .by_name = xcalloc(most, sizeof(void *)),
                               .by_node = xcalloc(most, sizeof(void *)) };
    json_array_foreach((json_t *)json, i, each)
    {
        struct slurm_host *host = &s->hosts[s->count];

        if (slurm_host_is(each)) {
            host->name = xstrdup(in_text_or_empty(each, "name"));
            host->node = xstrdup(slurm_host_node(each));
            host->reservation = slurm_host_has_reservation(each);
            host->job.id = host->gone = host->orphan = -1;
            s->by_name[s->count] = s->by_node[s->count] = host;
            s->count++;
        }
    }
    qsort(s->by_name, (size_t)s->count, sizeof(void *), compare_names);
    qsort(s->by_node, (size_t)s->count, sizeof(void *), compare_nodes);
    hold_hosts(s, 0);
}

void slurm_hosts_release(struct slurm_hosts *s)
{
    for (int i = 0; i < s->count; i++) {
        free(s->hosts[i].name);
        free(s->hosts[i].node);
    }
    free(s->hosts);
    free(s->by_name);
    free(s->by_node);
    free(s->jobs);
    free(s->orphans);
    free(s->job_name);
}

/* For the API. */

static json_t *split(const char *features)
{
    json_t *list = json_array();

    while (*features) {
        size_t length = strcspn(features, ",");

        json_array_append_new(list, json_stringn(features, length));
        features += length + (features[length] == ',');
    }
    return list;
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *job_json(const struct slurm_host *host)
{
    return host->job.id >= 0 && slurm_job_phase(&host->job) != SLURM_ENDED
               ? json_pack("{s:I,s:s,s:o}", "id", (json_int_t)host->job.id, "state",
                           host->job.state, "reason", text_or_null(host->job.reason))
               : json_null();
}

json_t *slurm_hosts_json(const struct slurm_hosts *s, const char *name)
{
    const struct slurm_host *host = find_host(s, name);
    char heard[CLOCK_RFC3339_SIZE] = "";

    if (!host) {
        return NULL;
    }
    if (s->heard_ms) {
        clock_rfc3339(s->heard_ms, heard);
    }
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "engine", "slurm", "node",
                     host->node, "state", text_or_null(host->facts.state), "reason",
                     text_or_null(host->facts.reason), "features",
                     split(host->facts.features), "gres", text_or_null(host->facts.gres),
                     "job", job_json(host), "heard_at", text_or_null(heard));
}
