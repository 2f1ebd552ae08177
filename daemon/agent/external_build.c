#include "daemon/agent/external_build.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/agent/external_files.h"
#include "daemon/agent/stack.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "workloads/instruments/digest.h"

struct builder {
    const json_t *workload;
    const char *directory;
    struct external_files files; /* its text is what is digested */
    struct err *err;
};

/* Caller frees. */
static char *path_of(const struct builder *b, const char *word)
{
    return word[0] == '/' ? xstrdup(word) : xasprintf("%s/%s", b->directory, word);
}

static bool is_program(const char *path)
{
    struct stat stat_of;

    return stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode) &&
           access(path, X_OK) == 0;
}

/* Caller frees; NULL: nowhere. */
static char *search(const char *folders, const char *name)
{
    while (*folders) {
        size_t length = strcspn(folders, ":");
        char *path = xasprintf("%.*s/%s", (int)length, folders, name);

        if (length > 0 && is_program(path)) {
            return path;
        }
        free(path);
        folders += length + (folders[length] == ':');
    }
    return NULL;
}

/* Caller frees; NULL, with the error set: there is none. */
static char *find_program(const struct builder *b)
{
    const json_t *command = json_object_get(b->workload, "command");
    const char *name = json_string_value(json_array_get(command, 0));
    const char *folders = json_string_value(
        json_object_get(json_object_get(b->workload, "environment"), "PATH"));
    char *path;

    if (!strchr(name, '/')) {
        folders = folders ? folders : STACK_PATH;
        path = search(folders, name);
        if (!path) {
            err_set(b->err, ERR_NOT_FOUND, "there is no program '%s' in %s", name,
                    folders);
        }
        return path;
    }
    path = path_of(b, name);
    if (!is_program(path)) {
        err_set(b->err, ERR_NOT_FOUND, "%s is no program that can be executed", path);
        free(path);
        return NULL;
    }
    return path;
}

/* Those of WORDS from FIRST on that are paths of files; with ALL each has to be there,
 * and may be a folder. */
static enum err_code add_words(struct builder *b, const json_t *words, size_t first,
                               bool all)
{
    enum err_code code = ERR_OK;

    for (size_t i = first; i < json_array_size(words) && code == ERR_OK; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        char *path = path_of(b, word);
        struct stat stat_of;

        if (all || (stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode))) {
            code = external_files_add(&b->files, word, path);
        }
        free(path);
    }
    return code;
}

static void add_configuration(struct builder *b)
{
    json_t *variants = json_deep_copy(json_object_get(b->workload, "variants"));
    json_t *said;
    char *text;
    size_t i;
    json_t *variant;

    json_array_foreach(variants, i, variant)
    {
        json_object_del(variant, "summary");
        json_object_del(variant, "control");
    }
    said =
        json_pack("{s:O,s:O,s:O,s:o}", "command", json_object_get(b->workload, "command"),
                  "environment", json_object_get(b->workload, "environment"), "sizes",
                  json_object_get(b->workload, "sizes"), "variants", variants);
    text = json_dumps(said, JSON_COMPACT | JSON_SORT_KEYS);
    buf_printf(&b->files.text, "%s\n", text);
    free(text);
    json_decref(said);
}

static enum err_code add_files(struct builder *b, const char *program)
{
    const json_t *list = b->workload;
    enum err_code code = external_files_add(&b->files, "the program", program);
    const char *name;
    size_t i;
    json_t *member;

    if (code != ERR_OK ||
        (code = add_words(b, json_object_get(list, "command"), 1, false)) != ERR_OK ||
        (code = add_words(b, json_object_get(list, "files"), 0, true)) != ERR_OK) {
        return code;
    }
    json_object_foreach(json_object_get(list, "sizes"), name, member)
    {
        if ((code = add_words(b, member, 0, false)) != ERR_OK) {
            return code;
        }
    }
    json_array_foreach(json_object_get(list, "variants"), i, member)
    {
        code = add_words(b, json_object_get(member, "arguments"), 0, false);
        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

static enum err_code check_directory(const struct builder *b)
{
    struct stat stat_of;

    if (stat(b->directory, &stat_of) != 0) {
        return err_set_errno(b->err, errno, "directory %s", b->directory);
    }
    if (!S_ISDIR(stat_of.st_mode) || access(b->directory, X_OK) != 0) {
        return err_set(b->err, ERR_IO, "directory %s: no folder that can be entered",
                       b->directory);
    }
    return ERR_OK;
}

enum err_code external_build_init(struct external_build *ret_build,
                                  const json_t *workload, struct err *err)
{
    struct builder b = {
        .workload = workload,
        .directory = json_string_value(json_object_get(workload, "directory")),
        .files = { .err = err },
        .err = err,
    };
    char *program;
    enum err_code code;

    if (check_directory(&b) != ERR_OK || !(program = find_program(&b))) {
        return err->code;
    }
    add_configuration(&b);
    code = add_files(&b, program);
    if (code == ERR_OK) {
        ret_build->program = program;
        digest_hex(digest_bytes(b.files.text.data, b.files.text.length),
                   ret_build->digest);
        ret_build->text = buf_detach(&b.files.text, NULL);
    } else {
        free(program);
        buf_release(&b.files.text);
    }
    return code;
}

void external_build_release(struct external_build *build)
{
    free(build->program);
    free(build->text);
    build->program = build->text = NULL;
}
