/* What a peer's command prints (daemon/peers/peer_page.h). */
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/peers/peer_page.h"
#include "tests/fuzz/fuzz.h"

/* What is taken has its own names only, and its order and its time are right. */
static void check_run(const struct peer_page *page, int i, int64_t now_ms)
{
    const struct peer_run *run = &page->runs[i];
    const char *before = i ? page->runs[i - 1].run.id : page->since;

    FUZZ_CHECK(id_valid(run->run.id) && strcmp(run->run.id, before) > 0 &&
               strcmp(run->run.id, page->cursor) <= 0);
    if (run->refusal != PEER_TAKEN) {
        FUZZ_CHECK(peer_refusal_name(run->refusal) && run->words[0]);
        return;
    }
    FUZZ_CHECK(strncmp(run->device.host, "east/", 5) == 0);
    FUZZ_CHECK(strncmp(run->run.stack, "east:", 5) == 0 ||
               strncmp(run->run.key.workload, "east/", 5) == 0);
    FUZZ_CHECK(strstr(run->run.device, "east/") ||
               peer_device_is_unique(run->run.device));
    FUZZ_CHECK(run->run.finished_ms <= now_ms);
    FUZZ_CHECK(run->run.outcome != OUTCOME_COMPLETED ||
               (run->environment && run->digest_count > 0 && run->run.elements > 0));
}

static void run(const uint8_t *data, size_t size)
{
    static const int64_t now_ms = INT64_C(4102444800000);
    char *text = fuzz_text(data, size);
    struct peer_page page;
    struct err err;

    if (peer_page_read(text, strlen(text), "east", PEER_CURSOR_FIRST, now_ms, &page,
                       &err) == ERR_OK) {
        FUZZ_CHECK(strcmp(page.cursor, page.since) >= 0);
        for (int i = 0; i < page.count; i++) {
            check_run(&page, i, now_ms);
        }
    }
    peer_page_release(&page);
    free(text);
}

FUZZ_TARGET("peer_page", run);
