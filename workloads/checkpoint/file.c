#include "workloads/checkpoint/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workloads/instruments/digest.h"

enum { VERSION = 1 };

struct header {
    char what[8];
    uint64_t version;
    uint64_t bytes; /* of the state that follows */
    struct digest digest;
};

static const char what[8] = "reprodCP"; /* no NUL */

__attribute__((format(printf, 2, 3))) static bool fail(char *ret_cause,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(ret_cause, CHECKPOINT_CAUSE_SIZE, format, arguments);
    va_end(arguments);
    return false;
}

int checkpoint_create(char ret_cause[CHECKPOINT_CAUSE_SIZE])
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    int file = -1;

    if (!folder || !*folder) {
        folder = "/tmp";
    }
    errno = ENAMETOOLONG;
    if (snprintf(path, sizeof path, "%s/reprod-checkpoint-XXXXXX", folder) <
        (int)sizeof path) {
        file = mkostemp(path, O_CLOEXEC);
    }
    if (file < 0) {
        fail(ret_cause, "cannot create a checkpoint in %.256s: %s", folder,
             strerror(errno));
    } else {
        unlink(path);
    }
    return file;
}

static bool write_all(int file, const void *data, size_t bytes, off_t at)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t written =
            pwrite(file, (const char *)data + done, bytes - done, at + (off_t)done);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

/* How many of BYTES there were; -1 on an error. */
static ssize_t read_all(int file, void *data, size_t bytes, off_t at)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got = pread(file, (char *)data + done, bytes - done, at + (off_t)done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

bool checkpoint_save(int file, const void *state, size_t bytes,
                     char ret_cause[CHECKPOINT_CAUSE_SIZE])
{
    struct header header = { .version = VERSION,
                             .bytes = bytes,
                             .digest = digest_bytes(state, bytes) };

    memcpy(header.what, what, sizeof what);
    if (ftruncate(file, 0) < 0 || !write_all(file, &header, sizeof header, 0) ||
        !write_all(file, state, bytes, sizeof header)) {
        return fail(ret_cause, "cannot save the checkpoint: %s", strerror(errno));
    }
    return true;
}

static bool header_check(const struct header *header, size_t bytes, char *ret_cause)
{
    if (memcmp(header->what, what, sizeof what) != 0) {
        return fail(ret_cause, "the file is no checkpoint");
    }
    if (header->version != VERSION) {
        return fail(ret_cause, "the checkpoint has version %llu, not %d",
                    (unsigned long long)header->version, VERSION);
    }
    if (header->bytes != bytes) {
        return fail(ret_cause, "the checkpoint holds %llu bytes of state, not %zu",
                    (unsigned long long)header->bytes, bytes);
    }
    return true;
}

bool checkpoint_load(int file, void *ret_state, size_t bytes,
                     char ret_cause[CHECKPOINT_CAUSE_SIZE])
{
    struct header header;
    struct stat status;
    ssize_t got = read_all(file, &header, sizeof header, 0);

    if (got < 0 || fstat(file, &status) < 0) {
        return fail(ret_cause, "cannot read the checkpoint: %s", strerror(errno));
    }
    if (got < (ssize_t)sizeof header) {
        return fail(ret_cause, "the checkpoint is cut off after %zd bytes", got);
    }
    if (!header_check(&header, bytes, ret_cause)) {
        return false;
    }
    if (status.st_size != (off_t)(sizeof header + bytes)) {
        return fail(ret_cause, "the checkpoint has %lld bytes, not %zu: it is %s",
                    (long long)status.st_size, sizeof header + bytes,
                    status.st_size < (off_t)(sizeof header + bytes) ? "cut off"
                                                                    : "too long");
    }
    got = read_all(file, ret_state, bytes, sizeof header);
    if (got != (ssize_t)bytes) {
        return fail(ret_cause, "cannot read the checkpoint: %s",
                    got < 0 ? strerror(errno) : "it became shorter");
    }
    if (!digest_equal(digest_bytes(ret_state, bytes), header.digest)) {
        return fail(ret_cause,
                    "the checkpoint is damaged: it has not the digest of its "
                    "state");
    }
    return true;
}
