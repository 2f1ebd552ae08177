/* What a shell completes after "reprod": made of the commands' usages, so that there is
 * one list of options. */
#ifndef DAEMON_COMPLETION_H
#define DAEMON_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

/* A command of the program reprod. */
struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage; /* "drift [--server URL] FROM TO": FILE, FOLDER and BACKUP
                          are values that are paths */
    const char *summary;
};

/* Prints to TO the completions of COMMANDS for SHELL: "bash", "zsh" or "fish".  False:
 * there are none for that shell, and nothing was printed. */
bool completion_print(FILE *to, const char *shell, const struct command *commands,
                      int count);

#endif
