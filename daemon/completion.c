#include "daemon/completion.h"

#include <ctype.h>
#include <string.h>

enum value { VALUE_NONE, VALUE_PATH, VALUE_OTHER };

struct option {
    const char *name; /* "--config", not ended */
    int length;
    enum value value;
};

/* The next option in *REST of a usage, which moves behind it; false: there is none. */
static bool next_option(const char **rest, struct option *ret_option)
{
    const char *name = strstr(*rest, "--"), *value;
    size_t length;

    if (!name) {
        return false;
    }
    length = 2 + strspn(name + 2, "abcdefghijklmnopqrstuvwxyz-");
    value = name[length] == ' ' ? name + length + 1 : "";
    *ret_option =
        (struct option){ .name = name,
                         .length = (int)length,
                         .value = strncmp(value, "FILE", 4) == 0 ||
                                          strncmp(value, "FOLDER", 6) == 0 ||
                                          strncmp(value, "BACKUP", 6) == 0
                                      ? VALUE_PATH
                                  : isalnum((unsigned char)value[0]) ? VALUE_OTHER
                                                                     : VALUE_NONE };
    *rest = name + length;
    return true;
}

/* The options of all COMMANDS with a value of the kind, as patterns of a case: "--a|--b".
 */
static void print_patterns(FILE *to, const struct command *commands, int count,
                           enum value value)
{
    const char *between = "";

    for (int i = 0; i < count; i++) {
        const char *rest = commands[i].usage;
        struct option option;

        while (next_option(&rest, &option)) {
            if (option.value == value) {
                fprintf(to, "%s%.*s", between, option.length, option.name);
                between = "|";
            }
        }
    }
}

static void print_bash(FILE *to, const struct command *commands, int count)
{
    fputs(
        "_reprod() {\n    local current=${COMP_WORDS[COMP_CWORD]} words=\n"
        "    case ${COMP_WORDS[COMP_CWORD-1]} in\n    ",
        to);
    print_patterns(to, commands, count, VALUE_PATH);
    fputs(") COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n    ", to);
    print_patterns(to, commands, count, VALUE_OTHER);
    fputs(
        ") COMPREPLY=(); return ;;\n    esac\n    case $COMP_CWORD-${COMP_WORDS[1]} in\n"
        "    1-*) words=\"",
        to);
    for (int i = 0; i < count; i++) {
        fprintf(to, "%s%s", i ? " " : "", commands[i].name);
    }
    fputs("\" ;;\n", to);
    for (int i = 0; i < count; i++) {
        const char *rest = commands[i].usage;
        struct option option;

        fprintf(to, "    *-%s) words=\"--help", commands[i].name);
        while (next_option(&rest, &option)) {
            fprintf(to, " %.*s", option.length, option.name);
        }
        fputs("\" ;;\n", to);
    }
    fputs(
        "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n"
        "complete -o default -F _reprod reprod\n",
        to);
}

/* Within single quotes of fish. */
static void print_quoted(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') {
            fputc('\\', to);
        }
        fputc(*text, to);
    }
}

static void print_fish(FILE *to, const struct command *commands, int count)
{
    for (int i = 0; i < count; i++) {
        const char *rest = commands[i].usage;
        struct option option;

        fprintf(to, "complete -c reprod -f -n __fish_use_subcommand -a %s -d '",
                commands[i].name);
        print_quoted(to, commands[i].summary);
        fputs("'\n", to);
        while (next_option(&rest, &option)) {
            fprintf(to,
                    "complete -c reprod -n '__fish_seen_subcommand_from %s' -l %.*s%s\n",
                    commands[i].name, option.length - 2, option.name + 2,
                    option.value == VALUE_PATH    ? " -r -F"
                    : option.value == VALUE_OTHER ? " -x"
                                                  : "");
        }
    }
}

bool completion_print(FILE *to, const char *shell, const struct command *commands,
                      int count)
{
    if (strcmp(shell, "bash") == 0) {
        print_bash(to, commands, count);
    } else if (strcmp(shell, "zsh") == 0) {
        fputs("autoload -U +X bashcompinit && bashcompinit\n", to);
        print_bash(to, commands, count);
    } else if (strcmp(shell, "fish") == 0) {
        print_fish(to, commands, count);
    } else {
        return false;
    }
    return true;
}
