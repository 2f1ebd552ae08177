/* SQLite's file system, of which the n-th call fails: every call of it that can. */
#ifndef TESTS_UNIT_DB_FAULTY_VFS_H
#define TESTS_UNIT_DB_FAULTY_VFS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <sqlite3.h>

static struct {
    sqlite3_vfs *real;
    atomic_int calls, failed;
    int first, last; /* of the calls that fail; 0: none does */
    bool full;       /* writes fail because the disk is full */
} faulty;

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this */
};

static inline sqlite3_file *faulty_real(sqlite3_file *file)
{
    return ((struct faulty_file *)file)->real;
}

/* Whether this call fails. */
static inline bool faulty_strikes(void)
{
    int n = atomic_fetch_add(&faulty.calls, 1) + 1;

    if (n < faulty.first || n > faulty.last) {
        return false;
    }
    atomic_fetch_add(&faulty.failed, 1);
    return true;
}

/* Methods that fail with ERROR. */
#define FAULTY(name, error, parameters, arguments)                                       \
    static int faulty_##name parameters                                                  \
    {                                                                                    \
        sqlite3_file *real = faulty_real(file);                                          \
                                                                                         \
        return faulty_strikes() ? (error) : real->pMethods->name arguments;              \
    }
/* Methods that never fail. */
#define PLAIN(type, name, parameters, arguments)                                         \
    static type faulty_##name parameters                                                 \
    {                                                                                    \
        sqlite3_file *real = faulty_real(file);                                          \
                                                                                         \
        return real->pMethods->name arguments;                                           \
    }
FAULTY(xRead, SQLITE_IOERR_READ,
       (sqlite3_file * file, void *bytes, int size, sqlite3_int64 at),
       (real, bytes, size, at))
FAULTY(xWrite, faulty.full ? SQLITE_FULL : SQLITE_IOERR_WRITE,
       (sqlite3_file * file, const void *bytes, int size, sqlite3_int64 at),
       (real, bytes, size, at))
FAULTY(xTruncate, SQLITE_IOERR_TRUNCATE, (sqlite3_file * file, sqlite3_int64 size),
       (real, size))
FAULTY(xSync, SQLITE_IOERR_FSYNC, (sqlite3_file * file, int flags), (real, flags))
FAULTY(xFileSize, SQLITE_IOERR_FSTAT, (sqlite3_file * file, sqlite3_int64 *ret_size),
       (real, ret_size))
FAULTY(xLock, SQLITE_IOERR_LOCK, (sqlite3_file * file, int lock), (real, lock))
PLAIN(int, xUnlock, (sqlite3_file * file, int lock), (real, lock))
PLAIN(int, xCheckReservedLock, (sqlite3_file * file, int *ret_is), (real, ret_is))
PLAIN(int, xFileControl, (sqlite3_file * file, int what, void *arg), (real, what, arg))
PLAIN(int, xSectorSize, (sqlite3_file * file), (real))
PLAIN(int, xDeviceCharacteristics, (sqlite3_file * file), (real))
FAULTY(xShmMap, SQLITE_IOERR_SHMMAP,
       (sqlite3_file * file, int region, int size, int extend,
        void volatile **ret_memory),
       (real, region, size, extend, ret_memory))
PLAIN(int, xShmLock, (sqlite3_file * file, int offset, int count, int flags),
      (real, offset, count, flags))
PLAIN(int, xShmUnmap, (sqlite3_file * file, int remove), (real, remove))
PLAIN(int, xFetch, (sqlite3_file * file, sqlite3_int64 at, int size, void **ret_memory),
      (real, at, size, ret_memory))
PLAIN(int, xUnfetch, (sqlite3_file * file, sqlite3_int64 at, void *memory),
      (real, at, memory))

static void faulty_xShmBarrier(sqlite3_file *file)
{
    faulty_real(file)->pMethods->xShmBarrier(faulty_real(file));
}

static int faulty_xClose(sqlite3_file *file)
{
    sqlite3_file *real = faulty_real(file);

    return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static const sqlite3_io_methods faulty_methods = {
    3,
    faulty_xClose,
    faulty_xRead,
    faulty_xWrite,
    faulty_xTruncate,
    faulty_xSync,
    faulty_xFileSize,
    faulty_xLock,
    faulty_xUnlock,
    faulty_xCheckReservedLock,
    faulty_xFileControl,
    faulty_xSectorSize,
    faulty_xDeviceCharacteristics,
    faulty_xShmMap,
    faulty_xShmLock,
    faulty_xShmBarrier,
    faulty_xShmUnmap,
    faulty_xFetch,
    faulty_xUnfetch,
};

static int faulty_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                       int *ret_flags)
{
    struct faulty_file *f = (struct faulty_file *)file;
    int rc;

    (void)vfs;
    f->base.pMethods = NULL;
    f->real = (sqlite3_file *)(f + 1);
    if (faulty_strikes()) {
        return SQLITE_CANTOPEN;
    }
    rc = faulty.real->xOpen(faulty.real, path, f->real, flags, ret_flags);
    f->base.pMethods = rc == SQLITE_OK ? &faulty_methods : NULL;
    return rc;
}

static int faulty_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    return faulty_strikes() ? SQLITE_IOERR_DELETE
                            : faulty.real->xDelete(faulty.real, path, sync);
}

static int faulty_access(sqlite3_vfs *vfs, const char *path, int flags, int *ret_is)
{
    (void)vfs;
    return faulty_strikes() ? SQLITE_IOERR_ACCESS
                            : faulty.real->xAccess(faulty.real, path, flags, ret_is);
}

/* Nobody else is there to be waited for. */
static int faulty_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    return microseconds;
}

/* From here on all connections go through it. */
static inline void faulty_install(void)
{
    static sqlite3_vfs vfs;

    faulty.real = sqlite3_vfs_find(NULL);
    vfs = *faulty.real;
    vfs.zName = "faulty";
    vfs.szOsFile += (int)sizeof(struct faulty_file);
    vfs.xOpen = faulty_open;
    vfs.xDelete = faulty_delete;
    vfs.xAccess = faulty_access;
    vfs.xSleep = faulty_sleep;
    sqlite3_vfs_register(&vfs, 1);
}

/* Calls FIRST to LAST from now on fail. */
static inline void faulty_plan(int first, int last)
{
    faulty.first = first;
    faulty.last = last;
    atomic_store(&faulty.calls, 0);
    atomic_store(&faulty.failed, 0);
}

#endif
