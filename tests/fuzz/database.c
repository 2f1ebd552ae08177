/* A database with other bytes in some places, or cut off: looked through, copied, opened.
 * The input is a list of changes, each of five bytes: where (three) and what (two). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "db/backup.h"
#include "db/connection.h"
#include "db/fsck.h"
#include "db/tx.h"
#include "tests/fuzz/fuzz.h"

enum { CHANGE_BYTES = 5, CHANGES_MAX = 64, GOOD_MAX = 4 << 20 };

static struct {
    char folder[64];
    char *path, *copy;
    uint8_t *good;
    size_t size;
} made;

static void remove_files(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };

    for (int i = 0; i < 4; i++) {
        char *path = xasprintf("%s%s", made.path, endings[i]);

        unlink(path);
        free(path);
    }
    unlink(made.copy);
}

static void leave(void)
{
    remove_files();
    rmdir(made.folder);
    free(made.path);
    free(made.copy);
    free(made.good);
}

static void make(void)
{
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    struct tx *tx = NULL;
    struct err err;
    FILE *file;

    snprintf(made.folder, sizeof made.folder, "%s/reprod-fuzz-XXXXXX", where);
    FUZZ_CHECK(mkdtemp(made.folder));
    made.path = xasprintf("%s/reprod.db", made.folder);
    made.copy = xasprintf("%s/copy.db", made.folder);
    atexit(leave);
    FUZZ_CHECK(connection_open_writer(made.path, 0, &tx, &err) == ERR_OK);
    tx_free(tx);
    file = fopen(made.path, "re");
    FUZZ_CHECK(file);
    made.good = xmalloc(GOOD_MAX);
    made.size = fread(made.good, 1, GOOD_MAX, file);
    fclose(file);
}

static void write_changed(const uint8_t *data, size_t size)
{
    uint8_t *bytes = xmalloc(made.size);
    size_t length = made.size;
    FILE *file = fopen(made.path, "we");

    memcpy(bytes, made.good, made.size);
    for (size_t i = 0; i + CHANGE_BYTES <= size && i < CHANGE_BYTES * CHANGES_MAX;
         i += CHANGE_BYTES) {
        size_t at = (size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2];

        if (at % 31 == 30) {
            length = at % made.size;
        } else {
            memcpy(bytes + at % (made.size - 1), data + i + 3, 2);
        }
    }
    FUZZ_CHECK(file && fwrite(bytes, 1, length, file) == length);
    fclose(file);
    free(bytes);
}

static void hear(void *arg, const char *line)
{
    (void)arg;
    FUZZ_CHECK(line[0]);
}

static void run(const uint8_t *data, size_t size)
{
    struct fsck_counts counts = { 0 };
    struct tx *tx = NULL;
    struct err err;

    if (!made.good) {
        make();
    }
    remove_files();
    write_changed(data, size);
    if (fsck_database(made.path, hear, NULL, &counts, &err) != ERR_OK) {
        FUZZ_CHECK(err.message[0]);
    } else if (size < CHANGE_BYTES) {
        FUZZ_CHECK(counts.damaged == 0 && counts.dangling == 0);
    }
    if (backup_database(made.path, made.copy, &err) == ERR_OK) {
        FUZZ_CHECK(access(made.copy, R_OK) == 0);
    } else {
        FUZZ_CHECK(err.message[0] && access(made.copy, F_OK) != 0);
    }
    if (connection_open_writer(made.path, 0, &tx, &err) == ERR_OK) {
        tx_free(tx);
    }
}

FUZZ_TARGET("database", run);
