#include "daemon/config/peers.h"

#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

/* Names stand before others ("east/gpu-001") in a column, in a path, in a shell. */
enum { NAME_MAX_BYTES = 32 };

static const char PLACE[] = "{cursor}";

static void check_name(struct in_reader *r, const json_t *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "0123456789._-";
    const char *text = json_string_value(name);

    if (strspn(text, allowed) != strlen(text)) {
        in_refuse(r, NULL, "must have letters, digits, '.', '_' and '-' only");
    }
}

static void check_launch(struct in_reader *r, const json_t *launch)
{
    const json_t *word;
    size_t i;

    json_array_foreach((json_t *)launch, i, word)
    {
        if (json_is_string(word) && strstr(json_string_value(word), PLACE)) {
            return;
        }
    }
    in_refuse(r, NULL,
              "no word has {cursor}, so it would always begin with the first run");
}

static const struct in_member a_word = { .kind = IN_TEXT };

static const struct in_member members[] = {
    { "name", IN_TEXT, .least = 1, .most = NAME_MAX_BYTES, .check = check_name },
    { "launch", IN_ARRAY, .least = 1, .item = &a_word, .check = check_launch,
      .wanted = "must be [program, argument, ...]" },
    { "every_seconds", IN_INT, .flags = IN_OPTIONAL, .least = 1, .most = 24 * 3600 },
};
static const struct in_shape shape = IN_SHAPE(members, "a peer has no member");
const struct in_member peers_element = { .kind = IN_OBJECT, .shape = &shape };

/* A host NAME/… or a stack NAME:… would be taken for one of the peer's. */
static const char *named_like(const json_t *list, const char *name, char between)
{
    size_t i, length = strlen(name);
    const json_t *each;

    json_array_foreach((json_t *)list, i, each)
    {
        const char *text = in_text_or_empty(each, "name");

        if (strncmp(text, name, length) == 0 && text[length] == between) {
            return text;
        }
    }
    return NULL;
}

enum err_code peers_check(const json_t *peers, const json_t *hosts, const json_t *stacks,
                          const char *file, struct err *err)
{
    size_t i, other;

    for (i = 0; i < json_array_size(peers); i++) {
        const char *name = in_text_or_empty(json_array_get(peers, i), "name");
        const char *host = named_like(hosts, name, '/');
        const char *stack = named_like(stacks, name, ':');

        for (other = 0; other < i; other++) {
            if (strcmp(in_text_or_empty(json_array_get(peers, other), "name"), name) ==
                0) {
                return err_set(err, ERR_INVALID,
                               "%s: /peers/%zu/name: '%s' is listed twice", file, i,
                               name);
            }
        }
        if (host || stack) {
            return err_set(err, ERR_INVALID,
                           "%s: /peers/%zu/name: %s '%.100s' could be one of peer '%s'",
                           file, i, host ? "host" : "stack", host ? host : stack, name);
        }
    }
    return ERR_OK;
}

static char *with_cursor(const char *word, const char *cursor)
{
    struct buf text = BUF_INIT;

    for (const char *at; (at = strstr(word, PLACE)) != NULL;
         word = at + sizeof PLACE - 1) {
        buf_printf(&text, "%.*s%s", (int)(at - word), word, cursor);
    }
    buf_puts(&text, word);
    return buf_detach(&text, NULL);
}

char **peers_command(const json_t *peer, const char *cursor)
{
    const json_t *launch = json_object_get(peer, "launch"), *word;
    char **argv = xcalloc(json_array_size(launch) + 1, sizeof *argv);
    size_t i;

    json_array_foreach((json_t *)launch, i, word)
    {
        argv[i] = with_cursor(json_string_value(word), cursor);
    }
    return argv;
}

int peers_every_seconds(const json_t *peer)
{
    int64_t seconds = in_int(peer, "every_seconds");

    return seconds ? (int)seconds : PEER_EVERY_SECONDS;
}
