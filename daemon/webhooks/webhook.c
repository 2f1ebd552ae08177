#include "daemon/webhooks/webhook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { TIMEOUT_LEAST_MS = 100, TIMEOUT_MOST_MS = 60000, RETRY_MOST_MS = 3600 * 1000 };

const char *delivery_state_name(enum delivery_state state)
{
    static const char *const names[] = {
#define X(code, name) name,
        DELIVERY_STATE_MAP(X)
#undef X
    };

    return names[state];
}

enum delivery_state delivery_state_parse(const char *name)
{
    int i = 0;

    while (i < DELIVERY_STATES &&
           strcmp(name, delivery_state_name((enum delivery_state)i)) != 0) {
        i++;
    }
    return (enum delivery_state)i;
}

/* Members; texts are borrowed. */
struct given {
    const char *name, *url, *secret, *secret_file;
    const json_t *types;
    int retry_ms, timeout_ms;
};

static void check_url(struct in_reader *r, const json_t *value)
{
    struct url url;
    const char *wrong = url_read(json_string_value(value), &url);

    if (wrong) {
        in_refuse(r, NULL, "%s", wrong);
    }
}

static void check_secret(struct in_reader *r, const json_t *value)
{
    const char *wrong = secret_check(json_string_value(value));

    if (wrong) {
        in_refuse(r, NULL, "%s", wrong);
    }
}

static void check_type(struct in_reader *r, const json_t *value)
{
    char hint[NEAREST_HINT_SIZE];

    if (webhook_type_parse(json_string_value(value), hint) == WEBHOOK_TYPES) {
        in_refuse(r, NULL, "there is no type '%.64s'%s", json_string_value(value), hint);
    }
}

static const struct in_member a_type = { .kind = IN_TEXT, .check = check_type };

#define MEMBERS                                                                          \
    { "name", IN_TEXT, IN_AT(struct given, name), .least = 1,                            \
      .most = WEBHOOK_NAME_SIZE - 1 },                                                   \
        { "url", IN_TEXT, IN_AT(struct given, url), .check = check_url },                \
        { "secret", IN_TEXT, IN_AT(struct given, secret), IN_OPTIONAL,                   \
          .check = check_secret },                                                       \
        { "types",        IN_ARRAY,   IN_AT(struct given, types),                        \
          IN_OPTIONAL,    .least = 1, .most = WEBHOOK_TYPES,                             \
          .item = &a_type },                                                             \
        { "retry_ms",  IN_INT,      IN_AT(struct given, retry_ms),                       \
          IN_OPTIONAL, .least = 10, .most = RETRY_MOST_MS },                             \
    {                                                                                    \
        "timeout_ms", IN_INT, IN_AT(struct given, timeout_ms), IN_OPTIONAL,              \
            .least = TIMEOUT_LEAST_MS, .most = TIMEOUT_MOST_MS                           \
    }

static const struct in_member posted_members[] = { MEMBERS };
static const struct in_member configured_members[] = {
    MEMBERS,
    { "secret_file", IN_TEXT, IN_AT(struct given, secret_file), IN_OPTIONAL, .least = 1 },
};
static const struct in_shape posted_shape =
    IN_SHAPE(posted_members, "a webhook has no member");
static const struct in_shape configured_shape =
    IN_SHAPE(configured_members, "a webhook has no member");

static const struct given defaults = { .retry_ms = WEBHOOK_RETRY_MS,
                                       .timeout_ms = WEBHOOK_TIMEOUT_MS };

static void take(const struct given *given, struct webhook *w)
{
    size_t i;
    json_t *type;

    *w = (struct webhook){ .retry_ms = given->retry_ms, .timeout_ms = given->timeout_ms };
    copy_text(w->name, sizeof w->name, given->name);
    copy_text(w->url, sizeof w->url, given->url);
    copy_text(w->secret, sizeof w->secret, given->secret ? given->secret : "");
    w->types = given->types ? 1U << WEBHOOK_TEST : webhook_types_usual();
    json_array_foreach((json_t *)given->types, i, type)
    {
        w->types |= 1U << webhook_type_parse(json_string_value(type), NULL);
    }
}

bool webhook_read(const json_t *json, struct webhook *ret_webhook, in_fault_fn *refuse,
                  void *arg)
{
    struct given given = defaults;

    if (!in_read(&posted_shape, json, &given, refuse, arg)) {
        return false;
    }
    take(&given, ret_webhook);
    return true;
}

/* The first line. */
static enum err_code read_secret(const char *path, const char *where,
                                 char ret_secret[SECRET_SIZE], struct err *err)
{
    char line[SECRET_SIZE + 2];
    const char *wrong = "must name a file with a secret";
    FILE *file = fopen(path, "re");

    if (!file) {
        return err_set_errno(err, errno, "%s/secret_file: %s", where, path);
    }
    if (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        wrong = secret_check(line);
        copy_text(ret_secret, SECRET_SIZE, line);
    }
    fclose(file);
    return wrong ? err_set(err, ERR_INVALID, "%s/secret_file: %s: %s", where, path, wrong)
                 : ERR_OK;
}

enum err_code webhook_read_configured(const json_t *json, const char *where,
                                      struct webhook *w, struct err *err)
{
    struct given given = defaults;

    if (in_read_file(&configured_shape, json, where, &given, err) != ERR_OK) {
        return err->code;
    }
    if (!given.secret == !given.secret_file) {
        return err_set(err, ERR_INVALID, "%s: must have either 'secret' or 'secret_file'",
                       where);
    }
    take(&given, w);
    w->configured = true;
    return given.secret ? ERR_OK : read_secret(given.secret_file, where, w->secret, err);
}
