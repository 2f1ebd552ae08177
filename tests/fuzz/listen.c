/* --listen ADDRESS:PORT. */
#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct config config;
    struct err err;

    config_init(&config);
    if (config_set_listen(&config, text, &err) == ERR_OK) {
        FUZZ_CHECK(config.address && config.port >= 0 && config.port <= 65535);
    }
    config_release(&config);
    free(text);
}

FUZZ_TARGET("listen", run);
