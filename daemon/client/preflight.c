/* reprod preflight: whether the devices of this machine compute what their equals
 * compute, within a deadline, in one line of JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/client/answers.h"
#include "daemon/client/baseline.h"
#include "daemon/client/client.h"
#include "daemon/client/options.h"
#include "daemon/client/preflight_judge.h"
#include "daemon/client/preflight_measure.h"
#include "daemon/client/preflight_say.h"
#include "daemon/client/preflight_watch.h"

enum { SECONDS = 45, SECONDS_MIN = 10, SECONDS_MAX = 3600, GPUS_MAX = 4096 };
/* For what is behind the measurement: judging, the baseline, the end of the service; and
 * for the end of what does not end by itself. */
enum { JUDGE_MS = 3000, LEAVE_MS = 2500, NODE_SIZE = 256 };

static enum err_code read_number(const char *name, const char *text, int least, int most,
                                 int *number, struct err *err)
{
    char *end;
    long value;

    if (!text) {
        return ERR_OK;
    }
    value = strtol(text, &end, 10);
    if (!text[0] || *end || value < least || value > most) {
        return err_set(err, ERR_INVALID, "%s %.100s: it is a number from %d to %d", name,
                       text, least, most);
    }
    *number = (int)value;
    return ERR_OK;
}

static enum err_code read_asked(int argc, char **argv, struct preflight_asked *asked,
                                struct err *err)
{
    const struct client_option options[] = {
        CLIENT_OPTION("--seconds", &asked->seconds),
        CLIENT_OPTION("--gpus", &asked->gpus),
        CLIENT_OPTION("--workload", &asked->workloads),
        CLIENT_OPTION("--variant", &asked->variants),
        CLIENT_OPTION("--size", &asked->sizes),
        CLIENT_OPTION("--runs", &asked->runs),
        CLIENT_OPTION("--iterations", &asked->iterations),
        CLIENT_OPTION("--server", &asked->url),
        CLIENT_OPTION("--against", &asked->against),
        CLIENT_OPTION("--config", &asked->config),
        CLIENT_OPTION("--node", &asked->node),
        CLIENT_OPTION("--node-condition", &asked->condition),
        CLIENT_OPTION("--node-object", &asked->node_object),
        CLIENT_OPTION("--health-events", &asked->event),
        CLIENT_FLAG("--cpu", &asked->cpu),
        CLIENT_OPTIONS_END
    };

    *asked = (struct preflight_asked){ .seconds_wanted = SECONDS };
    if (client_options_read(argc, argv, options, 0, 0, NULL, err) != ERR_OK ||
        read_number("--seconds", asked->seconds, SECONDS_MIN, SECONDS_MAX,
                    &asked->seconds_wanted, err) != ERR_OK ||
        read_number("--gpus", asked->gpus, 1, GPUS_MAX, &asked->gpus_expected, err) !=
            ERR_OK) {
        return err->code;
    }
    if (asked->url && asked->against) {
        return err_set(err, ERR_INVALID,
                       "give either --server URL or --against FILE, a baseline");
    }
    if (asked->node_object && !asked->condition) {
        return err_set(err, ERR_INVALID, "--node-object is for --node-condition FILE");
    }
    if (asked->against) {
        asked->baseline = baseline_read(asked->against, err);
    } else if (asked->url) {
        server_read(asked->url, &asked->server, err);
    }
    return err->code;
}

/* What was measured, or why nothing was: a new value. */
static json_t *find_out(struct preflight_asked *asked, int64_t begun_ms)
{
    int64_t end_ms = begun_ms + 1000LL * asked->seconds_wanted;
    struct watched watched;
    struct err err = { .code = ERR_OK };

    asked->until_ms = end_ms - LEAVE_MS - JUDGE_MS;
    if (watch_run(preflight_measure, asked, end_ms - LEAVE_MS, &watched, &err) !=
        ERR_OK) {
        copy_text(watched.phase, sizeof watched.phase, err.message);
    }
    if (!watched.report) {
        watched.report = json_pack(
            "{s:s, s:o, s:i, s:[]}", "verdict", preflight_verdict_name(PREFLIGHT_FAILED),
            "cause",
            json_sprintf("%s%s", watched.phase[0] ? watched.phase : "nothing was begun",
                         watched.ended ? "" : ", before the time was over"),
            "gpus", 0, "devices");
    }
    return watched.report;
}

/* VALUE as the file PATH; NULL: there is none. */
static bool write_file(const char *path, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    FILE *file = text ? fopen(path, "we") : NULL;
    bool good = file && fprintf(file, "%s\n", text) > 0;

    good = (file && fclose(file) == 0 && good) ||
           (!value && (unlink(path) == 0 || errno == ENOENT));
    if (!good) {
        text_print(stderr, "reprod: %s: %s", path, strerror(errno));
    }
    free(text);
    json_decref(value);
    return good;
}

static bool write_files(const struct preflight_asked *asked, const json_t *report,
                        const struct preflight_facts *facts)
{
    struct err err = { .code = ERR_OK };
    char *text = asked->node_object ? client_read_file(asked->node_object, &err) : NULL;
    json_t *node = text ? json_loads(text, 0, NULL) : NULL;
    bool good = true;

    if (asked->node_object && !json_is_object(node)) {
        text_print(stderr, "reprod: %s is no object: %s", asked->node_object,
                   err.code != ERR_OK ? err.message : "it is not JSON");
        good = false;
    }
    if (asked->condition) {
        good &= write_file(asked->condition, preflight_condition(report, node, facts));
    }
    if (asked->event) {
        good &= write_file(asked->event, preflight_events(report, facts));
    }
    json_decref(node);
    free(text);
    return good;
}

static double seconds_since(int64_t begun_ms)
{
    return (double)(clock_monotonic_ms() - begun_ms) / 1000.0;
}

int preflight_main(int argc, char **argv)
{
    int64_t begun_ms = clock_monotonic_ms();
    struct err err = { .code = ERR_OK };
    struct preflight_asked asked;
    char node[NODE_SIZE] = "", *line;
    enum preflight_verdict verdict;
    struct preflight_facts facts;
    json_t *report;

    if (read_asked(argc, argv, &asked, &err) != ERR_OK) {
        json_decref(asked.baseline);
        return client_error(&err);
    }
    gethostname(node, sizeof node - 1);
    report = find_out(&asked, begun_ms);
    verdict = preflight_verdict_of(in_text_or_empty(report, "verdict"));
    facts = (struct preflight_facts){ .node = asked.node ? asked.node : node,
                                      .version = REPROD_VERSION,
                                      .seconds = seconds_since(begun_ms),
                                      .now_ms = clock_wall_ms() };
    if (!write_files(&asked, report, &facts) && verdict == PREFLIGHT_PASSED) {
        /* What nobody reads passes nothing. */
        verdict = PREFLIGHT_UNVERIFIED;
        json_object_set_new(report, "verdict", json_string("unverified"));
        json_object_set_new(report, "cause", json_string("a file could not be written"));
    }
    line = preflight_line(report, &facts);
    if ((puts(line) < 0 || fflush(stdout) != 0) && verdict == PREFLIGHT_PASSED) {
        verdict = PREFLIGHT_UNVERIFIED;
    }
    free(line);
    json_decref(report);
    json_decref(asked.baseline);
    return (int)verdict;
}
