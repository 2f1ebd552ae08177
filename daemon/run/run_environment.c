#include "daemon/run/run_environment.h"

#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/process/wire.h"

static const char *text_of(const json_t *environment, const char *key)
{
    const char *text = json_string_value(json_object_get(environment, key));

    return text ? text : "";
}

enum err_code run_environment_check(const json_t *environment, const char *backend,
                                    int64_t threads, struct err *err)
{
    static const char *const required[] = { "backend", "model", "worker_build" };
    const json_t *own_threads = json_object_get(environment, "threads");
    const char *key;
    json_t *value;

    if (!json_is_object(environment)) {
        return err_set(err, ERR_PROTOCOL, "environment is not an object");
    }
    json_object_foreach((json_t *)environment, key, value)
    {
        if (!json_is_string(value) && !json_is_integer(value)) {
            return err_set(err, ERR_PROTOCOL,
                           "environment.%.64s is neither a string nor an integer", key);
        }
    }
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (text_of(environment, required[i])[0] == '\0') {
            return err_set(err, ERR_PROTOCOL, "environment does not name its %s",
                           required[i]);
        }
    }
    if (strcmp(text_of(environment, "backend"), backend) != 0) {
        return err_set(err, ERR_PROTOCOL, "environment.backend is not backend");
    }
    if (own_threads && json_integer_value(own_threads) != threads) {
        return err_set(err, ERR_PROTOCOL, "environment.threads is not threads");
    }
    return ERR_OK;
}

char *run_environment_canonical(const json_t *environment)
{
    return json_dumps(environment, JSON_COMPACT | JSON_SORT_KEYS);
}

/* What is named in a title, where the environment has it, with the words around it.  Of
 * cuBLAS "13 build 0a1b2c3d", as of the worker: enough to tell two apart. */
static const struct {
    const char *key, *before, *after;
    int most; /* characters of it; 0: all */
} title_parts[] = {
    { "backend", "", "", 0 },           { "model", "", "", 0 },
    { "threads", "", " threads", 0 },   { "driver", "driver ", "", 0 },
    { "cuda_runtime", "CUDA ", "", 0 }, { "cudnn", "cuDNN ", "", 0 },
    { "cublas", "cuBLAS ", "", 17 },    { "nccl", "NCCL ", "", 0 },
    { "onednn", "oneDNN ", "", 0 },     { "worker_build", "worker ", "", 8 },
};

char *run_environment_title(const json_t *environment)
{
    struct buf title = BUF_INIT;
    char *text;

    for (size_t i = 0; i < sizeof title_parts / sizeof *title_parts; i++) {
        const json_t *value = json_object_get(environment, title_parts[i].key);

        if (!value) {
            continue;
        }
        if (title.length) {
            buf_puts(&title, " \xc2\xb7 ");
        }
        buf_puts(&title, title_parts[i].before);
        if (json_is_integer(value)) {
            buf_printf(&title, "%lld", (long long)json_integer_value(value));
        } else {
            buf_printf(&title, "%.*s", title_parts[i].most ? title_parts[i].most : 120,
                       json_string_value(value));
        }
        buf_puts(&title, title_parts[i].after);
    }
    text = buf_detach(&title, NULL);
    wire_clean(text); /* a model may have been cut within a character */
    return text;
}
