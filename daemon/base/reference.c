#include "daemon/base/reference.h"

#include <stddef.h>
#include <string.h>

enum { MONTH_LENGTH = 7 };

const char *const reference_kinds[] = {
    "issue",  "pull request", "commit",  "release note", "documentation",
    "thread", "slides",       "article", "source",       NULL
};

bool reference_is_kind(const char *kind)
{
    for (int i = 0; reference_kinds[i]; i++) {
        if (kind && strcmp(reference_kinds[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

bool reference_is_url(const char *url)
{
    static const char scheme[] = "https://";
    const char *rest = url ? url + sizeof scheme - 1 : NULL;

    if (!url || strncmp(url, scheme, sizeof scheme - 1) != 0 || !*rest) {
        return false;
    }
    for (; *rest; rest++) {
        if (*rest <= ' ' || *rest > '~' || strchr("\"'<>\\^`{|}", *rest)) {
            return false;
        }
    }
    return true;
}

/* The length of the state's word at TEXT; 0: it is none. */
static size_t word_length(const char *text)
{
    static const char *const words[] = { "open ", "closed ", "merged " };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(text, words[i], strlen(words[i])) == 0) {
            return strlen(words[i]);
        }
    }
    return 0;
}

static bool is_month(const char *text)
{
    static const char digits[] = "0123456789";

    if (strspn(text, digits) != 4 || text[4] != '-' || strspn(text + 5, digits) != 2) {
        return false;
    }
    return (text[5] == '0' && text[6] != '0') || (text[5] == '1' && text[6] <= '2');
}

bool reference_is_state(const char *state)
{
    const char *before = NULL; /* the month of the state before */

    while (state) {
        size_t length = word_length(state);

        state += length;
        if (length == 0 || !is_month(state) ||
            (before && strncmp(before, state, MONTH_LENGTH) >= 0)) {
            return false;
        }
        before = state;
        state += MONTH_LENGTH;
        if (!*state) {
            return true;
        }
        if (strncmp(state, ", ", 2) != 0) {
            return false;
        }
        state += 2;
    }
    return false;
}
