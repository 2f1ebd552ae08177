/* Where webhooks may not go, and how their URLs are taken apart. */
#include "daemon/webhooks/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/webhooks/url.h"

static const struct networks none = { .count = 0 };

static const char *refusal(const char *address, const struct networks *allowed,
                           char text[REFUSAL_SIZE])
{
    struct sockaddr_in four = { .sin_family = AF_INET };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

    text[0] = '\0';
    if (inet_pton(AF_INET, address, &four.sin_addr) == 1) {
        return address_refusal((const struct sockaddr *)&four, allowed, text);
    }
    assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
    return address_refusal((const struct sockaddr *)&six, allowed, text);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *address, *says;
    } cases[] = {
        { "169.254.169.254", "the metadata address 169.254.169.254" },
        { "::ffff:169.254.169.254", "the metadata address 169.254.169.254" },
        { "::169.254.169.254", "the metadata address 169.254.169.254" },
        { "64:ff9b::169.254.169.254", "the metadata address 169.254.169.254" },
        { "64:ff9b:1::169.254.169.254", "the metadata address 169.254.169.254" },
        { "::ffff:0:169.254.169.254", "the metadata address 169.254.169.254" },
        { "2001:0:1:2:3:4:5601:5601", "the metadata address 169.254.169.254" },
        { "fd00::5efe:169.254.169.254", "the metadata address 169.254.169.254" },
        { "fd00::200:5efe:169.254.1.1", "the link-local address 169.254.1.1" },
        { "fe80::5efe:10.1.2.3", "the link-local address fe80::5efe:a01:203" },
        { "2002:a9fe:a9fe::1", "the metadata address 169.254.169.254" },
        { "fd00:ec2::254", "the metadata address fd00:ec2::254" },
        { "fd20:ce::254", "the metadata address fd20:ce::254" },
        { "100.100.100.200", "the metadata address 100.100.100.200" },
        { "168.63.129.16", "the metadata address 168.63.129.16" },
        { "169.254.0.1", "the link-local address 169.254.0.1" },
        { "169.254.255.255", "the link-local address 169.254.255.255" },
        { "fe80::1", "the link-local address fe80::1" },
        { "febf:ffff::1", "the link-local address febf:ffff::1" },
        { "224.0.0.1", "the multicast address 224.0.0.1" },
        { "239.255.255.255", "the multicast address 239.255.255.255" },
        { "ff02::1", "the multicast address ff02::1" },
        { "255.255.255.255", "the broadcast address 255.255.255.255" },
        { "240.0.0.1", "the reserved address 240.0.0.1" },
        { "0.0.0.0", "the unspecified address 0.0.0.0" },
        { "0.1.2.3", "the unspecified address 0.1.2.3" },
        { "::", "the unspecified address ::" },
    };
    static const char *const allowed[] = { "127.0.0.1",
                                           "::1",
                                           "10.1.2.3",
                                           "192.168.0.1",
                                           "172.16.0.1",
                                           "fd00::1",
                                           "169.253.1.1",
                                           "169.255.1.1",
                                           "fec0::1",
                                           "93.184.215.14",
                                           "2001:db8::1",
                                           "223.255.255.1",
                                           "fd00::5efe:10.1.2.3",
                                           "2001:0:1:2:3:4:f5fe:fdfc",
                                           "64:ff9b:1::10.1.2.3" };
    char text[REFUSAL_SIZE];
    struct sockaddr other = { .sa_family = AF_UNIX };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *said = refusal(cases[i].address, &none, text);

        if (!said || strcmp(said, cases[i].says) != 0) {
            fail_msg("%s: %s", cases[i].address, said ? said : "allowed");
        }
    }
    for (int i = 0; i < COUNT_OF(allowed); i++) {
        if (refusal(allowed[i], &none, text)) {
            fail_msg("%s: %s", allowed[i], text);
        }
    }
    assert_non_null(address_refusal(&other, &none, text));
    assert_null(host_refusal("metadata.google.internal", &none, text)); /* not yet */
    assert_non_null(host_refusal("169.254.1.1", &none, text));
    assert_null(host_refusal("10.0.0.1", &none, text));
}

static void test_networks(void **state)
{
    static const char *const wrong[] = {
        "",
        "10",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "fe80::/129",
        "a.example",
        "10.0.0.0/8 ",
        "fe80:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"
    };
    struct networks networks = { .count = 0 };
    char text[REFUSAL_SIZE];

    (void)state;
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        if (networks_add(&networks, wrong[i])) {
            fail_msg("'%s' is no network", wrong[i]);
        }
    }
    assert_true(networks_add(&networks, "169.254.7.0/24"));
    assert_true(networks_add(&networks, "fe80::1"));
    assert_null(refusal("169.254.7.9", &networks, text));
    assert_null(refusal("::ffff:169.254.7.9", &networks, text));
    assert_non_null(refusal("169.254.8.9", &networks, text));
    assert_null(refusal("fe80::1", &networks, text));
    assert_non_null(refusal("fe80::2", &networks, text));
    while (networks.count < NETWORKS_MAX) {
        assert_true(networks_add(&networks, "10.0.0.0/8"));
    }
    assert_false(networks_add(&networks, "10.0.0.0/8"));
}

static void test_urls(void **state)
{
    static const struct {
        const char *text, *host, *port, *authority, *path;
        bool tls;
    } cases[] = {
        { "http://a.example", "a.example", "80", "a.example", "/", false },
        { "HTTPS://a/x?y=z", "a", "443", "a", "/x?y=z", true },
        { "http://a:8080?q", "a", "8080", "a:8080", "/?q", false },
        { "https://[::1]:7/p", "::1", "7", "[::1]:7", "/p", true },
        { "http://10.0.0.1/", "10.0.0.1", "80", "10.0.0.1", "/", false },
    };
    static const char *const wrong[] = {
        "",
        "a",
        "ftp://a/",
        "http://",
        "http:///a",
        "http://a b",
        "http://a/#f",
        "http://u@a/",
        "http://u:p@a/",
        "http://a:/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:8x/",
        "http://[::1/",
        "http://[a]/",
        "http://[::1]x/",
        "http://a\r\nb/",
        "http://\xc3\xa4/",
        "http://a%41/",
        "http://:80/",
        "http://[fe80::1%25eth0]/",
    };
    char longest[URL_SIZE + 1], shown[URL_SIZE];
    struct url url;

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        assert_null(url_read(cases[i].text, &url));
        assert_string_equal(url.host, cases[i].host);
        assert_string_equal(url.port, cases[i].port);
        assert_string_equal(url.authority, cases[i].authority);
        assert_string_equal(url.path, cases[i].path);
        assert_int_equal(url.tls, cases[i].tls);
    }
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        if (!url_read(wrong[i], &url)) {
            fail_msg("'%s' is no URL", wrong[i]);
        }
    }
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "http://a/", 9);
    longest[URL_SIZE] = '\0';
    assert_non_null(url_read(longest, &url));
    longest[URL_SIZE - 1] = '\0';
    assert_null(url_read(longest, &url));
    assert_int_equal(strlen(url.path), URL_SIZE - 1 - 8);
    url_shown("https://a/b?token=1", shown);
    assert_string_equal(shown, "https://a/b?…");
    url_shown("https://a/b", shown);
    assert_string_equal(shown, "https://a/b");
    longest[URL_SIZE - 3] = '?';
    url_shown(longest, shown);
    assert_null(strstr(shown, "?a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_urls),
    };

    return cmocka_run_group_tests_name("webhook addresses", tests, NULL, NULL);
}
