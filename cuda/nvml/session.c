#include "cuda/nvml/session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct session {
    bool loaded, initialized, given_up;
    char cause[NVML_CAUSE_SIZE]; /* once given up */
    struct nvml_api api;
} session;

/* One reading.  A thread that hangs keeps it for ever. */
struct reading {
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    bool done;
    bool initialize;
    int code; /* of nvmlInit_v2 */
    const struct nvml_api *api;
    nvml_read_fn *read;
    char record[];
};

static bool give_up(const char *cause, char ret_cause[NVML_CAUSE_SIZE])
{
    snprintf(session.cause, NVML_CAUSE_SIZE, "%s", cause);
    snprintf(ret_cause, NVML_CAUSE_SIZE, "%s", cause);
    session.given_up = true;
    return false;
}

static void *read_main(void *arg)
{
    struct reading *reading = arg;

    if (reading->initialize) {
        reading->code = reading->api->Init_v2();
    }
    if (reading->code == NVML_OK) {
        reading->read(reading->api, reading->record);
    }
    pthread_mutex_lock(&reading->mutex);
    reading->done = true;
    pthread_cond_signal(&reading->answered);
    pthread_mutex_unlock(&reading->mutex);
    return NULL;
}

static struct reading *reading_new(nvml_read_fn *read, const void *record, size_t size)
{
    struct reading *reading = calloc(1, sizeof *reading + size);
    pthread_condattr_t attributes;

    if (!reading) {
        abort();
    }
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&reading->answered, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&reading->mutex, NULL);
    reading->initialize = !session.initialized;
    reading->api = &session.api;
    reading->read = read;
    memcpy(reading->record, record, size);
    return reading;
}

static void reading_free(struct reading *reading)
{
    pthread_mutex_destroy(&reading->mutex);
    pthread_cond_destroy(&reading->answered);
    free(reading);
}

static struct timespec time_in(int ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static bool wait_for(struct reading *reading, int deadline_ms)
{
    struct timespec deadline = time_in(deadline_ms);
    int rc = 0;
    bool done;

    pthread_mutex_lock(&reading->mutex);
    while (!reading->done && rc == 0) {
        rc = pthread_cond_timedwait(&reading->answered, &reading->mutex, &deadline);
    }
    done = reading->done;
    pthread_mutex_unlock(&reading->mutex);
    return done;
}

/* Registered late, so called before whatever might wait for the thread that hangs. */
static void leave_cb(int status, void *arg)
{
    (void)arg;
    _exit(status);
}

static bool run(struct reading *reading, int deadline_ms, char ret_cause[NVML_CAUSE_SIZE])
{
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, read_main, reading);

    if (rc != 0) {
        snprintf(ret_cause, NVML_CAUSE_SIZE, "no thread to read NVML: %s", strerror(rc));
        reading_free(reading);
        return false;
    }
    if (!wait_for(reading, deadline_ms)) {
        char cause[NVML_CAUSE_SIZE];

        pthread_detach(thread);
        on_exit(leave_cb, NULL);
        snprintf(cause, sizeof cause, "NVML did not answer within %d ms", deadline_ms);
        return give_up(cause, ret_cause);
    }
    pthread_join(thread, NULL);
    return true;
}

static bool conclude(struct reading *reading, void *record, size_t size,
                     char ret_cause[NVML_CAUSE_SIZE])
{
    int code = reading->code;
    char text[NVML_CAUSE_SIZE];
    char cause[NVML_CAUSE_SIZE];

    if (code == NVML_OK) {
        memcpy(record, reading->record, size);
        session.initialized = true;
        reading_free(reading);
        return true;
    }
    reading_free(reading);
    nvml_describe(code, text);
    snprintf(cause, sizeof cause, "nvmlInit_v2: %.200s", text);
    return give_up(cause, ret_cause);
}

bool nvml_session_read(nvml_read_fn *read, void *record, size_t size, int deadline_ms,
                       char ret_cause[NVML_CAUSE_SIZE])
{
    struct reading *reading;
    char cause[NVML_CAUSE_SIZE];

    if (session.given_up) {
        snprintf(ret_cause, NVML_CAUSE_SIZE, "%s", session.cause);
        return false;
    }
    if (!session.loaded && !nvml_api_load(&session.api, cause)) {
        return give_up(cause, ret_cause);
    }
    session.loaded = true;
    reading = reading_new(read, record, size);
    return run(reading, deadline_ms, ret_cause) &&
           conclude(reading, record, size, ret_cause);
}
