#include "daemon/client/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/client/answers.h"
#include "daemon/client/asked.h"
#include "daemon/client/client.h"
#include "daemon/client/options.h"

static const char SCHEMA[] = "reprod.baseline/1";
static const char *const case_keys[] = { "workload", "variant", "size", "dtype", "seed" };

/* A service names so many devices of a digest. */
enum { DEPTH_MAX = 64, PAGES_MAX = 100000, NAMES = 16 };

bool baseline_same_case(const json_t *a, const json_t *b)
{
    bool same = in_int(a, "version") == in_int(b, "version");

    for (int i = 0; same && i < COUNT_OF(case_keys); i++) {
        same = strcmp(in_text_or_empty(a, case_keys[i]),
                      in_text_or_empty(b, case_keys[i])) == 0;
    }
    return same;
}

bool baseline_lists(const json_t *names, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(names, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), name) == 0) {
            return true;
        }
    }
    return false;
}

const json_t *baseline_find(const json_t *baseline, const char *environment,
                            const json_t *item)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(baseline, "cases"), i, entry)
    {
        if (strcmp(in_text_or_empty(entry, "environment"), environment) == 0 &&
            baseline_same_case(entry, item)) {
            return entry;
        }
    }
    return NULL;
}

int64_t baseline_others(const json_t *entry, const char *device, const char *gpu)
{
    if (!gpu[0] || strcmp(in_text_or_empty(entry, "gpu"), gpu) == 0) {
        return 0;
    }
    return in_int(entry, "devices") -
           baseline_lists(json_object_get(entry, "names"), device);
}

static bool has_names(const json_t *entry)
{
    const json_t *names = json_object_get(entry, "names"), *name;
    int64_t devices = in_int(entry, "devices");
    size_t count = json_array_size(names), i;

    if (devices < 1 || count != (size_t)(devices < NAMES ? devices : NAMES)) {
        return false;
    }
    json_array_foreach(names, i, name)
    {
        if (!json_is_string(name)) {
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (json_equal(name, json_array_get(names, k))) {
                return false;
            }
        }
    }
    return true;
}

/* What ENTRY lacks of what a comparison relies on; NULL: nothing. */
static const char *missing(const json_t *entry)
{
    for (int i = 0; i < COUNT_OF(case_keys); i++) {
        if (!in_text(entry, case_keys[i])) {
            return case_keys[i];
        }
    }
    return !in_text_or_empty(entry, "environment")[0]            ? "environment"
           : !json_is_integer(json_object_get(entry, "version")) ? "version"
           : !in_text_or_empty(entry, "digest")[0]               ? "digest"
           : !has_names(entry)                                   ? "names of its devices"
                                                                 : NULL;
}

json_t *baseline_entry(const json_t *cell)
{
    const json_t *camp = json_array_get(json_object_get(cell, "camps"), 0);
    const json_t *agrees = json_array_get(json_object_get(cell, "items"), 0);
    int64_t size = in_int(camp, "size");
    const char *digest = in_text(camp, "digest");
    json_t *entry, *gpu;

    if (!digest || 2 * size <= in_int(cell, "device_count") ||
        json_is_true(json_object_get(cell, "is_control")) ||
        strcmp(in_text_or_empty(agrees, "state"), "agrees") != 0 ||
        strcmp(in_text_or_empty(agrees, "class"), in_text_or_empty(camp, "class")) != 0 ||
        strcmp(in_text_or_empty(agrees, "verdict"), "reproducible") != 0) {
        return NULL;
    }
    entry = json_pack("{s:s, s:I}", "environment", in_text_or_empty(cell, "environment"),
                      "version", (json_int_t)in_int(cell, "version"));
    for (int i = 0; i < COUNT_OF(case_keys); i++) {
        json_object_set_new(entry, case_keys[i],
                            json_string(in_text_or_empty(cell, case_keys[i])));
    }
    json_object_set_new(entry, "digest", json_string(digest));
    json_object_set_new(entry, "devices", json_integer(size));
    json_object_set_new(entry, "names", json_deep_copy(json_object_get(camp, "devices")));
    gpu = json_object_get(json_object_get(camp, "shares"), "gpu_uuid");
    json_object_set(entry, "gpu", gpu ? gpu : json_null());
    json_object_set_new(entry, "runs", json_integer(in_int(camp, "runs")));
    if (missing(entry)) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

/* The answer to GET PATH, a new value; NULL: ERR says why. */
static json_t *get(const struct server *server, const char *path, struct err *err)
{
    struct answer answer;
    json_t *value = NULL;

    if (server_ask(server, "GET", path, NULL, NULL, &answer, err) != ERR_OK) {
        answer_release(&answer);
        return NULL;
    }
    if (answer.body.length > 0 &&
        in_depth(answer.body.data, answer.body.length) <= DEPTH_MAX) {
        value = json_loadb(answer.body.data, answer.body.length, 0, NULL);
    }
    if (!json_is_object(value)) {
        err_set(err, ERR_PROTOCOL, "what answers at http://%s is no reprod",
                server->authority);
    } else if (answer.status != 200) {
        err_set(err, ERR_INVALID, "http://%s: %.200s", server->authority,
                in_text_or_empty(value, "detail"));
    }
    if (err->code != ERR_OK) {
        json_decref(value);
        value = NULL;
    }
    answer_release(&answer);
    return value;
}

static bool add_cell(const struct server *server, const json_t *shown, json_t *cases,
                     struct err *err)
{
    const char *verdict = in_text_or_empty(shown, "verdict");
    json_t *cell, *entry;
    char *path;

    if (json_is_true(json_object_get(shown, "other_conditions")) ||
        (strcmp(verdict, "reproducible") != 0 &&
         strcmp(verdict, "devices_disagree") != 0)) {
        return true;
    }
    path = xasprintf("%s/devices?state=agrees&limit=1", in_text_or_empty(shown, "href"));
    cell = get(server, path, err);
    free(path);
    entry = cell ? baseline_entry(cell) : NULL;
    if (entry) {
        json_array_append_new(cases, entry);
    }
    json_decref(cell);
    return cell != NULL;
}

/* Of a page of the view of environments. */
static bool add_page(const struct server *server, const json_t *page,
                     const json_t *environments, json_t *cases, struct err *err)
{
    const json_t *columns = json_object_get(page, "columns"), *group, *row, *shown;
    size_t g, r, c;

    json_array_foreach(json_object_get(page, "groups"), g, group)
    {
        json_array_foreach(json_object_get(group, "rows"), r, row)
        {
            if (json_is_true(json_object_get(row, "is_control"))) {
                continue;
            }
            json_array_foreach(json_object_get(row, "cells"), c, shown)
            {
                const char *id = in_text_or_empty(json_array_get(columns, c), "id");

                if (json_is_object(shown) &&
                    (!environments || baseline_lists(environments, id)) &&
                    !add_cell(server, shown, cases, err)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool add_workload(const struct server *server, const char *workload,
                         const json_t *environments, json_t *cases, struct err *err)
{
    char *name = workload ? url_escape(workload) : xstrdup("");
    char *next = xstrdup("");
    bool good = true;

    for (int pages = 0; good && (pages == 0 || next[0]); pages++) {
        char *path = xasprintf("/v1/matrix?view=environments%s%s%s%s",
                               workload ? "&workload=" : "", name,
                               next[0] ? "&cursor=" : "", next);
        json_t *page = get(server, path, err);

        free(next);
        next = url_escape(in_text_or_empty(page, "next"));
        good = page && add_page(server, page, environments, cases, err);
        if (good && pages == PAGES_MAX) {
            err_set(err, ERR_PROTOCOL, "the matrix at http://%s does not end",
                    server->authority);
            good = false;
        }
        json_decref(page);
        free(path);
    }
    free(next);
    free(name);
    return good;
}

json_t *baseline_ask(const struct server *server, const json_t *workloads,
                     const json_t *environments, struct err *err)
{
    json_t *cases = json_array(), *baseline, *health;
    const json_t *name;
    bool good = true;
    size_t i;

    err->code = ERR_OK;
    if (!workloads) {
        good = add_workload(server, NULL, environments, cases, err);
    }
    json_array_foreach(workloads, i, name)
    {
        good = good &&
               add_workload(server, json_string_value(name), environments, cases, err);
    }
    health = good ? get(server, "/healthz", err) : NULL;
    if (!health) {
        json_decref(cases);
        return NULL;
    }
    baseline = json_pack("{s:s}", "schema", SCHEMA);
    json_object_set_new(baseline, "service",
                        json_sprintf("http://%s", server->authority));
    json_object_set_new(baseline, "version",
                        json_string(in_text_or_empty(health, "version")));
    json_object_set_new(baseline, "cases", cases);
    json_decref(health);
    return baseline;
}

/* Of what was put together, cut or edited by hand. */
static enum err_code check_cases(const char *path, const json_t *cases, struct err *err)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(cases, i, entry)
    {
        const char *lacks = missing(entry);

        if (lacks) {
            return err_set(err, ERR_INVALID,
                           "%.200s is no baseline: case %zu lacks the %s", path, i + 1,
                           lacks);
        }
        for (size_t k = 0; k < i; k++) {
            const json_t *other = json_array_get(cases, k);

            if (baseline_same_case(entry, other) &&
                strcmp(in_text_or_empty(entry, "environment"),
                       in_text_or_empty(other, "environment")) == 0) {
                return err_set(err, ERR_INVALID,
                               "%.200s is no baseline: case %zu is case %zu again", path,
                               i + 1, k + 1);
            }
        }
    }
    return ERR_OK;
}

json_t *baseline_read(const char *path, struct err *err)
{
    char *text;
    json_t *baseline;

    err->code = ERR_OK;
    text = client_read_file(path, err);
    if (!text) {
        return NULL;
    }
    baseline =
        in_depth(text, strlen(text)) <= DEPTH_MAX ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (strcmp(in_text_or_empty(baseline, "schema"), SCHEMA) != 0 ||
        !json_is_array(json_object_get(baseline, "cases"))) {
        err_set(err, ERR_INVALID, "%.200s is no baseline: `reprod baseline` writes one",
                path);
    } else {
        check_cases(path, json_object_get(baseline, "cases"), err);
    }
    if (err->code != ERR_OK) {
        json_decref(baseline);
        return NULL;
    }
    return baseline;
}

int baseline_main(int argc, char **argv)
{
    const char *url = NULL, *workload = NULL;
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTION("--workload", &workload),
                                             CLIENT_OPTIONS_END };
    struct err err = { .code = ERR_OK };
    struct server server;
    json_t *workloads, *baseline;
    char *text;
    int code;

    if (client_options_read(argc, argv, options, 0, 0, NULL, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    workloads = workload ? asked_list(workload) : NULL;
    baseline = baseline_ask(&server, workloads, NULL, &err);
    json_decref(workloads);
    if (!baseline) {
        return client_error(&err);
    }
    text = json_dumps(baseline, JSON_COMPACT);
    code = puts(text) >= 0 && fflush(stdout) == 0 ? CLIENT_OK : CLIENT_UNREACHABLE;
    if (code != CLIENT_OK) {
        text_print(stderr, "reprod: standard output: it cannot be written");
    }
    free(text);
    json_decref(baseline);
    return code;
}
