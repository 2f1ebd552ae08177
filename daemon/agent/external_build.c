#include "daemon/agent/external_build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/agent/stack.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "workloads/instruments/digest.h"

enum { CHUNK = 1024 * 1024, FILES_MAX = 4096, DEPTH_MAX = 16 };
static const int64_t FILE_MAX = 16 * CHUNK, ALL_MAX = 32 * CHUNK;

struct builder {
    const json_t *workload;
    const char *directory;
    struct buf text; /* what is digested */
    int64_t bytes;   /* of contents that were read */
    int count;       /* of files */
    struct err *err; /* the first failure; after it nothing is added */
};

/* Returns the bytes read, fewer than CHUNK only at the end; -1 on an error. */
static ssize_t read_chunk(int fd, char *chunk)
{
    size_t have = 0;

    while (have < CHUNK) {
        ssize_t n = read(fd, chunk + have, CHUNK - have);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -1 : (ssize_t)have;
        }
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static void add_contents(struct builder *b, int fd, const char *path)
{
    char *chunk = xmalloc(CHUNK);
    struct digest parts[2] = { { 0, 0 }, { 0, 0 } };
    char hex[DIGEST_HEX_SIZE];
    ssize_t n = 0;

    while (b->bytes <= ALL_MAX && (n = read_chunk(fd, chunk)) > 0) {
        parts[1] = digest_bytes(chunk, (uint64_t)n);
        parts[0] = digest_combine(parts, 2);
        b->bytes += n;
    }
    free(chunk);
    if (n < 0) {
        err_set_errno(b->err, errno, "%s", path);
    } else if (b->bytes > ALL_MAX) {
        err_set(b->err, ERR_TOO_LARGE, "%s: grows while it is read", path);
    } else {
        digest_hex(parts[0], hex);
        buf_printf(&b->text, "%s\n", hex);
    }
}

static void add_open(struct builder *b, const char *name, const char *path, int fd)
{
    struct stat stat_of;

    if (fstat(fd, &stat_of) != 0) {
        err_set_errno(b->err, errno, "%s", path);
        return;
    }
    if (!S_ISREG(stat_of.st_mode)) {
        err_set(b->err, ERR_IO, "%s: neither a file nor a folder", path);
        return;
    }
    buf_printf(&b->text, "%s\t%lld\t", name, (long long)stat_of.st_size);
    if (stat_of.st_size <= FILE_MAX && b->bytes + stat_of.st_size <= ALL_MAX) {
        add_contents(b, fd, path);
    } else {
        buf_printf(&b->text, "%lld.%09ld\n", (long long)stat_of.st_mtim.tv_sec,
                   stat_of.st_mtim.tv_nsec);
    }
}

static void add_file(struct builder *b, const char *name, const char *path)
{
    int fd;

    if (++b->count > FILES_MAX) {
        err_set(b->err, ERR_TOO_LARGE, "%s: more than %d files", path, FILES_MAX);
        return;
    }
    /* A pipe in the place of a file must not keep the agent waiting. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        err_set_errno(b->err, errno, "%s", path);
        return;
    }
    add_open(b, name, path, fd);
    close(fd);
}

static int is_included(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "__pycache__") != 0;
}

static void add_folder(struct builder *b, const char *name, const char *path, int depth);

static void add_entry(struct builder *b, const char *name, const char *path, int depth)
{
    struct stat own, target;

    if (lstat(path, &own) != 0 || stat(path, &target) != 0) {
        return; /* gone, or a link to nothing */
    }
    if (S_ISDIR(own.st_mode)) {
        add_folder(b, name, path, depth + 1);
    } else if (S_ISREG(target.st_mode)) {
        add_file(b, name, path);
    }
}

static void add_folder(struct builder *b, const char *name, const char *path, int depth)
{
    struct dirent **entries;
    int count;

    if (depth > DEPTH_MAX) {
        err_set(b->err, ERR_TOO_LARGE, "%s: more than %d folders deep", path, DEPTH_MAX);
        return;
    }
    count = scandir(path, &entries, is_included, alphasort);
    if (count < 0) {
        err_set_errno(b->err, errno, "%s", path);
        return;
    }
    for (int i = 0; i < count; i++) {
        char *its_name = xasprintf("%s/%s", name, entries[i]->d_name);
        char *its_path = xasprintf("%s/%s", path, entries[i]->d_name);

        if (b->err->code == ERR_OK) {
            add_entry(b, its_name, its_path, depth);
        }
        free(its_name);
        free(its_path);
        free(entries[i]);
    }
    free(entries);
}

/* NAME stands for PATH, a file or a folder. */
static void add_path(struct builder *b, const char *name, const char *path)
{
    struct stat stat_of;

    if (b->err->code != ERR_OK) {
        return;
    }
    if (stat(path, &stat_of) != 0) {
        err_set_errno(b->err, errno, "%s", path);
    } else if (S_ISDIR(stat_of.st_mode)) {
        add_folder(b, name, path, 0);
    } else {
        add_file(b, name, path);
    }
}

/* Caller frees. */
static char *path_of(const struct builder *b, const char *word)
{
    return word[0] == '/' ? xstrdup(word) : xasprintf("%s/%s", b->directory, word);
}

/* Those of WORDS from FIRST on that are paths of files; with ALL each must be there, and
 * may be a folder. */
static void add_words(struct builder *b, const json_t *words, size_t first, bool all)
{
    for (size_t i = first; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        char *path = path_of(b, word);
        struct stat stat_of;

        if (all || (stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode))) {
            add_path(b, word, path);
        }
        free(path);
    }
}

static void add_files(struct builder *b, const char *program)
{
    const char *name;
    size_t i;
    json_t *member;

    add_path(b, "the program", program);
    add_words(b, json_object_get(b->workload, "command"), 1, false);
    add_words(b, json_object_get(b->workload, "files"), 0, true);
    json_object_foreach(json_object_get(b->workload, "sizes"), name, member)
    {
        add_words(b, member, 0, false);
    }
    json_array_foreach(json_object_get(b->workload, "variants"), i, member)
    {
        add_words(b, json_object_get(member, "arguments"), 0, false);
    }
}

static void add_configuration(struct builder *b)
{
    json_t *variants = json_deep_copy(json_object_get(b->workload, "variants"));
    json_t *configured;
    char *text;
    size_t i;
    json_t *variant;

    json_array_foreach(variants, i, variant)
    {
        json_object_del(variant, "summary");
        json_object_del(variant, "control");
    }
    configured = json_pack(
        "{s:O,s:O,s:O,s:O,s:O,s:o}", "command", json_object_get(b->workload, "command"),
        "environment", json_object_get(b->workload, "environment"), "sizes",
        json_object_get(b->workload, "sizes"), "subject",
        json_object_get(b->workload, "subject"), "subject_name",
        json_object_get(b->workload, "subject_name"), "variants", variants);
    /* Builds of the others stay what they were. */
    if (json_is_false(json_object_get(b->workload, "seeded"))) {
        json_object_set_new(configured, "seeded", json_false());
    }
    text = json_dumps(configured, JSON_COMPACT | JSON_SORT_KEYS);
    buf_printf(&b->text, "%s\n", text);
    free(text);
    json_decref(configured);
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
        .err = err,
    };
    char *program;

    err->code = ERR_OK;
    if (check_directory(&b) != ERR_OK || !(program = find_program(&b))) {
        return err->code;
    }
    add_configuration(&b);
    add_files(&b, program);
    if (err->code != ERR_OK) {
        free(program);
        buf_release(&b.text);
        return err->code;
    }
    ret_build->program = program;
    digest_hex(digest_bytes(b.text.data, b.text.length), ret_build->digest);
    ret_build->text = buf_detach(&b.text, NULL);
    return ERR_OK;
}

void external_build_release(struct external_build *build)
{
    free(build->program);
    free(build->text);
    build->program = build->text = NULL;
}

char *external_build_difference(const char *a, const char *b)
{
    while (*a || *b) {
        size_t lengths[2] = { strcspn(a, "\n"), strcspn(b, "\n") };
        const char *longer = *a ? a : b;

        if (lengths[0] != lengths[1] || strncmp(a, b, lengths[0]) != 0) {
            return xstrndup(longer, strcspn(longer, "\t\n"));
        }
        a += lengths[0] + (a[lengths[0]] == '\n');
        b += lengths[1] + (b[lengths[1]] == '\n');
    }
    return NULL;
}
