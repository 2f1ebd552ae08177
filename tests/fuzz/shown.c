/* What workers and agents say, as people are shown it: nothing of it acts on a terminal.
 */
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/text.h"
#include "tests/fuzz/fuzz.h"

static void check_harmless(const struct buf *shown, const char *kept)
{
    size_t at = 0;

    while (at < shown->length) {
        size_t bytes = text_sequence(shown->data + at, shown->length - at);
        int control = text_control(shown->data + at, shown->length - at);

        FUZZ_CHECK(bytes > 0);
        FUZZ_CHECK(control < 0 ||
                   (control > 0 && control < 128 && strchr(kept, control)));
        at += bytes;
    }
}

static void run(const uint8_t *data, size_t size)
{
    struct buf shown = BUF_INIT, again = BUF_INIT, csv = BUF_INIT;
    char *text = fuzz_text(data, size);

    text_show(&shown, (const char *)data, size, "\n\t");
    check_harmless(&shown, "\n\t");
    text_show(&again, shown.data ? shown.data : "", shown.length, "\n\t");
    FUZZ_CHECK(again.length == shown.length &&
               (shown.length == 0 || memcmp(again.data, shown.data, shown.length) == 0));
    text_csv(&csv, text);
    check_harmless(&csv, "");
    text_wrap(&csv, text, 20, 3);
    check_harmless(&csv, "\n");
    FUZZ_CHECK(text_width(text) >= 0);
    buf_release(&shown);
    buf_release(&again);
    buf_release(&csv);
    free(text);
}

FUZZ_TARGET("shown", run);
