/* The configuration file, external workloads included. */
#include <unistd.h>

#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH_SIZE];
    int fd = fuzz_file(data, size, path);
    struct config config;
    struct err err;

    config_init(&config);
    if (config_read(&config, path, &err) == ERR_OK) {
        FUZZ_CHECK(config.address && config.port >= 0 && config.port <= 65535);
        FUZZ_CHECK(json_is_array(config.stacks) && json_is_array(config.workloads));
    } else {
        FUZZ_CHECK(err.message[0]);
    }
    config_release(&config);
    close(fd);
}

FUZZ_TARGET("config", run);
