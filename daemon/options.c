/* The options that the commands share. */
#include "daemon/commands.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

struct words {
    int count;
    char **words;
    int at; /* the one being read */
};

/* Whether the word being read is option NAME, "--name VALUE" or "--name=VALUE"; moves
 * onto a separate value.  On an error ret_value is "" and ERR is set. */
static bool is_option(struct words *w, const char *name, const char **ret_value,
                      struct err *err)
{
    const char *word = w->words[w->at];
    size_t length = strlen(name);

    if (!word || strncmp(word, name, length) != 0 ||
        (word[length] != '\0' && word[length] != '=')) {
        return false;
    }
    *ret_value = "";
    if (word[length] == '=') {
        *ret_value = word + length + 1;
    } else if (w->at + 1 < w->count) {
        *ret_value = w->words[++w->at];
    } else {
        err_set(err, ERR_INVALID, "%s needs a value", name);
    }
    return true;
}

static enum err_code set_data(struct config *config, const char *value, struct err *err)
{
    if (!value[0]) {
        return err_set(err, ERR_INVALID, "--data needs a folder");
    }
    free(config->data);
    config->data = xstrdup(value);
    return ERR_OK;
}

static enum err_code read_word(struct words *w, struct config *config,
                               const char **ret_argument, struct err *err)
{
    const char *word = w->words[w->at];
    const char *value;

    if (is_option(w, "--config", &value, err)) {
        return err->code; /* was read first */
    }
    if (is_option(w, "--listen", &value, err)) {
        return err->code ? err->code : config_set_listen(config, value, err);
    }
    if (is_option(w, "--data", &value, err)) {
        return err->code ? err->code : set_data(config, value, err);
    }
    if (is_option(w, "--read-only", &value, err)) {
        free(config->read_only);
        config->read_only = xstrdup(value);
        return err->code;
    }
    if (strcmp(word, "--accept-loss") == 0) {
        config->accept_loss = true;
        return ERR_OK;
    }
    if (strcmp(word, "--no-survey") == 0) {
        config->survey = false;
        config->background.budget_percent = 0;
        return ERR_OK;
    }
    if (strcmp(word, "--no-webhooks") == 0) {
        config->webhooks_wait = true;
        return ERR_OK;
    }
    if (strcmp(word, "--full") == 0) {
        config->fsck_full = true;
        return ERR_OK;
    }
    if (word[0] == '-') {
        return err_set(err, ERR_INVALID, "unknown option '%s'", word);
    }
    if (*ret_argument) {
        return err_set(err, ERR_INVALID, "unexpected argument '%s'", word);
    }
    *ret_argument = word;
    return ERR_OK;
}

enum err_code options_read(int argc, char **argv, struct config *config,
                           const char **ret_argument, struct err *err)
{
    struct words w = { argc, argv, 1 };
    const char *file;

    *ret_argument = NULL;
    err->code = ERR_OK;
    for (; w.at < argc && err->code == ERR_OK; w.at++) {
        if (is_option(&w, "--config", &file, err) && err->code == ERR_OK) {
            config_read(config, file, err);
        }
    }
    for (w.at = 1; w.at < argc && err->code == ERR_OK; w.at++) {
        read_word(&w, config, ret_argument, err);
    }
    return err->code;
}
