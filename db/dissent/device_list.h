/* What devices showed, for whoever reads: of one cell, and over all cells. */
#ifndef DB_DISSENT_DEVICE_LIST_H
#define DB_DISSENT_DEVICE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/evidence/dissent.h"
#include "daemon/jobs/cell.h"

struct tx;

enum { DEVICE_DIGESTS_MAX = 8, CELL_DEVICES_MAX = 5000 };

/* A device in a cell, whatever the conditions of its runs. */
struct cell_device {
    char device[CASE_TITLE_SIZE], host[CASE_TITLE_SIZE];
    char *attributes; /* JSON object */
    int64_t runs, iterations, distinct_digests;
    bool varied; /* two digests under the same conditions */
    int64_t first_ms, last_ms;
    char first_run[ID_SIZE], last_run[ID_SIZE];
    enum dissent_mark mark;
    int64_t since_ms; /* when it was named; 0: it is not */
    struct {
        char digest[DIGEST_TEXT_SIZE];
        int64_t runs, iterations;
    } digests[DEVICE_DIGESTS_MAX]; /* most frequent first */
    int digest_count;
};

/* Those that dissent first, then by name. */
struct device_list {
    struct cell_device *devices;
    int count;
    struct dissent dissent;
};
enum err_code device_list_load(struct tx *tx, int64_t cell, struct device_list *ret_list,
                               struct err *err);
void device_list_release(struct device_list *list);

/* Each cell in which a device is named as dissenting, newest cell first, then by device;
 * DEVICE: only that one, NULL: any.  FROM: from this cell on; 0: from the newest.  At
 * most LIMIT. */
struct dissenter {
    char device[CASE_TITLE_SIZE], host[CASE_TITLE_SIZE];
    int64_t cell, since_ms;
    struct case_key key;
    char environment[DIGEST_TEXT_SIZE];
    enum verdict verdict;
    char reason[VERDICT_REASON_SIZE];
    int64_t runs; /* completed, of the device */
};
enum err_code dissenters_each(struct tx *tx, const char *device, int64_t from, int limit,
                              void (*visit)(void *arg, const struct dissenter *dissenter),
                              void *arg, struct err *err);

/* In how many cells DEVICE is measured, and in how many it dissents. */
enum err_code dissenters_of_device(struct tx *tx, const char *device, int64_t *ret_cells,
                                   int64_t *ret_dissents, struct err *err);

struct device_dissents {
    const char *device;
    int64_t cells, dissents; /* that it has runs of, and in which it dissents */
};

/* The same of DEVICES, which are in the order of their ids, each once.  Those in between
 * are read, too: few, if these are next to each other. */
enum err_code dissenters_of_devices(struct tx *tx, struct device_dissents *devices,
                                    int count, struct err *err);

/* The devices that are named in most cells, with how many, at most LIMIT. */
enum err_code dissenters_worst(struct tx *tx, int limit,
                               void (*visit)(void *arg, const char *device,
                                             int64_t cells),
                               void *arg, struct err *err);

#endif
