#include "daemon/webhooks/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"

/* The first that fits says why.  Metadata services give whoever asks from inside the
 * credentials of the machine: docs of AWS, Google Cloud, Azure, Oracle and Alibaba Cloud.
 */
static const struct {
    const char *network, *what;
} refused[] = {
    { "169.254.169.254", "metadata" },  { "fd00:ec2::254", "metadata" },
    { "fd20:ce::254", "metadata" },     { "100.100.100.200", "metadata" },
    { "192.0.0.192", "metadata" },      { "168.63.129.16", "metadata" },
    { "169.254.0.0/16", "link-local" }, { "fe80::/10", "link-local" },
    { "224.0.0.0/4", "multicast" },     { "ff00::/8", "multicast" },
    { "255.255.255.255", "broadcast" }, { "240.0.0.0/4", "reserved" },
    { "0.0.0.0/8", "unspecified" },     { "::", "unspecified" },
};

/* 16 bytes of which the last four are an IPv4 address. */
static struct in6_addr mapped(const void *four)
{
    struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

    memcpy(&address.s6_addr[12], four, 4);
    return address;
}

static bool parse_address(const char *text, struct in6_addr *ret_address, bool *ret_is_4)
{
    struct in_addr four;

    *ret_is_4 = inet_pton(AF_INET, text, &four) == 1;
    if (*ret_is_4) {
        *ret_address = mapped(&four);
    }
    return *ret_is_4 || inet_pton(AF_INET6, text, ret_address) == 1;
}

static bool parse_network(const char *text, struct network *ret_network)
{
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    char text_address[INET6_ADDRSTRLEN];
    struct in6_addr address;
    bool is_4;
    char *end;
    long bits;

    if (length >= sizeof text_address) {
        return false;
    }
    copy_text(text_address, length + 1, text);
    if (!parse_address(text_address, &address, &is_4)) {
        return false;
    }
    memcpy(ret_network->address, &address, sizeof ret_network->address);
    bits = is_4 ? 32 : 128;
    if (slash) {
        long most = bits;

        bits = strtol(slash + 1, &end, 10);
        if (slash[1] < '0' || slash[1] > '9' || *end || bits > most) {
            return false;
        }
    }
    ret_network->bits = (int)bits + (is_4 ? 96 : 0);
    return true;
}

bool networks_add(struct networks *networks, const char *text)
{
    struct network network;

    if (networks->count == NETWORKS_MAX || !parse_network(text, &network)) {
        return false;
    }
    networks->items[networks->count++] = network;
    return true;
}

static bool holds(const struct network *network, const struct in6_addr *address)
{
    for (int bit = 0; bit < network->bits; bit++) {
        int mask = 0x80 >> (bit % 8);

        if ((network->address[bit / 8] ^ address->s6_addr[bit / 8]) & mask) {
            return false;
        }
    }
    return true;
}

/* The IPv4 address that ADDRESS leads to: mapped, compatible and translated ones (RFC
 * 2765), those of NAT64 (RFC 6052, and of a site, RFC 8215), ISATAP (RFC 5214), Teredo
 * (RFC 4380) and 6to4 (RFC 3056). */
static struct in6_addr embedded(const struct in6_addr *address)
{
    static const unsigned char nat64[12] = { 0, 0x64, 0xff, 0x9b };
    static const unsigned char site_nat64[6] = { 0, 0x64, 0xff, 0x9b, 0, 1 };
    static const unsigned char translated[12] = { [8] = 0xff, [9] = 0xff };
    static const unsigned char isatap[3] = { 0, 0x5e, 0xfe };
    static const unsigned char teredo[4] = { 0x20, 0x01 };
    static const unsigned char zero[12];
    const unsigned char *b = address->s6_addr;
    bool is_compatible =
        memcmp(b, zero, sizeof zero) == 0 && (b[12] || b[13] || b[14] || b[15] > 1);

    if (is_compatible || memcmp(b, nat64, sizeof nat64) == 0 ||
        memcmp(b, site_nat64, sizeof site_nat64) == 0 ||
        memcmp(b, translated, sizeof translated) == 0 ||
        ((b[8] == 0 || b[8] == 2) && memcmp(b + 9, isatap, sizeof isatap) == 0)) {
        return mapped(b + 12);
    }
    if (memcmp(b, teredo, sizeof teredo) == 0) {
        const unsigned char four[4] = { b[12] ^ 0xff, b[13] ^ 0xff, b[14] ^ 0xff,
                                        b[15] ^ 0xff };

        return mapped(four);
    }
    if (b[0] == 0x20 && b[1] == 0x02) {
        return mapped(b + 2);
    }
    return *address;
}

static const char *refusal_of(const struct in6_addr *address,
                              const struct networks *allowed, char ret_text[REFUSAL_SIZE])
{
    bool is_4 = IN6_IS_ADDR_V4MAPPED(address);
    char text[INET6_ADDRSTRLEN] = "";

    for (int i = 0; i < allowed->count; i++) {
        if (holds(&allowed->items[i], address)) {
            return NULL;
        }
    }
    inet_ntop(is_4 ? AF_INET : AF_INET6, &address->s6_addr[is_4 ? 12 : 0], text,
              sizeof text);
    for (int i = 0; i < COUNT_OF(refused); i++) {
        struct network network;

        if (parse_network(refused[i].network, &network) && holds(&network, address)) {
            snprintf(ret_text, REFUSAL_SIZE, "the %s address %s", refused[i].what, text);
            return ret_text;
        }
    }
    return NULL;
}

/* What an address stands for counts beside the address: both may be refused. */
static const char *refusal(const struct in6_addr *address, const struct networks *allowed,
                           char ret_text[REFUSAL_SIZE])
{
    struct in6_addr meant = embedded(address);
    const char *text = refusal_of(address, allowed, ret_text);

    return text ? text : refusal_of(&meant, allowed, ret_text);
}

const char *address_refusal(const struct sockaddr *address,
                            const struct networks *allowed, char ret_text[REFUSAL_SIZE])
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    if (address->sa_family == AF_INET) {
        memcpy(&four, address, sizeof four);
        six.sin6_addr = mapped(&four.sin_addr);
        return refusal(&six.sin6_addr, allowed, ret_text);
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&six, address, sizeof six);
        return refusal(&six.sin6_addr, allowed, ret_text);
    }
    snprintf(ret_text, REFUSAL_SIZE, "an address of family %d", address->sa_family);
    return ret_text;
}

const char *host_refusal(const char *host, const struct networks *allowed,
                         char ret_text[REFUSAL_SIZE])
{
    struct in6_addr address;
    bool is_4;

    return parse_address(host, &address, &is_4) ? refusal(&address, allowed, ret_text)
                                                : NULL;
}
