#include "daemon/evidence/subject.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"

const char *const subject_words[] = { "model", "library", "framework", NULL };

const char *subject_word(enum subject subject)
{
    return subject_words[subject];
}

int subject_parse(const char *word, enum subject *ret_subject)
{
    for (int i = 0; i < SUBJECT_COUNT; i++) {
        if (strcmp(word, subject_words[i]) == 0) {
            *ret_subject = (enum subject)i;
            return 0;
        }
    }
    return -1;
}

const char *subject_version(const char *name, const json_t *facts)
{
    /* Where the package is named otherwise. */
    static const struct {
        const char *name, *package;
    } packages[] = { { "pytorch", "torch" } };
    char key[SUBJECT_NAME_SIZE];
    size_t length = 0;

    for (const char *c = name; *c; c++) {
        if (*c == ' ') {
            continue;
        }
        if (length == sizeof key - 1) {
            return NULL; /* a part of it is the name of something else */
        }
        key[length++] = (char)tolower((unsigned char)*c);
    }
    key[length] = '\0';
    for (int i = 0; i < COUNT_OF(packages); i++) {
        if (strcmp(key, packages[i].name) == 0) {
            return json_string_value(json_object_get(facts, packages[i].package));
        }
    }
    return json_string_value(json_object_get(facts, key));
}

void subject_text(enum subject subject, const char *name, const json_t *facts,
                  char ret_text[SUBJECT_TEXT_SIZE])
{
    const char *version;

    if (subject == SUBJECT_MODEL) {
        snprintf(ret_text, SUBJECT_TEXT_SIZE, "our models");
        return;
    }
    version = subject_version(name, facts);
    snprintf(ret_text, SUBJECT_TEXT_SIZE, "%s%s%s", name, version ? " " : "",
             version ? version : "");
}
