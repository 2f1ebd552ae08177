#include "daemon/webhooks/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/mem.h"

static const char no_scheme[] = "must begin with http:// or https://";
static const char no_host[] =
    "must name a host: letters, digits, '-', '.' and '_', or a "
    "numeric address, which has brackets where it has colons";
static const char no_port[] = "must have a port from 1 to 65535 behind the colon";

static bool takes_port(const char *text, size_t length, char ret_port[6])
{
    long port;

    if (length < 1 || length > 5 || strspn(text, "0123456789") < length) {
        return false;
    }
    copy_text(ret_port, length + 1, text);
    port = strtol(ret_port, NULL, 10);
    return port > 0 && port < 65536;
}

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i])) {
            return false;
        }
    }
    return length > 0 && length < URL_HOST_SIZE;
}

/* RET_END: behind the host.  A zone ("%eth0") is no part of an address here. */
static bool takes_host(const char *text, size_t length, struct url *url, size_t *ret_end)
{
    struct in6_addr parsed;
    const char *close = text[0] == '[' ? memchr(text, ']', length) : NULL;

    if (text[0] != '[') {
        *ret_end = strcspn(text, ":/?");
        *ret_end = *ret_end < length ? *ret_end : length;
        if (!is_name(text, *ret_end)) {
            return false;
        }
        copy_text(url->host, *ret_end + 1, text);
        return true;
    }
    if (!close || close - text > INET6_ADDRSTRLEN) {
        return false;
    }
    copy_text(url->host, (size_t)(close - text), text + 1);
    *ret_end = (size_t)(close - text) + 1;
    return inet_pton(AF_INET6, url->host, &parsed) == 1;
}

const char *url_read(const char *text, struct url *url)
{
    const char *at = text;
    size_t length, end;

    *url = (struct url){ .tls = false };
    if (strlen(text) >= URL_SIZE) {
        return "must be shorter than 1024 bytes";
    }
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~') {
            return "must be ASCII without spaces: percent-encode what is not";
        }
    }
    if (strncasecmp(text, "https://", 8) == 0) {
        url->tls = true;
        at = text + 8;
    } else if (strncasecmp(text, "http://", 7) == 0) {
        at = text + 7;
    } else {
        return no_scheme;
    }
    if (strchr(text, '#')) {
        return "must have no fragment ('#')";
    }
    length = strcspn(at, "/?");
    if (memchr(at, '@', length)) {
        return "must have no user and no password: what is sent is signed with the "
               "secret";
    }
    if (!takes_host(at, length, url, &end)) {
        return no_host;
    }
    copy_text(url->port, sizeof url->port, url->tls ? "443" : "80");
    if (end < length &&
        (at[end] != ':' || !takes_port(at + end + 1, length - end - 1, url->port))) {
        return no_port;
    }
    copy_text(url->authority, length + 1, at);
    url->path[0] = '/';
    copy_text(url->path + (at[length] != '/'), sizeof url->path - 1, at + length);
    return NULL;
}

void url_shown(const char *text, char ret_text[URL_SIZE])
{
    static const char cut[] = "…";
    char *query;

    copy_text(ret_text, URL_SIZE, text);
    query = strchr(ret_text, '?');
    if (query && query[1]) {
        query[1] = '\0';
        if (query + 1 + sizeof cut <= ret_text + URL_SIZE) {
            copy_text(query + 1, sizeof cut, cut);
        }
    }
}
