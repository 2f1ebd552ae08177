#include "tests/scale/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct result *results;
static int result_count;

void die(const char *what)
{
    perror(what);
    exit(1);
}

void *must(void *memory)
{
    if (!memory) {
        die("memory");
    }
    return memory;
}

void text_add(struct text *text, const char *data, size_t length)
{
    if (text->length + length + 1 > text->capacity) {
        text->capacity = 2 * (text->length + length + 1);
        text->data = must(realloc(text->data, text->capacity));
    }
    memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    struct text text = { .data = NULL };
    char part[65536];
    size_t length;

    if (!file) {
        die(path);
    }
    while ((length = fread(part, 1, sizeof part, file)) > 0) {
        text_add(&text, part, length);
    }
    fclose(file);
    return must(text.data);
}

void recorded_read(const char *path)
{
    char *rest_of_file = read_file(path), *line;

    while ((line = strtok_r(rest_of_file, "\n", &rest_of_file)) != NULL) {
        struct result *r;
        char *pair;

        results = must(realloc(results, ((size_t)result_count + 1) * sizeof *results));
        r = &results[result_count++];
        *r = (struct result){ .shown = 0 };
        for (int i = 0; i < FIELDS; i++) {
            r->fields[i] = line;
            line += strcspn(line, "\t");
            *line += *line ? -'\t' : 0;
            line++;
        }
        for (char *rest = r->fields[SHOWN];
             r->shown < SHOWN_MAX && (pair = strtok_r(rest, " ", &rest)) != NULL;
             r->shown++) {
            r->sums[r->shown] = pair;
            pair = strchr(pair, ':');
            *pair = '\0';
            r->digests[r->shown] = pair + 1;
        }
    }
}

const struct result *recorded_find(const char *workload, const char *variant)
{
    for (int i = 0; i < result_count; i++) {
        if (strcmp(results[i].fields[WORKLOAD], workload) == 0 &&
            strcmp(results[i].fields[VARIANT], variant) == 0) {
            return &results[i];
        }
    }
    return NULL;
}
