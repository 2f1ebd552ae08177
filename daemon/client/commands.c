/* reprod status, matrix, submit, wait, drift: each asks for one thing and prints it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/client/answers.h"
#include "daemon/client/client.h"
#include "daemon/client/options.h"
#include "daemon/client/wait.h"

/* A name and a value of a query, where the value is given. */
struct parameter {
    const char *name;
    const char *const *value;
};

/* PATH and a query of the PARAMETERS that have a value.  Caller frees. */
static char *with_query(const char *path, const struct parameter *parameters, int count)
{
    struct buf text = BUF_INIT;
    char between = '?';

    buf_puts(&text, path);
    for (int i = 0; i < count; i++) {
        if (*parameters[i].value) {
            char *value = url_escape(*parameters[i].value);

            buf_printf(&text, "%c%s=%s", between, parameters[i].name, value);
            free(value);
            between = '&';
        }
    }
    return buf_detach(&text, NULL);
}

static int show(const struct server *server, const char *path,
                const struct parameter *parameters, int count)
{
    char *whole = with_query(path, parameters, count);
    int code = client_show(server, whole);

    free(whole);
    return code;
}

static void print_conditions(const json_t *ready)
{
    const json_t *conditions = json_object_get(ready, "conditions"), *one;
    size_t i;

    json_array_foreach(conditions, i, one)
    {
        text_print(stdout, "%s: %s", in_text_or_empty(one, "name"),
                   in_text_or_empty(one, "cause"));
    }
}

int status_main(int argc, char **argv)
{
    const char *url = NULL;
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTIONS_END };
    struct err err = { .code = ERR_OK };
    struct server server;
    int code = CLIENT_OK;
    json_t *ready;

    if (client_options_read(argc, argv, options, 0, 0, NULL, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    ready = client_ask(&server, "GET", "/readyz", NULL, NULL, &code);
    if (!ready) {
        return code;
    }
    text_print(stdout, "http://%s is %s, reprod %s", server.authority,
               in_text_or_empty(ready, "status"), in_text_or_empty(ready, "version"));
    print_conditions(ready);
    json_decref(ready);
    puts("");
    code = client_show(&server, "/v1/hosts.txt");
    puts("");
    return code == CLIENT_OK ? client_show(&server, "/v1/jobs.txt?limit=10") : code;
}

int matrix_main(int argc, char **argv)
{
    const char *url = NULL, *table = NULL, *view = NULL, *environment = NULL,
               *workload = NULL;
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTION("--table", &table),
                                             CLIENT_OPTION("--view", &view),
                                             CLIENT_OPTION("--environment", &environment),
                                             CLIENT_OPTION("--workload", &workload),
                                             CLIENT_OPTIONS_END };
    const struct parameter parameters[] = { { "table", &table },
                                            { "view", &view },
                                            { "environment", &environment },
                                            { "workload", &workload } };
    struct err err = { .code = ERR_OK };
    struct server server;

    if (client_options_read(argc, argv, options, 0, 0, NULL, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    return show(&server, "/v1/matrix.txt", parameters, COUNT_OF(parameters));
}

int drift_main(int argc, char **argv)
{
    const char *url = NULL, *sides[2];
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTIONS_END };
    const struct parameter parameters[] = { { "from", &sides[0] }, { "to", &sides[1] } };
    struct err err = { .code = ERR_OK };
    struct server server;

    if (client_options_read(argc, argv, options, 2, 2, sides, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    return show(&server, "/v1/drift.txt", parameters, COUNT_OF(parameters));
}

int submit_main(int argc, char **argv)
{
    const char *url = NULL, *path;
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTIONS_END };
    struct err err = { .code = ERR_OK };
    struct server server;
    char key[ID_SIZE], *body;
    int code = CLIENT_OK;
    json_t *job;

    if (client_options_read(argc, argv, options, 1, 1, &path, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    body = client_read_file(path, &err);
    if (!body) {
        return client_error(&err);
    }
    id_new(clock_wall_ms(), key);
    job = client_ask(&server, "POST", "/v1/jobs", body, key, &code);
    free(body);
    if (job) {
        text_print(stdout, "%s", in_text_or_empty(job, "id"));
        json_decref(job);
    }
    return code;
}

int wait_main(int argc, char **argv)
{
    const char *url = NULL, *id;
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTIONS_END };
    struct err err = { .code = ERR_OK };
    struct server server;
    const json_t *progress;
    int code = CLIENT_OK;
    char *escaped;
    json_t *job;

    if (client_options_read(argc, argv, options, 1, 1, &id, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    escaped = url_escape(id);
    job = client_wait(&server, escaped, &code);
    free(escaped);
    if (!job) {
        return code;
    }
    progress = json_object_get(job, "progress");
    text_print(stdout, "%s %s: %" PRId64 " of %" PRId64 " runs, %" PRId64 " failed", id,
               in_text_or_empty(job, "state"), in_int(progress, "runs_done"),
               in_int(progress, "runs_total"), in_int(progress, "runs_failed"));
    code = strcmp(in_text_or_empty(job, "state"), "finished") == 0 &&
                   in_int(progress, "runs_failed") == 0
               ? CLIENT_OK
               : CLIENT_FAILED;
    json_decref(job);
    return code;
}
