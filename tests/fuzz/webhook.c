/* Webhooks: a URL, or a network, up to a line feed, and behind it what a receiver
 * answers.
 */
#include <string.h>

#include "daemon/webhooks/address.h"
#include "daemon/webhooks/answer_head.h"
#include "daemon/webhooks/retry.h"
#include "daemon/webhooks/sign.h"
#include "daemon/webhooks/url.h"
#include "tests/fuzz/fuzz.h"

/* What goes into the head of a request cannot end a line of it. */
static void check_url(const char *text)
{
    struct networks networks = { .count = 0 };
    char shown[URL_SIZE], refusal[REFUSAL_SIZE];
    struct url url;

    if (!url_read(text, &url)) {
        FUZZ_CHECK(!strpbrk(url.path, "\r\n \t#") && url.path[0] == '/');
        FUZZ_CHECK(!strpbrk(url.authority, "\r\n \t@/?#") && url.authority[0]);
        FUZZ_CHECK(url.host[0] && !strpbrk(url.host, "[]/@%"));
        url_shown(text, shown);
        FUZZ_CHECK(strncmp(text, shown, strcspn(text, "?")) == 0);
        host_refusal(url.host, &networks, refusal);
    }
    networks_add(&networks, text);
    FUZZ_CHECK(networks.count == 0 || networks.items[0].bits <= 128);
}

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *line = strchr(text, '\n');
    struct answer_head head;

    if (line) {
        size_t left = size - (size_t)(line - text) - 1;
        enum answer_head_state state = answer_head_read(line + 1, left, &head);

        FUZZ_CHECK(state != ANSWER_HEAD_WHOLE ||
                   (head.status >= 200 && head.status < 600));
        FUZZ_CHECK(left <= ANSWER_HEAD_MOST || state != ANSWER_HEAD_MORE);
        if (state == ANSWER_HEAD_WHOLE) {
            int64_t ms = retry_after_ms(head.retry_after, 0);

            FUZZ_CHECK(ms >= 0 && ms <= RETRY_AFTER_MOST_MS);
        }
        *line = '\0';
    }
    check_url(text);
    secret_check(text);
    free(text);
}

FUZZ_TARGET("webhook", run);
