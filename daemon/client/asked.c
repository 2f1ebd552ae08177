#include "daemon/client/asked.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/client/client.h"
#include "daemon/client/options.h"

enum { LOCALISE_MAX = 10000 }; /* runs_max of a job */

static enum err_code read_cost(struct asked *asked, struct err *err)
{
    char *end;

    if (!asked->cost) {
        return ERR_OK;
    }
    asked->limits.cost = strtod(asked->cost, &end);
    return *end || !(asked->limits.cost > 0 && asked->limits.cost < 1e6)
               ? err_set(err, ERR_INVALID,
                         "--cost-limit %.100s: it is a factor, such as 1.25", asked->cost)
               : ERR_OK;
}

static enum err_code read_localise(struct asked *asked, struct err *err)
{
    char *end;
    long runs;

    if (!asked->localise) {
        return ERR_OK;
    }
    runs = strtol(asked->localise, &end, 10);
    if (!asked->localise[0] || *end || runs < 2 || runs > LOCALISE_MAX) {
        return err_set(err, ERR_INVALID,
                       "--localise %.100s: it is a number of runs, from 2 to %d",
                       asked->localise, LOCALISE_MAX);
    }
    asked->localise_runs = (int)runs;
    return ERR_OK;
}

/* What does not go together. */
static enum err_code check_together(const struct asked *asked, struct err *err)
{
    if (!asked->job == !asked->workloads) {
        return err_set(err, ERR_INVALID,
                       "give either --workload NAME,NAME or --job FILE");
    }
    if (asked->job &&
        (asked->variants || asked->sizes || asked->runs || asked->iterations)) {
        return err_set(err, ERR_INVALID, "with --job the file says what is measured");
    }
    if (asked->local && asked->url) {
        return err_set(err, ERR_INVALID,
                       "--local starts a service: it asks none at --server");
    }
    if (!asked->local && (asked->config || asked->data)) {
        return err_set(err, ERR_INVALID, "%s is of the service that --local starts",
                       asked->config ? "--config" : "--data");
    }
    return ERR_OK;
}

enum err_code asked_read(int argc, char **argv, struct asked *ret_asked, struct err *err)
{
    struct asked *asked = ret_asked;
    const struct client_option options[] = {
        CLIENT_OPTION("--server", &asked->url),
        CLIENT_OPTION("--job", &asked->job),
        CLIENT_OPTION("--workload", &asked->workloads),
        CLIENT_OPTION("--variant", &asked->variants),
        CLIENT_OPTION("--size", &asked->sizes),
        CLIENT_OPTION("--runs", &asked->runs),
        CLIENT_OPTION("--iterations", &asked->iterations),
        CLIENT_OPTION("--against", &asked->against),
        CLIENT_OPTION("--cost-limit", &asked->cost),
        CLIENT_OPTION("--localise", &asked->localise),
        CLIENT_OPTION("--junit", &asked->junit),
        CLIENT_OPTION("--markdown", &asked->markdown),
        CLIENT_FLAG("--local", &asked->local),
        CLIENT_OPTION("--config", &asked->config),
        CLIENT_OPTION("--data", &asked->data),
        CLIENT_OPTIONS_END
    };

    *asked = (struct asked){ .url = NULL };
    if (client_options_read(argc, argv, options, 0, 0, NULL, err) != ERR_OK ||
        check_together(asked, err) != ERR_OK || read_cost(asked, err) != ERR_OK ||
        read_localise(asked, err) != ERR_OK) {
        return err->code;
    }
    asked->limits.against = asked->against;
    return asked->local ? ERR_OK : server_read(asked->url, &asked->server, err);
}

json_t *asked_list(const char *text)
{
    json_t *list = json_array();

    while (text) {
        size_t length = strcspn(text, ",");

        if (length > 0) {
            json_array_append_new(list, json_stringn(text, length));
        }
        text = text[length] ? text + length + 1 : NULL;
    }
    return list;
}

json_t *asked_number(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);

    return text[0] && !*end ? json_integer(number) : json_string(text);
}

char *asked_body(const struct asked *asked, struct err *err)
{
    json_t *request;
    char *text;

    if (asked->job) {
        return client_read_file(asked->job, err);
    }
    request = json_pack("{s:o}", "workloads", asked_list(asked->workloads));
    if (asked->variants) {
        json_object_set_new(request, "variants", asked_list(asked->variants));
    }
    if (asked->sizes) {
        json_object_set_new(request, "sizes", asked_list(asked->sizes));
    }
    if (asked->runs) {
        json_object_set_new(request, "runs", asked_number(asked->runs));
    }
    if (asked->iterations) {
        json_object_set_new(request, "iterations", asked_number(asked->iterations));
    }
    text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    return text;
}
