#include "daemon/client/options.h"

#include <string.h>

#include "daemon/base/nearest.h"

enum { OPTIONS_MAX = 32 };

static enum err_code unknown(const char *word, const struct client_option *options,
                             struct err *err)
{
    const char *names[OPTIONS_MAX];
    char hint[NEAREST_HINT_SIZE];
    int count = 0;

    for (; count < OPTIONS_MAX && options[count].name; count++) {
        names[count] = options[count].name;
    }
    return err_set(err, ERR_INVALID, "there is no option '%.100s'%s", word,
                   nearest_hint(word, names, count, hint));
}

static const struct client_option *find(const struct client_option *options,
                                        const char *word, size_t length)
{
    for (; options->name; options++) {
        if (strlen(options->name) == length &&
            strncmp(options->name, word, length) == 0) {
            return options;
        }
    }
    return NULL;
}

static enum err_code read_option(int argc, char **argv, int *at,
                                 const struct client_option *options, struct err *err)
{
    const char *word = argv[*at];
    size_t length = strcspn(word, "=");
    const struct client_option *option = find(options, word, length);

    if (!option) {
        return unknown(word, options, err);
    }
    if (option->is_flag && word[length] == '=') {
        return err_set(err, ERR_INVALID, "%s takes no value", option->name);
    }
    if (option->is_flag) {
        *option->value = "";
    } else if (word[length] == '=') {
        *option->value = word + length + 1;
    } else if (*at + 1 < argc) {
        *option->value = argv[++*at];
    } else {
        return err_set(err, ERR_INVALID, "%s needs a value", option->name);
    }
    return ERR_OK;
}

enum err_code client_options_read(int argc, char **argv,
                                  const struct client_option *options, int least,
                                  int most, const char **ret_arguments, struct err *err)
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            if (read_option(argc, argv, &i, options, err) != ERR_OK) {
                return err->code;
            }
        } else if (count == most) {
            return err_set(err, ERR_INVALID, "'%.100s' is one argument too many",
                           argv[i]);
        } else {
            ret_arguments[count++] = argv[i];
        }
    }
    return count >= least ? ERR_OK
                          : err_set(err, ERR_INVALID, "it needs %d argument%s, not %d",
                                    least, least == 1 ? "" : "s", count);
}
