/* Who is told of what happens: service_open_webhooks and its like of daemon/service.h. */
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/fleet/fleet_presence.h"
#include "daemon/service.h"
#include "db/webhooks/outbox.h"

enum { HOST_NAME_SIZE = 256 };

/* What receivers see as where events come from. */
static void name_source(const struct service *s)
{
    char host[HOST_NAME_SIZE] = "localhost";
    char source[HOST_NAME_SIZE + 32];

    gethostname(host, sizeof host - 1);
    snprintf(source, sizeof source, "reprod://%s:%d", host, api_port(s->api));
    outbox_set_source(source);
}

void service_configure_webhooks(struct service *s)
{
    if (s->delivery) {
        delivery_configure(s->delivery, s->config.webhooks, s->config.webhook_count,
                           &s->config.webhook_networks);
    }
}

void service_open_webhooks(struct service *s)
{
    const struct delivery_options options = { .loop = &s->loop,
                                              .store = s->store,
                                              .ca_file = s->config.webhook_ca };

    if (s->reads_only) {
        return;
    }
    name_source(s);
    s->notices = notices_new(s->store);
    if (s->config.webhooks_wait) {
        return; /* what happens waits for the next start */
    }
    s->delivery = delivery_new(&options);
    service_configure_webhooks(s);
}

void service_notice(struct service *s)
{
    struct presence *presence = fleet_presence(s->fleet);
    const char *cause = s->health.conditions[HEALTH_DATABASE].cause;
    bool looked = s->checked_ms && !s->check;

    notices_tick(s->notices, presence, cause[0] || looked ? cause : NULL, clock_wall_ms(),
                 clock_monotonic_ms());
    presence_unref(presence);
}
