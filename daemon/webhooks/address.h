/* Where webhooks may not go: looked at is the address that is connected to, after names
 * were resolved, so that no name can lead there.  Pure.
 *
 * Loopback and private addresses are allowed: that is where a site's receivers are. */
#ifndef DAEMON_WEBHOOKS_ADDRESS_H
#define DAEMON_WEBHOOKS_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

enum { NETWORKS_MAX = 32 };

/* Networks that are allowed although they are among the refused ones. */
struct networks {
    struct network {
        unsigned char address[16]; /* IPv4 as ::ffff:a.b.c.d */
        int bits;
    } items[NETWORKS_MAX];
    int count;
};

/* Adds "169.254.7.0/24", "fe80::/10" or a single address.  False: it is no such thing, or
 * there are too many. */
bool networks_add(struct networks *networks, const char *text);

/* Why nothing is sent to ADDRESS, "the link-local address 169.254.1.1", or NULL.  What an
 * IPv6 address stands for in IPv4 counts as that. */
enum { REFUSAL_SIZE = 128 };
const char *address_refusal(const struct sockaddr *address,
                            const struct networks *allowed, char ret_text[REFUSAL_SIZE]);

/* The same of a numeric host of a URL; NULL for names, too. */
const char *host_refusal(const char *host, const struct networks *allowed,
                         char ret_text[REFUSAL_SIZE]);

#endif
