#include "daemon/client/place.h"

#include <stdlib.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/id.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/client/answers.h"
#include "daemon/client/wait.h"

/* What the localising job says itself, or has otherwise. */
static const char *const replaced[] = {
    "workloads", "variants",         "sizes",  "dtypes",     "seed",     "seeds",
    "devices",   "stacks",           "runs",   "iterations", "localise", "runs_max",
    "survey",    "stop_when_varies", "probes", "note"
};

static const struct {
    const char *member, *of_item;
} chosen[] = { { "workloads", "workload" }, { "variants", "variant" },
               { "sizes", "size" },         { "dtypes", "dtype" },
               { "seeds", "seed" },         { "devices", "device" },
               { "stacks", "stack" } };

char *place_request(const json_t *request, const json_t *item, int runs_max)
{
    json_t *body = json_is_object(request) ? json_copy((json_t *)request) : json_object();
    char *text;

    for (int i = 0; i < COUNT_OF(replaced); i++) {
        json_object_del(body, replaced[i]);
    }
    for (int i = 0; i < COUNT_OF(chosen); i++) {
        json_object_set_new(body, chosen[i].member,
                            json_pack("[s]", in_text_or_empty(item, chosen[i].of_item)));
    }
    json_object_set_new(body, "localise", json_true());
    json_object_set_new(body, "runs", json_integer(runs_max < 5 ? runs_max : 5));
    json_object_set_new(body, "runs_max", json_integer(runs_max));
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

/* What GET /v1/jobs/{id}/localisation says. */
static char *words_of(const struct server *server, const char *id)
{
    char *path = xasprintf("/v1/jobs/%s/localisation", id);
    int code;
    json_t *found = client_ask(server, "GET", path, NULL, NULL, &code);
    const char *reason = in_text(found, "reason");
    char *words = xasprintf("%s (job %s)",
                            reason ? reason : "where its runs diverge was not found", id);

    json_decref(found);
    free(path);
    return words;
}

char *place_find(const struct server *server, const char *body)
{
    char key[ID_SIZE], *id, *words = NULL;
    json_t *job;
    int code;

    id_new(clock_wall_ms(), key);
    job = client_ask(server, "POST", "/v1/jobs", body, key, &code);
    if (!job) {
        return xstrdup("where its runs diverge could not be asked");
    }
    id = url_escape(in_text_or_empty(job, "id"));
    json_decref(job);
    job = client_wait(server, id, &code);
    words = job ? words_of(server, id)
                : xstrdup("the service went away before it knew where its runs diverge");
    json_decref(job);
    free(id);
    return words;
}
