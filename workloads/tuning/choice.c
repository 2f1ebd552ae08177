#include "workloads/tuning/choice.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/hash.h"
#include "workloads/worker/cpu.h"
#include "workloads/worker/libraries.h"

enum { KEY_SIZE = 1024, LINE_SIZE = KEY_SIZE };

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

int choice_by_time(choice_trial_cb *trial, void *context, const int *candidates,
                   int count)
{
    int64_t least = INT64_MAX;
    int fastest = candidates[0];

    for (int i = 0; i < count; i++) {
        trial(context, candidates[i]);
    }
    for (int i = 0; i < count; i++) {
        int64_t begin = now_ns(), taken;

        trial(context, candidates[i]);
        taken = now_ns() - begin;
        if (taken < least) {
            least = taken;
            fastest = candidates[i];
        }
    }
    return fastest;
}

static void folder_make(struct run *run, const char *path)
{
    char part[PATH_MAX];

    for (const char *end = strchr(path + 1, '/');; end = strchr(end + 1, '/')) {
        int length = end ? (int)(end - path) : (int)strlen(path);

        snprintf(part, sizeof part, "%.*s", length, path);
        if (mkdir(part, 0700) < 0 && errno != EEXIST) {
            run_infra(run, "cannot make folder %s: %s", part, strerror(errno));
        }
        if (!end) {
            return;
        }
    }
}

static void folder_find(struct run *run, char ret_path[PATH_MAX])
{
    static const struct {
        const char *variable, *below;
    } places[] = { { "REPROD_CACHE_DIR", "" },
                   { "XDG_CACHE_HOME", "/reprod" },
                   { "HOME", "/.cache/reprod" } };

    for (int i = 0; i < COUNT_OF(places); i++) {
        const char *value = getenv(places[i].variable);

        if (!value || value[0] != '/') {
            continue;
        }
        if (snprintf(ret_path, PATH_MAX, "%s%s", value, places[i].below) >= PATH_MAX) {
            run_infra(run, "%s is too long", places[i].variable);
        }
        folder_make(run, ret_path);
        return;
    }
    run_unsupported(run,
                    "no folder to store the choice in: neither REPROD_CACHE_DIR, "
                    "XDG_CACHE_HOME nor HOME is an absolute path");
}

static const char *owner; /* choice_belongs_to */

void choice_belongs_to(const char *text)
{
    owner = text;
}

static void key_write(const struct run *run, char ret_key[KEY_SIZE])
{
    const struct workload *workload = run->workload;
    char model[CPU_TEXT_SIZE];

    cpu_model(model);
    snprintf(ret_key, KEY_SIZE, "%s %d %s %s %s | %s | %s | %s%s%s", workload->name,
             workload->version, workload->backend, run->size->name,
             dtype_name(run->dtype), model, cpu_vector_isa(), libraries_worker_build(),
             owner ? " | " : "", owner ? owner : "");
}

static void path_find(struct run *run, const char *key, char ret_path[PATH_MAX])
{
    char folder[PATH_MAX];

    folder_find(run, folder);
    if (snprintf(ret_path, PATH_MAX, "%s/%s-%s-%016llx.choice", folder,
                 run->workload->name, run->size->name,
                 (unsigned long long)hash_bytes(key, strlen(key))) >= PATH_MAX) {
        run_infra(run, "the path of the stored choice is too long");
    }
}

/* Reads a line without its end; false where there is no complete one. */
static bool line_read(FILE *file, char ret_line[LINE_SIZE])
{
    char *end = fgets(ret_line, LINE_SIZE, file) ? strchr(ret_line, '\n') : NULL;

    if (end) {
        *end = '\0';
    }
    return end != NULL;
}

static bool choice_read(FILE *file, const char *key, const char *const *names,
                        int name_count, int slots, int *ret_chosen)
{
    char line[LINE_SIZE];

    if (!line_read(file, line) || strcmp(line, key) != 0) {
        return false;
    }
    for (int slot = 0; slot < slots; slot++) {
        int name = 0;

        if (!line_read(file, line)) {
            return false;
        }
        while (name < name_count && strcmp(names[name], line) != 0) {
            name++;
        }
        if (name == name_count) {
            return false;
        }
        ret_chosen[slot] = name;
    }
    return fgetc(file) == EOF;
}

bool choice_load(struct run *run, const char *const *names, int name_count, int slots,
                 int *ret_chosen)
{
    char key[KEY_SIZE], path[PATH_MAX];
    FILE *file;
    bool good;

    key_write(run, key);
    path_find(run, key, path);
    file = fopen(path, "re");
    if (!file && errno == ENOENT) {
        return false;
    }
    if (!file) {
        run_infra(run, "cannot read %s: %s", path, strerror(errno));
    }
    good = choice_read(file, key, names, name_count, slots, ret_chosen);
    fclose(file);
    if (!good) {
        run_infra(run, "%s is not a stored choice of this case: remove it", path);
    }
    return true;
}

static bool choice_write(FILE *file, const char *key, const char *const *names, int slots,
                         const int *chosen)
{
    bool good = fprintf(file, "%s\n", key) > 0;

    for (int slot = 0; slot < slots; slot++) {
        good &= fprintf(file, "%s\n", names[chosen[slot]]) > 0;
    }
    good &= fflush(file) == 0 && fsync(fileno(file)) == 0;
    return fclose(file) == 0 && good;
}

void choice_store(struct run *run, const char *const *names, int name_count, int slots,
                  int *chosen)
{
    char key[KEY_SIZE], path[PATH_MAX], draft[PATH_MAX + 32];
    FILE *file;
    int error = 0;

    key_write(run, key);
    path_find(run, key, path);
    snprintf(draft, sizeof draft, "%s.%ld.draft", path, (long)getpid());
    file = fopen(draft, "we");
    if (!file) {
        run_infra(run, "cannot write %s: %s", draft, strerror(errno));
    }
    /* A link, unlike a renaming, leaves the file of a faster process in place. */
    if (!choice_write(file, key, names, slots, chosen) || link(draft, path) < 0) {
        error = errno;
    }
    unlink(draft);
    if (error && error != EEXIST) {
        run_infra(run, "cannot store %s: %s", path, strerror(error));
    }
    if (!choice_load(run, names, name_count, slots, chosen)) {
        run_infra(run, "%s was removed while it was stored", path);
    }
}
