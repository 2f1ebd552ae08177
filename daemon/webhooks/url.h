/* The URL of a webhook, taken apart.  Pure. */
#ifndef DAEMON_WEBHOOKS_URL_H
#define DAEMON_WEBHOOKS_URL_H

#include <stdbool.h>

enum { URL_SIZE = 1024, URL_HOST_SIZE = 256 };

struct url {
    bool tls;
    char host[URL_HOST_SIZE]; /* without brackets */
    char port[6];
    char authority[URL_HOST_SIZE + 16]; /* as the Host header has it */
    char path[URL_SIZE];                /* with the query; begins with "/" */
};

/* Of http://… or https://….  NULL, or what is wrong: "must …". */
const char *url_read(const char *text, struct url *ret_url);

/* TEXT as people are shown it: the query, in which a secret may be, is left out. */
void url_shown(const char *text, char ret_text[URL_SIZE]);

#endif
