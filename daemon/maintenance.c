/* Commands on the database: `reprod backup`, `reprod restore` and `reprod fsck`. */
#include "daemon/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/process/exit_code.h"
#include "db/backup.h"
#include "db/fsck.h"
#include "db/integrity/accept.h"
#include "db/upkeep/marks.h"

int exit_code_of_store(enum err_code code)
{
    switch (code) {
    case ERR_NEWER:
        return EXIT_CODE_NEWER;
    case ERR_CORRUPT:
        return EXIT_CODE_CORRUPT;
    case ERR_UNSUPPORTED:
        return EXIT_CODE_NETWORK_FS;
    case ERR_BUSY:
        return EXIT_CODE_SERVED;
    case ERR_IO:
    case ERR_NOT_FOUND:
        return EXIT_CODE_DATA;
    default:
        return EXIT_CODE_OTHER;
    }
}

char *database_path(const char *data)
{
    return xasprintf("%s/reprod.db", data);
}

static int fail(int code, const struct err *err)
{
    text_print(stderr, "reprod: %s", err->message);
    return code;
}

/* Calls COMMAND with what the command line says. */
static int run(int argc, char **argv,
               int (*command)(const struct config *config, const char *argument,
                              struct err *err))
{
    struct config config;
    struct err err;
    const char *argument;
    int code;

    config_init(&config);
    code = options_read(argc, argv, &config, &argument, &err) == ERR_OK
               ? command(&config, argument, &err)
               : fail(EXIT_CODE_USAGE, &err);
    config_release(&config);
    return code;
}

static int backup(const struct config *config, const char *to, struct err *err)
{
    char *from;
    enum err_code code;

    if (!to) {
        err_set(err, ERR_INVALID, "backup needs the name of the new file");
        return fail(EXIT_CODE_USAGE, err);
    }
    from = database_path(config->data);
    code = backup_database(from, to, err);
    free(from);
    if (code != ERR_OK) {
        return fail(exit_code_of_store(code), err);
    }
    printf("%s written\n", to);
    return EXIT_CODE_OK;
}

int backup_main(int argc, char **argv)
{
    return run(argc, argv, backup);
}

static int restore(const struct config *config, const char *from, struct err *err)
{
    char *path, *kept;
    enum err_code code;

    if (!from) {
        err_set(err, ERR_INVALID, "restore needs the name of a backup");
        return fail(EXIT_CODE_USAGE, err);
    }
    path = database_path(config->data);
    code = backup_restore(from, path, clock_wall_ms(), &kept, err);
    if (code == ERR_OK) {
        printf("%s is what %s holds; what was there is %s\n", path, from, kept);
        free(kept);
    }
    free(path);
    return code == ERR_OK ? EXIT_CODE_OK : fail(exit_code_of_store(code), err);
}

int restore_main(int argc, char **argv)
{
    return run(argc, argv, restore);
}

static void print_fault(void *arg, const char *line)
{
    (void)arg;
    text_print(stdout, "%s", line);
}

static int accept(const struct config *config, struct err *err)
{
    char *path = database_path(config->data);
    int64_t count = 0;
    enum err_code code =
        accept_loss(path, clock_wall_ms(), print_fault, NULL, &count, err);

    free(path);
    if (code != ERR_OK) {
        return fail(exit_code_of_store(code), err);
    }
    printf("%" PRId64 " acknowledged; the database keeps a list\n", count);
    return EXIT_CODE_OK;
}

static void print_counts(const struct fsck_counts *c)
{
    printf("%" PRId64 " cells recomputed from their runs, %" PRId64 " differ; %" PRId64
           " jobs recounted, %" PRId64 " differ; %" PRId64 " traces unpacked, %" PRId64
           " wrong; %" PRId64 " rows compared with their checksums, %" PRId64
           " damaged; %" PRId64 " damaged pages or indexes, %" PRId64 " dangling rows\n",
           c->cells - c->cells_trusted, c->cells_differing, c->jobs, c->jobs_differing,
           c->traces, c->traces_damaged, c->rows, c->rows_damaged, c->damaged,
           c->dangling);
    if (c->cells_trusted) {
        printf("%" PRId64
               " cells were found right in the last %d days and did not change "
               "since: they were judged again, but not recomputed (fsck --full does)\n",
               c->cells_trusted, MARKS_DAYS);
    }
    if (c->acknowledged) {
        printf("%" PRId64 " faults were acknowledged, and count in none of these\n",
               c->acknowledged);
    }
    if (c->marks_failed) {
        puts("what was found right could not be noted: the next fsck begins anew");
    }
}

static int fsck(const struct config *config, const char *argument, struct err *err)
{
    const struct fsck how = { .full = config->fsck_full,
                              .marks = true,
                              .readers = (int)sysconf(_SC_NPROCESSORS_ONLN),
                              .now_ms = clock_wall_ms(),
                              .report = print_fault };
    struct fsck_counts c = { 0 };
    char *path;
    enum err_code code;

    if (argument) {
        err_set(err, ERR_INVALID, "unexpected argument '%s'", argument);
        return fail(EXIT_CODE_USAGE, err);
    }
    if (config->accept_loss) {
        return accept(config, err);
    }
    path = database_path(config->data);
    code = fsck_file(path, &how, &c, err);
    free(path);
    if (code != ERR_OK) {
        return fail(exit_code_of_store(code), err);
    }
    print_counts(&c);
    if (c.damaged || c.rows_damaged || c.dangling || c.traces_damaged) {
        return EXIT_CODE_CORRUPT;
    }
    return c.cells_differing || c.jobs_differing ? EXIT_CODE_DIFFERS : EXIT_CODE_OK;
}

int fsck_main(int argc, char **argv)
{
    return run(argc, argv, fsck);
}
