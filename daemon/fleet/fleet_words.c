#include "daemon/fleet/fleet_words.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/link/link.h"

static const char *const names[] = {
    [FLEET_STATE_OFFLINE] = "offline",   [FLEET_STATE_RELEASED] = "released",
    [FLEET_STATE_WITHHELD] = "withheld", [FLEET_STATE_WAITING] = "waiting",
    [FLEET_STATE_STARTING] = "starting", [FLEET_STATE_ENDING] = "ending",
    [FLEET_STATE_ONLINE] = "online",
};

const char *fleet_state_name(enum fleet_state state)
{
    return names[state];
}

bool fleet_host_may_queue(const struct fleet_host *host)
{
    return host->hello_ms < 0 || host->hello_ms > LINK_HELLO_MS;
}

enum fleet_state fleet_host_state(const struct fleet_host *host, int64_t now_ms)
{
    if (host->online) {
        return link_ending(host->link)              ? FLEET_STATE_ENDING
               : host->held && host->held_when_idle ? FLEET_STATE_WITHHELD
                                                    : FLEET_STATE_ONLINE;
    }
    if (host->held) {
        return FLEET_STATE_WITHHELD;
    }
    if (host->failed || host->refused) {
        return FLEET_STATE_OFFLINE;
    }
    if (host->link) {
        return host->note[0] || (fleet_host_may_queue(host) &&
                                 now_ms - host->started_ms > LINK_HELLO_MS)
                   ? FLEET_STATE_WAITING
                   : FLEET_STATE_STARTING;
    }
    return host->has_to_wait             ? FLEET_STATE_WAITING
           : host->needed && host->hello ? FLEET_STATE_RELEASED
                                         : FLEET_STATE_OFFLINE;
}

void fleet_host_name_unusable(struct fleet_host *host)
{
    const char *first = NULL, *why = "";
    int count = 0;
    size_t i;
    json_t *stack;

    json_array_foreach(json_object_get(host->hello, "stacks"), i, stack)
    {
        const char *cause = json_string_value(json_object_get(stack, "cause"));

        /* Those without a worker depend on others. */
        if (cause && json_is_string(json_object_get(stack, "worker")) && count++ == 0) {
            first = in_text_or_empty(stack, "name");
            why = cause;
        }
    }
    if (count > 1) {
        snprintf(host->unusable, sizeof host->unusable,
                 "%d stacks are not usable, and are asked again: %.63s: %.200s", count,
                 first, why);
    } else if (count == 1) {
        snprintf(host->unusable, sizeof host->unusable,
                 "stack %.63s is not usable, and is asked again: %.200s", first, why);
    } else {
        host->unusable[0] = '\0';
    }
}

/* What is wrong with HOST, which is online. */
static const char *online_trouble(const struct fleet_host *host,
                                  char ret_text[FLEET_WORDS_SIZE])
{
    char since[CLOCK_RFC3339_SIZE];

    if (host->silent_ms) {
        clock_rfc3339(host->silent_ms, since);
        snprintf(ret_text, FLEET_WORDS_SIZE, "the agent has not answered since %s",
                 since);
        return ret_text;
    }
    if (host->noisy_ms && !host->refusal[0]) {
        clock_rfc3339(host->noisy_ms, since);
        snprintf(ret_text, FLEET_WORDS_SIZE,
                 "more on its standard error than is logged, since %s", since);
        return ret_text;
    }
    return host->refusal[0] ? host->refusal : host->unusable;
}

const char *fleet_host_cause(const struct fleet_host *host,
                             char ret_text[FLEET_WORDS_SIZE])
{
    switch (host->state) {
    case FLEET_STATE_RELEASED:
        return "it has nothing to do; its agent is started when it has";
    case FLEET_STATE_WITHHELD:
        return host->held_cause;
    case FLEET_STATE_WAITING:
        if (host->note[0]) {
            return host->note;
        }
        if (host->link) {
            return "its launch command has brought no agent yet: it may stand in a queue";
        }
        snprintf(ret_text, FLEET_WORDS_SIZE,
                 "it waits for room: so many hosts of its entry are there as at_once "
                 "allows, %d",
                 host->at_once);
        return ret_text;
    case FLEET_STATE_ENDING:
        snprintf(ret_text, FLEET_WORDS_SIZE, "its agent was told to end: %.200s",
                 link_ending(host->link));
        return ret_text;
    default:
        return host->online ? online_trouble(host, ret_text) : host->cause;
    }
}

const char *fleet_host_trouble(const struct fleet_host *host,
                               char ret_text[FLEET_WORDS_SIZE])
{
    if (host->online) {
        return online_trouble(host, ret_text);
    }
    if (host->state == FLEET_STATE_WITHHELD || host->state == FLEET_STATE_RELEASED ||
        host->state == FLEET_STATE_WAITING ||
        (host->state == FLEET_STATE_STARTING &&
         (host->needed || fleet_host_may_queue(host)))) {
        return "";
    }
    return host->cause;
}
