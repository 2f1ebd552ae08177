#include "daemon/webhooks/types.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"

static const struct {
    const char *name;
    bool usual;
} types[WEBHOOK_TYPES] = {
#define X(code, name, usual) [code] = { name, usual },
    WEBHOOK_TYPE_MAP(X)
#undef X
};

const char *webhook_type_name(enum webhook_type type)
{
    return types[type].name;
}

enum webhook_type webhook_type_parse(const char *name, char ret_hint[NEAREST_HINT_SIZE])
{
    const char *names[WEBHOOK_TYPES];
    size_t prefix = strlen(WEBHOOK_TYPE_PREFIX);
    int i;

    if (strncmp(name, WEBHOOK_TYPE_PREFIX, prefix) == 0) {
        name += prefix;
    }
    for (i = 0; i < WEBHOOK_TYPES && strcmp(name, types[i].name) != 0; i++) {
        names[i] = types[i].name;
    }
    if (ret_hint) {
        ret_hint[0] = '\0';
        if (i == WEBHOOK_TYPES) {
            nearest_hint(name, names, WEBHOOK_TYPES, ret_hint);
        }
    }
    return (enum webhook_type)i;
}

unsigned webhook_types_usual(void)
{
    unsigned set = 0;

    for (int i = 0; i < WEBHOOK_TYPES; i++) {
        set |= types[i].usual ? 1U << i : 0;
    }
    return set;
}

void webhook_types_text(unsigned set, char ret_text[WEBHOOK_TYPES_SIZE])
{
    size_t length = 0;

    ret_text[0] = '\0';
    for (int i = 0; i < WEBHOOK_TYPES; i++) {
        if (set & 1U << i) {
            length += (size_t)snprintf(ret_text + length, WEBHOOK_TYPES_SIZE - length,
                                       "%s%s", length ? " " : "", types[i].name);
        }
    }
}

unsigned webhook_types_parse(const char *text)
{
    unsigned set = 0;

    while (*text) {
        size_t length = strcspn(text, " ");
        char name[64];

        copy_text(name, length < sizeof name ? length + 1 : sizeof name, text);
        for (int i = 0; i < WEBHOOK_TYPES; i++) {
            set |= strcmp(name, types[i].name) == 0 ? 1U << i : 0;
        }
        text += length + (text[length] == ' ');
    }
    return set;
}
