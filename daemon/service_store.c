/* The store of a service: its data folder, its database, and what refuses writes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/commands.h"
#include "daemon/process/exit_code.h"
#include "daemon/service.h"
#include "db/backup.h"

static void warn_of_readers(const char *folder)
{
    struct stat st;

    if (stat(folder, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        log_warning(
            "the data folder %s is open to other users (mode %04o): they may read "
            "what is stored, and it is not locked as a whole; chmod 700 %s",
            folder, st.st_mode & 07777, folder);
    }
}

/* Says where there is a good one. */
static void name_backup(const char *path, struct err *err)
{
    char *backup = backup_newest(path);

    if (backup) {
        struct err damage = *err;

        err_set(err, damage.code,
                "%s; the newest good backup is %s: reprod serve --read-only shows it, "
                "reprod restore puts it in place",
                damage.message, backup);
        free(backup);
    }
}

void service_tell_read_only(struct service *s)
{
    char cause[HEALTH_CAUSE_SIZE];
    char at[CLOCK_RFC3339_SIZE] = "";
    struct stat st;

    s->reads_only = store_refusal(s->store) != NULL;
    if (!s->reads_only) {
        return;
    }
    if (s->config.read_only && stat(s->config.read_only, &st) == 0) {
        clock_rfc3339((int64_t)st.st_mtime * 1000, at);
        snprintf(cause, sizeof cause,
                 "this service only reads: it shows %.300s of %s; nothing runs and "
                 "nothing is accepted",
                 s->config.read_only, at);
    } else {
        char *path = database_path(s->config.data);
        char *backup = backup_newest(path);

        snprintf(cause, sizeof cause, "%.320s%s%.150s", store_refusal(s->store),
                 backup ? "; newest good backup: " : "", backup ? backup : "");
        free(backup);
        free(path);
    }
    health_set(&s->health, HEALTH_DATABASE, cause, clock_wall_ms());
    health_log(&s->health);
}

int service_open_store(struct service *s, struct err *err)
{
    const struct store_options options = {
        .readers = 3, /* two for heavy reads: one may be a page that is made anew */
        .read_deadline_ms = 5000,
        .busy_timeout_ms = 5000,
        .read_only = s->config.read_only != NULL,
    };
    char *path;
    enum err_code code;

    if (options.read_only) {
        code = store_open(s->config.read_only, &options, &s->store, err);
        return code == ERR_OK ? EXIT_CODE_OK : exit_code_of_store(code);
    }
    if (mkdir(s->config.data, S_IRWXU) != 0 && errno != EEXIST) {
        err_set_errno(err, errno, "cannot create the data folder %s", s->config.data);
        return EXIT_CODE_DATA;
    }
    warn_of_readers(s->config.data);
    path = database_path(s->config.data);
    code = store_open(path, &options, &s->store, err);
    if (code == ERR_CORRUPT) {
        name_backup(path, err);
    }
    free(path);
    return code == ERR_OK ? EXIT_CODE_OK : exit_code_of_store(code);
}
