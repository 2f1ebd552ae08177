#include "api/job_refusal.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/reply.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

static bool lacks_names_alone(const struct problems *problems)
{
    for (int i = 0; i < problems->count; i++) {
        switch (problems->items[i].kind) {
        case PROBLEM_UNKNOWN_WORKLOAD:
        case PROBLEM_UNKNOWN_VARIANT:
        case PROBLEM_UNKNOWN_SIZE:
        case PROBLEM_UNKNOWN_DTYPE:
        case PROBLEM_UNKNOWN_DEVICE:
        case PROBLEM_UNKNOWN_STACK:
            break;
        default:
            return false;
        }
    }
    return true;
}

/* Its worker did not say what it is. */
static bool is_unusable(const json_t *stack)
{
    return json_is_string(json_object_get(stack, "cause")) &&
           json_is_string(json_object_get(stack, "worker")) &&
           !json_is_string(json_object_get(stack, "worker_build"));
}

/* Whether each stack that is not known is one that is not usable: another one is
 * misspelt. */
static bool are_unusable(const struct problems *problems, const json_t *stacks)
{
    for (int i = 0; i < problems->count; i++) {
        bool found = problems->items[i].kind != PROBLEM_UNKNOWN_STACK;
        json_t *stack;
        size_t s;

        json_array_foreach((json_t *)stacks, s, stack)
        {
            char *words = xasprintf("no stack '%s'", in_text_or_empty(stack, "name"));

            found =
                found || (is_unusable(stack) && strstr(problems->items[i].detail, words));
            free(words);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* The first stack that is not usable; NULL: there is none.  Caller frees. */
static char *find_unusable(const json_t *stacks)
{
    size_t i;
    json_t *stack;

    json_array_foreach((json_t *)stacks, i, stack)
    {
        const char *cause = json_string_value(json_object_get(stack, "cause"));

        if (is_unusable(stack)) {
            return xasprintf("stack %.63s of host %.63s is not usable: %.300s",
                             in_text_or_empty(stack, "name"),
                             in_text_or_empty(stack, "host"), cause);
        }
    }
    return NULL;
}

/* The first host none of whose stacks is known. */
static char *find_unheard(const struct presence *presence, const json_t *stacks)
{
    for (int h = 0; h < presence->host_count; h++) {
        const struct presence_host *host = &presence->hosts[h];
        bool known = host->online;
        size_t s;
        json_t *stack;

        json_array_foreach((json_t *)stacks, s, stack)
        {
            known = known || strcmp(in_text_or_empty(stack, "host"), host->name) == 0;
        }
        if (!known) {
            return xasprintf("host %.63s has not said what it can run: %.300s",
                             host->name, host->cause ? host->cause : "");
        }
    }
    return NULL;
}

/* The stack that PROBLEM does not know, where it is known and has no device; NULL: it is
 * misspelt, or something else is wrong. */
static const json_t *without_device(const struct problem *problem, const json_t *stacks)
{
    size_t i;
    json_t *stack;

    json_array_foreach((json_t *)stacks, i, stack)
    {
        char *words = xasprintf("no stack '%s'", in_text_or_empty(stack, "name"));
        bool named = problem->kind == PROBLEM_UNKNOWN_STACK &&
                     strstr(problem->detail, words) != NULL;

        free(words);
        if (named && json_is_string(json_object_get(stack, "worker_build")) &&
            json_is_string(json_object_get(stack, "cause")) &&
            json_array_size(json_object_get(stack, "devices")) == 0) {
            return stack;
        }
    }
    return NULL;
}

void refuse_job(struct request *r)
{
    const struct api_hooks *hooks = &r->api->hooks;
    const struct problem *first = &r->problems.items[0];
    json_t *stacks = hooks->stacks(hooks->arg);
    struct presence *presence = hooks->presence(hooks->arg);
    const json_t *idle = r->problems.count == 1 ? without_device(first, stacks) : NULL;
    char *missing = are_unusable(&r->problems, stacks) ? find_unusable(stacks) : NULL;

    if (!missing) {
        missing = find_unheard(presence, stacks);
    }
    if (idle) {
        reply_problem(r, PROBLEM_NO_DEVICE,
                      "%s: stack '%.63s' of host %.63s has no device: %.300s",
                      first->pointer, in_text_or_empty(idle, "name"),
                      in_text_or_empty(idle, "host"), in_text_or_empty(idle, "cause"));
    } else if (missing && lacks_names_alone(&r->problems)) {
        reply_problem(r, PROBLEM_NOT_READY, "%s: %s; but %s", first->pointer,
                      first->detail, missing);
    } else {
        reply_problems(r);
    }
    free(missing);
    presence_unref(presence);
    json_decref(stacks);
}
