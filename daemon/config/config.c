#include "daemon/config/config.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/config/external.h"
#include "daemon/config/hosts.h"
#include "daemon/config/peers.h"
#include "daemon/evidence/recipe.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/request.h"

enum {
    THREADS_MAX = 256,
    PROBE_SECONDS_MAX = 600,
    /* Each is handed to the agent as an argument, and in its hello with all others. */
    WORKLOADS_MAX = 64,
    WORKLOAD_BYTES_MAX = 16 * 1024
};

void config_init(struct config *config)
{
    *config = (struct config){
        .address = xstrdup("127.0.0.1"),
        .port = 7357,
        .data = xstrdup("var"),
        .survey = true,
        .background = { .budget_percent = 5,
                        .target_percent = 1,
                        .target_days = 30,
                        .every_seconds = 300 },
        .screening = { .returned_days = 30 },
        .slurm = { .every_seconds = 10 },
        .foreign_waits = true,
        .stale_after_hours = 24 * 30,
        .connection_limit = 512,
        .open_items_limit = 50000,
        .backup_every_hours = 24,
        .retention_days = 365,
        .retention_runs = 1000,
        .grace_ms = 2000,
        .stacks = json_array(),
        .hosts = json_array(),
        .peers = json_array(),
        .profiles = json_array(),
        .gpu_reports = json_array(),
        .workloads = json_array(),
    };
}

void config_release(struct config *config)
{
    free(config->address);
    free(config->data);
    free(config->read_only);
    json_decref(config->stacks);
    json_decref(config->hosts);
    json_decref(config->peers);
    json_decref(config->profiles);
    json_decref(config->gpu_reports);
    json_decref(config->workloads);
    free(config->webhooks);
    free(config->webhook_ca);
}

enum err_code config_set_listen(struct config *config, const char *text, struct err *err)
{
    const char *colon = strrchr(text, ':');
    const char *digits = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 0;
    char *address = colon ? xstrndup(text, length) : xstrdup(config->address);
    unsigned char parsed[sizeof(struct in6_addr)];
    char *end;
    long port = strtol(digits, &end, 10);

    if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
        memmove(address, address + 1, length - 2);
        address[length - 2] = '\0';
    }
    if (end == digits || *end || port < 0 || port > 65535 ||
        (inet_pton(AF_INET, address, parsed) != 1 &&
         inet_pton(AF_INET6, address, parsed) != 1)) {
        free(address);
        return err_set(
            err, ERR_INVALID,
            "'%s' is not ADDRESS:PORT with a numeric address and a port in 0..65535",
            text);
    }
    free(config->address);
    config->address = address;
    config->port = (int)port;
    return ERR_OK;
}

static const char *look_up(void *arg, const char *name)
{
    return in_text(arg, name);
}

/* Refuses names that no process can have, and recipes that would not do what they seem
 * to (daemon/evidence/recipe.h). */
static void check_env(struct in_reader *r, const json_t *env)
{
    struct recipes recipes;
    struct recipe_refusal refusal;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)env, name, value)
    {
        if (name[0] == '\0' || strchr(name, '=')) {
            in_refuse(r, name, "is not the name of a variable");
        }
    }
    if (!recipe_read(look_up, (void *)env, &recipes, &refusal)) {
        in_refuse(r, refusal.variable, "%s", refusal.reason);
    }
}

static void check_stack_name(struct in_reader *r, const json_t *name)
{
    if (external_stack_is(json_string_value(name))) {
        in_refuse(r, NULL, "is the name of the stack of external workloads");
    }
}

static const struct in_member a_text = { .kind = IN_TEXT };

static const struct in_member stack_members[] = {
    { "name", IN_TEXT, IN_AT(struct config_stack, name), .least = 1,
      .most = CASE_NAME_SIZE - 1, .check = check_stack_name },
    { "worker", IN_TEXT, IN_AT(struct config_stack, worker), IN_OPTIONAL, .least = 1 },
    { "library_path", IN_TEXT, IN_AT(struct config_stack, library_path), IN_OPTIONAL,
      .least = 1 },
    { "env", IN_OBJECT, IN_AT(struct config_stack, env), IN_OPTIONAL, .item = &a_text,
      .check = check_env },
    { "threads", IN_INT, IN_AT(struct config_stack, threads), IN_OPTIONAL, .least = 1,
      .most = THREADS_MAX },
    { "probe_seconds", IN_INT, IN_AT(struct config_stack, probe_seconds), IN_OPTIONAL,
      .least = 1, .most = PROBE_SECONDS_MAX },
};
static const struct in_shape stack_shape =
    IN_SHAPE(stack_members, "a stack has no member");
static const struct in_member a_stack = { .kind = IN_OBJECT, .shape = &stack_shape };

static const struct in_member a_host = { .kind = IN_OBJECT, .shape = &hosts_entry_shape };

static const struct in_member a_path = { .kind = IN_TEXT,
                                         .least = 1,
                                         .wanted = "must be the path of a file" };

static const struct in_member background_members[] = {
    { "budget_percent", IN_REAL, IN_AT(struct config_background, budget_percent),
      IN_OPTIONAL, .least = 0, .most = 100 },
    { "target_percent", IN_REAL, IN_AT(struct config_background, target_percent),
      IN_OPTIONAL, .least = 0, .most = 100 },
    { "target_days", IN_INT, IN_AT(struct config_background, target_days), IN_OPTIONAL,
      .least = 0, .most = 3650 },
    { "every_seconds", IN_INT, IN_AT(struct config_background, every_seconds),
      IN_OPTIONAL, .least = 1, .most = 86400 },
};
static const struct in_shape background_shape =
    IN_SHAPE(background_members, "the background has no member");

static const struct in_member screening_members[] = {
    { "returned_days", IN_INT, IN_AT(struct config_screening, returned_days), IN_OPTIONAL,
      .least = 0, .most = 3650 },
};
static const struct in_shape screening_shape =
    IN_SHAPE(screening_members, "the screening has no member");

static const struct in_member slurm_members[] = {
    { "every_seconds", IN_INT, IN_AT(struct config_slurm, every_seconds), IN_OPTIONAL,
      .least = 1, .most = 3600 },
};
static const struct in_shape slurm_shape =
    IN_SHAPE(slurm_members, "the setting slurm has no member");

static void check_network(struct in_reader *r, const json_t *value)
{
    struct networks networks = { .count = 0 };

    if (!networks_add(&networks, json_string_value(value))) {
        in_refuse(r, NULL, "must be an address or a network, such as \"169.254.7.0/24\"");
    }
}

static const struct in_member a_network = { .kind = IN_TEXT, .check = check_network };

static const char foreign_wait[] = "wait", foreign_measure[] = "measure";

static void check_foreign(struct in_reader *r, const json_t *value)
{
    const char *text = json_string_value(value);

    if (strcmp(text, foreign_wait) != 0 && strcmp(text, foreign_measure) != 0) {
        in_refuse(r, NULL, "must be '%s' or '%s'", foreign_wait, foreign_measure);
    }
}

/* What a file holds; texts and JSON are borrowed from it. */
struct settings {
    const char *listen, *data, *foreign;
    bool survey;
    int stale_after_hours, connection_limit, open_items_limit, grace_ms,
        backup_every_hours;
    int retention_days, retention_runs;
    const json_t *stacks, *hosts, *peers, *profiles, *gpu_reports, *workloads,
        *background, *screening, *slurm, *webhooks, *webhook_networks;
    const char *webhook_ca;
};

/* One row a setting. */
static const struct in_member settings_members[] = {
    { "listen", IN_TEXT, IN_AT(struct settings, listen), IN_OPTIONAL,
      .wanted = "must be a text, ADDRESS:PORT" },
    { "data", IN_TEXT, IN_AT(struct settings, data), IN_OPTIONAL, .least = 1 },
    { "survey", IN_BOOL, IN_AT(struct settings, survey), IN_OPTIONAL },
    { "background", IN_OBJECT, IN_AT(struct settings, background), IN_OPTIONAL,
      .shape = &background_shape },
    { "screening", IN_OBJECT, IN_AT(struct settings, screening), IN_OPTIONAL,
      .shape = &screening_shape },
    { "slurm", IN_OBJECT, IN_AT(struct settings, slurm), IN_OPTIONAL,
      .shape = &slurm_shape },
    { "foreign", IN_TEXT, IN_AT(struct settings, foreign), IN_OPTIONAL,
      .check = check_foreign },
    { "stale_after_hours", IN_INT, IN_AT(struct settings, stale_after_hours), IN_OPTIONAL,
      .least = 0, .most = 24 * 365 * 10 },
    { "connection_limit", IN_INT, IN_AT(struct settings, connection_limit), IN_OPTIONAL,
      .least = 8, .most = 65536 },
    { "open_items_limit", IN_INT, IN_AT(struct settings, open_items_limit), IN_OPTIONAL,
      .least = JOB_ITEMS_MAX, .most = 10000000 },
    { "backup_every_hours", IN_INT, IN_AT(struct settings, backup_every_hours),
      IN_OPTIONAL, .least = 0, .most = 24 * 365 },
    { "retention_days", IN_INT, IN_AT(struct settings, retention_days), IN_OPTIONAL,
      .least = 0, .most = 36500 },
    { "retention_runs", IN_INT, IN_AT(struct settings, retention_runs), IN_OPTIONAL,
      .least = 1, .most = 1000000 },
    { "grace_ms", IN_INT, IN_AT(struct settings, grace_ms), IN_OPTIONAL, .least = 10,
      .most = 600000 },
    { "stacks", IN_ARRAY, IN_AT(struct settings, stacks), IN_OPTIONAL, .item = &a_stack },
    { "hosts", IN_ARRAY, IN_AT(struct settings, hosts), IN_OPTIONAL, .item = &a_host },
    { "peers", IN_ARRAY, IN_AT(struct settings, peers), IN_OPTIONAL, .most = PEERS_MAX,
      .item = &peers_element },
    { "profiles", IN_ARRAY, IN_AT(struct settings, profiles), IN_OPTIONAL,
      .item = &a_path },
    { "gpu_reports", IN_ARRAY, IN_AT(struct settings, gpu_reports), IN_OPTIONAL,
      .item = &a_path },
    { "workloads", IN_ARRAY, IN_AT(struct settings, workloads), IN_OPTIONAL,
      .most = WORKLOADS_MAX },
    { "webhooks", IN_ARRAY, IN_AT(struct settings, webhooks), IN_OPTIONAL,
      .most = WEBHOOKS_MAX },
    { "webhook_networks", IN_ARRAY, IN_AT(struct settings, webhook_networks), IN_OPTIONAL,
      .most = NETWORKS_MAX, .item = &a_network },
    { "webhook_ca", IN_TEXT, IN_AT(struct settings, webhook_ca), IN_OPTIONAL, .least = 1,
      .wanted = "must be the path of a file" },
};
static const struct in_shape settings_shape =
    IN_SHAPE(settings_members, "there is no setting");

enum err_code config_read_stack(const json_t *json, const char *where,
                                struct config_stack *ret_stack, struct err *err)
{
    *ret_stack = (struct config_stack){ 0 };
    return in_read_file(&stack_shape, json, where, ret_stack, err);
}

/* Commands run where the file lies, unless they say otherwise.  Caller frees. */
static char *folder_of(const char *file)
{
    char *path = realpath(file, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;

    if (slash) {
        slash[slash == path] = '\0';
    }
    return path;
}

static enum err_code add_workload(json_t *list, json_t *workload, const char *where,
                                  const char *folder, struct err *err)
{
    if (json_dumpb(workload, NULL, 0, JSON_COMPACT) > WORKLOAD_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "%s: is longer than %d bytes", where,
                       WORKLOAD_BYTES_MAX);
    }
    if (external_complete(workload, where, folder, err) != ERR_OK) {
        return err->code;
    }
    if (external_find(list, in_text(workload, "name"), in_text(workload, "backend"))) {
        return err_set(err, ERR_INVALID, "%s/name: '%s' is listed twice", where,
                       in_text(workload, "name"));
    }
    json_array_append(list, workload);
    return ERR_OK;
}

/* Caller frees with json_decref; the error is set if one of them is wrong. */
static json_t *complete_workloads(const char *file, const json_t *workloads,
                                  struct err *err)
{
    json_t *list = json_array();
    char *folder = folder_of(file);
    size_t i;
    json_t *workload;

    json_array_foreach((json_t *)workloads, i, workload)
    {
        char *where = xasprintf("%s: /workloads/%zu", file, i);

        if (err->code == ERR_OK) {
            add_workload(list, workload, where, folder, err);
        }
        free(where);
    }
    free(folder);
    return list;
}

/* Where a webhook may not go is refused at once, if its URL has an address. */
static enum err_code take_webhook(struct config *config, const json_t *json,
                                  const char *where, struct err *err)
{
    struct webhook *w = &config->webhooks[config->webhook_count];
    char refusal[REFUSAL_SIZE];
    struct url url;

    if (webhook_read_configured(json, where, w, err) != ERR_OK) {
        return err->code;
    }
    url_read(w->url, &url);
    if (host_refusal(url.host, &config->webhook_networks, refusal)) {
        return err_set(err, ERR_INVALID,
                       "%s/url: leads to %s, which only webhook_networks can allow",
                       where, refusal);
    }
    for (int i = 0; i < config->webhook_count; i++) {
        if (strcmp(config->webhooks[i].name, w->name) == 0) {
            return err_set(err, ERR_INVALID, "%s/name: '%s' is listed twice", where,
                           w->name);
        }
    }
    config->webhook_count++;
    return ERR_OK;
}

/* Absent ones leave what is there. */
static enum err_code take_webhooks(struct config *config, const char *file,
                                   const struct settings *s, struct err *err)
{
    size_t i;
    json_t *each;

    if (s->webhook_networks) {
        config->webhook_networks.count = 0;
    }
    json_array_foreach((json_t *)s->webhook_networks, i, each)
    {
        networks_add(&config->webhook_networks, json_string_value(each));
    }
    if (s->webhooks) {
        free(config->webhooks);
        config->webhooks =
            xcalloc(json_array_size(s->webhooks) + 1, sizeof *config->webhooks);
        config->webhook_count = 0;
    }
    json_array_foreach((json_t *)s->webhooks, i, each)
    {
        char *where = xasprintf("%s: /webhooks/%zu", file, i);

        if (err->code == ERR_OK) {
            take_webhook(config, each, where, err);
        }
        free(where);
    }
    if (s->webhook_ca) {
        free(config->webhook_ca);
        config->webhook_ca = xstrdup(s->webhook_ca);
    }
    return err->code;
}

static void take_array(json_t **target, const json_t *array)
{
    if (array) {
        json_decref(*target);
        *target = json_incref((json_t *)array);
    }
}

static void take(struct config *config, const struct settings *s)
{
    if (s->data) {
        free(config->data);
        config->data = xstrdup(s->data);
    }
    config->survey = s->survey;
    if (s->background) { /* it was checked with the settings */
        in_read(&background_shape, s->background, &config->background, NULL, NULL);
    }
    if (s->screening) {
        in_read(&screening_shape, s->screening, &config->screening, NULL, NULL);
    }
    if (s->slurm) {
        in_read(&slurm_shape, s->slurm, &config->slurm, NULL, NULL);
    }
    if (s->foreign) {
        config->foreign_waits = strcmp(s->foreign, foreign_wait) == 0;
    }
    config->stale_after_hours = s->stale_after_hours;
    config->connection_limit = s->connection_limit;
    config->open_items_limit = s->open_items_limit;
    config->retention_days = s->retention_days;
    config->retention_runs = s->retention_runs;
    config->grace_ms = s->grace_ms;
    config->backup_every_hours = s->backup_every_hours;
    take_array(&config->stacks, s->stacks);
    take_array(&config->hosts, s->hosts);
    take_array(&config->peers, s->peers);
    take_array(&config->profiles, s->profiles);
    take_array(&config->gpu_reports, s->gpu_reports);
    take_array(&config->workloads, s->workloads);
}

static enum err_code read_settings(struct config *config, const char *file,
                                   const json_t *json, struct err *err)
{
    struct settings settings = { .survey = config->survey,
                                 .stale_after_hours = config->stale_after_hours,
                                 .connection_limit = config->connection_limit,
                                 .open_items_limit = config->open_items_limit,
                                 .backup_every_hours = config->backup_every_hours,
                                 .retention_days = config->retention_days,
                                 .retention_runs = config->retention_runs,
                                 .grace_ms = config->grace_ms };
    char *where = xasprintf("%s: ", file);
    json_t *workloads, *hosts;

    in_read_file(&settings_shape, json, where, &settings, err);
    free(where);
    if (err->code == ERR_OK && settings.listen &&
        config_set_listen(config, settings.listen, err) != ERR_OK) {
        err_wrap(err, "%s: /listen", file);
    }
    if (err->code != ERR_OK) {
        return err->code;
    }
    workloads = complete_workloads(file, settings.workloads, err);
    hosts = err->code == ERR_OK ? hosts_expand(settings.hosts, file, err) : NULL;
    if (err->code == ERR_OK && settings.peers) {
        peers_check(settings.peers, hosts, settings.stacks, file, err);
    }
    if (err->code == ERR_OK && take_webhooks(config, file, &settings, err) == ERR_OK) {
        settings.workloads = settings.workloads ? workloads : NULL;
        settings.hosts = settings.hosts ? hosts : NULL;
        take(config, &settings);
    }
    json_decref(workloads);
    json_decref(hosts);
    return err->code;
}

enum err_code config_read(struct config *config, const char *file, struct err *err)
{
    json_error_t where;
    json_t *json = json_load_file(file, JSON_REJECT_DUPLICATES, &where);

    err->code = ERR_OK;
    if (!json) {
        return where.line < 0 ? err_set(err, ERR_IO, "%s", where.text)
                              : err_set(err, ERR_INVALID, "%s: line %d column %d: %s",
                                        file, where.line, where.column, where.text);
    }
    if (json_is_object(json)) {
        read_settings(config, file, json, err);
    } else {
        err_set(err, ERR_INVALID, "%s: must be a JSON object", file);
    }
    json_decref(json);
    return err->code;
}
