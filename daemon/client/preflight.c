/* reprod preflight: whether the devices of this machine compute what their equals
 * compute, within a deadline, in one line of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
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
enum { JUDGE_MS = 3000, LEAVE_MS = 3000, NODE_SIZE = 256 };

/* What is said where this process itself does not get to its end before the deadline: a
 * file that it was given, its folder or its standard output does not answer. */
static struct {
    char *volatile line; /* with its newline; NULL: a line was said, or begun */
    volatile sig_atomic_t status;
} last;

static void on_deadline(int number)
{
    const char *line = last.line;

    (void)number;
    if (line && write(STDOUT_FILENO, line, strlen(line)) < 0) {
        _exit(PREFLIGHT_FAILED);
    }
    _exit(last.status);
}

static void set_deadline(int64_t begun_ms, int seconds)
{
    const struct sigaction end = { .sa_handler = on_deadline };
    int64_t left_ms = begun_ms + 1000LL * seconds - clock_monotonic_ms();
    struct itimerval timer = { .it_value = { .tv_sec = left_ms / 1000, .tv_usec = 1 } };

    sigaction(SIGALRM, &end, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* REPORT, unless it says what is true only if it is heard. */
static void set_last(const json_t *report, const struct preflight_facts *facts)
{
    char *before = last.line, *line = preflight_line(report, facts);
    enum preflight_verdict verdict =
        preflight_verdict_of(in_text_or_empty(report, "verdict"));

    if (verdict != PREFLIGHT_PASSED) {
        last.line = xasprintf("%s\n", line);
        last.status = (sig_atomic_t)verdict;
        free(before);
    }
    free(line);
}

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
    if (asked->url) {
        server_read(asked->url, &asked->server, err);
    }
    return err->code;
}

/* Nothing is known, because of CAUSE: a new value. */
static json_t *nothing(const char *cause, const char *more)
{
    char *words = xasprintf("%s%s", cause, more);
    json_t *report = json_pack("{s:s, s:o, s:i, s:[]}", "verdict",
                               preflight_verdict_name(PREFLIGHT_FAILED), "cause",
                               preflight_text(words), "gpus", 0, "devices");

    free(words);
    return report;
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
        watched.report = nothing(
            watched.phase[0] ? watched.phase : "nothing was begun",
            watched.ended || err.code != ERR_OK ? "" : ", before the time was over");
    }
    return watched.report;
}

/* TEXT in FILE, which is closed. */
static bool put(FILE *file, const char *text)
{
    bool good = file && fprintf(file, "%s\n", text) > 0;

    return file && fclose(file) == 0 && good;
}

/* A file is there in full or as it was before; what is no file, or cannot be replaced by
 * another one, is written as it is. */
static bool put_whole(const char *path, const char *text)
{
    struct stat status;
    bool is_other = lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
    char *aside = xasprintf("%s.%d.new", path, (int)getpid());
    FILE *file = is_other ? NULL : fopen(aside, "we");
    bool written = !file || put(file, text);
    bool replaced = file && written && rename(aside, path) == 0;
    int why = errno;

    if (file && !replaced) {
        unlink(aside);
    }
    free(aside);
    errno = why;
    return replaced || (written && put(fopen(path, "we"), text));
}

/* VALUE as the file PATH; NULL: there is none. */
static bool write_file(const char *path, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    bool good =
        text ? put_whole(path, text) : !value && (unlink(path) == 0 || errno == ENOENT);

    if (!good) {
        text_print(stderr, "reprod: %s: %s", path, strerror(errno));
    }
    free(text);
    json_decref(value);
    return good;
}

/* What nobody reads passes nothing. */
static void take_back(json_t *report, const char *cause)
{
    if (preflight_verdict_of(in_text_or_empty(report, "verdict")) == PREFLIGHT_PASSED) {
        json_object_set_new(report, "verdict",
                            json_string(preflight_verdict_name(PREFLIGHT_UNVERIFIED)));
        json_object_set_new(report, "cause", json_string(cause));
    }
}

/* The object of --node-object, a new value, or NULL. */
static json_t *read_node(const char *path)
{
    struct err err = { .code = ERR_OK };
    char *text = client_read_file(path, &err);
    json_t *node = text ? json_loads(text, 0, NULL) : NULL;

    if (!json_is_object(node)) {
        text_print(stderr, "reprod: %s is no object: %s", path,
                   err.code != ERR_OK ? err.message : "it is not JSON");
        json_decref(node);
        node = NULL;
    }
    free(text);
    return node;
}

/* The condition is last: it says of the machine what REPORT says then. */
static void write_files(const struct preflight_asked *asked, json_t *report,
                        const struct preflight_facts *facts)
{
    static const char unwritten[] = "a file could not be written";
    json_t *node = asked->node_object ? read_node(asked->node_object) : NULL;

    if (asked->node_object && !node) {
        take_back(report, "the object of the node could not be read");
    }
    if (asked->event && !write_file(asked->event, preflight_events(report, facts))) {
        take_back(report, unwritten);
    }
    if (asked->condition &&
        !write_file(asked->condition, preflight_condition(report, node, facts))) {
        take_back(report, unwritten);
    }
    json_decref(node);
}

/* Says the one line. */
static bool say_line(const json_t *report, const struct preflight_facts *facts)
{
    char *line = preflight_line(report, facts), *unsaid = last.line;
    bool good;

    last.line = NULL;
    last.status = PREFLIGHT_FAILED;
    good = puts(line) >= 0 && fflush(stdout) == 0;
    free(unsaid);
    free(line);
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
    char host[NODE_SIZE] = "";
    enum preflight_verdict verdict;
    struct preflight_facts facts;
    json_t *report;

    if (read_asked(argc, argv, &asked, &err) != ERR_OK) {
        return client_error(&err);
    }
    gethostname(host, sizeof host - 1);
    facts = (struct preflight_facts){ .node = asked.node ? asked.node : host,
                                      .version = REPROD_VERSION,
                                      .seconds = asked.seconds_wanted,
                                      .now_ms = clock_wall_ms() };
    report = nothing("a file or folder does not answer", ", before the time was over");
    set_last(report, &facts);
    json_decref(report);
    set_deadline(begun_ms, asked.seconds_wanted);
    asked.baseline = asked.against ? baseline_read(asked.against, &err) : NULL;
    if (err.code != ERR_OK) {
        free(last.line);
        return client_error(&err);
    }
    report = find_out(&asked, begun_ms);
    facts.seconds = seconds_since(begun_ms);
    facts.now_ms = clock_wall_ms();
    set_last(report, &facts);
    write_files(&asked, report, &facts);
    if (!say_line(report, &facts)) {
        take_back(report, "standard output could not be written");
        write_files(&asked, report, &facts);
    }
    verdict = preflight_verdict_of(in_text_or_empty(report, "verdict"));
    json_decref(report);
    json_decref(asked.baseline);
    return (int)verdict;
}
