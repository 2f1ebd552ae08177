#include "daemon/options.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

/* The value of the option at *INDEX, "--name VALUE" or "--name=VALUE"; NULL if it is not
 * NAME.  Moves *INDEX onto a separate value. */
static const char *option_value(int argc, char **argv, int *index, const char *name,
                                struct err *err)
{
    const char *word = argv[*index];
    size_t length = strlen(name);

    if (strncmp(word, name, length) != 0 ||
        (word[length] != '\0' && word[length] != '=')) {
        return NULL;
    }
    if (word[length] == '=') {
        return word + length + 1;
    }
    if (*index + 1 >= argc) {
        err_set(err, ERR_INVALID, "%s needs a value", name);
        return "";
    }
    return argv[++*index];
}

static enum err_code read_word(int argc, char **argv, int *index, struct config *config,
                               const char **ret_argument, struct err *err)
{
    const char *value;

    if ((value = option_value(argc, argv, index, "--config", err)) != NULL) {
        return err->code; /* was read first */
    }
    if ((value = option_value(argc, argv, index, "--listen", err)) != NULL) {
        return err->code ? err->code : config_set_listen(config, value, err);
    }
    if ((value = option_value(argc, argv, index, "--data", err)) != NULL) {
        if (!err->code && !value[0]) {
            return err_set(err, ERR_INVALID, "--data needs a folder");
        }
        free(config->data);
        config->data = xstrdup(value);
        return err->code;
    }
    if (strcmp(argv[*index], "--no-survey") == 0) {
        config->survey = false;
        return ERR_OK;
    }
    if (argv[*index][0] == '-') {
        return err_set(err, ERR_INVALID, "unknown option '%s'", argv[*index]);
    }
    if (*ret_argument) {
        return err_set(err, ERR_INVALID, "unexpected argument '%s'", argv[*index]);
    }
    *ret_argument = argv[*index];
    return ERR_OK;
}

enum err_code options_read(int argc, char **argv, struct config *config,
                           const char **ret_argument, struct err *err)
{
    *ret_argument = NULL;
    err->code = ERR_OK;
    for (int i = 1; i < argc && err->code == ERR_OK; i++) {
        const char *file = option_value(argc, argv, &i, "--config", err);

        if (file && err->code == ERR_OK) {
            config_read(config, file, err);
        }
    }
    for (int i = 1; i < argc && err->code == ERR_OK; i++) {
        read_word(argc, argv, &i, config, ret_argument, err);
    }
    return err->code;
}
