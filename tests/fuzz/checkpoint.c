/* A checkpoint file of a training: only what was saved is loaded. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "workloads/checkpoint/file.h"

enum { STATE_BYTES = 64 };

static void run(const uint8_t *data, size_t size)
{
    char cause[CHECKPOINT_CAUSE_SIZE] = "", path[FUZZ_PATH_SIZE];
    uint8_t state[STATE_BYTES], saved[2 * STATE_BYTES + 256];
    int fd = fuzz_file(data, size, path);
    ssize_t length;

    if (checkpoint_load(fd, state, sizeof state, cause)) {
        FUZZ_CHECK(checkpoint_save(fd, state, sizeof state, cause));
        length = pread(fd, saved, sizeof saved, 0);
        FUZZ_CHECK(length == (ssize_t)size && memcmp(saved, data, size) == 0);
    } else {
        FUZZ_CHECK(cause[0]);
    }
    memset(state, size ? data[0] : 0, sizeof state);
    FUZZ_CHECK(checkpoint_save(fd, state, sizeof state, cause));
    FUZZ_CHECK(checkpoint_load(fd, state, sizeof state, cause));
    close(fd);
}

FUZZ_TARGET("checkpoint", run);
