#include "daemon/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

static struct {
    pthread_mutex_t lock;
    void (*sink)(void *arg, const char *line);
    void *sink_arg;
} logger = { PTHREAD_MUTEX_INITIALIZER, NULL, NULL };

void log_set_sink(void (*sink)(void *arg, const char *line), void *arg)
{
    pthread_mutex_lock(&logger.lock);
    logger.sink = sink;
    logger.sink_arg = arg;
    pthread_mutex_unlock(&logger.lock);
}

static void log_line(const char *level, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void log_line(const char *level, const char *format, va_list args)
{
    char line[2048];
    char stamp[CLOCK_RFC3339_SIZE + 1] = "";
    char text[1900];

    vsnprintf(text, sizeof text, format, args);
    if (!getenv("JOURNAL_STREAM")) {
        clock_rfc3339(clock_wall_ms(), stamp);
    }
    snprintf(line, sizeof line, "%s%s%s %s", stamp, stamp[0] ? " " : "", level, text);

    pthread_mutex_lock(&logger.lock);
    if (logger.sink) {
        logger.sink(logger.sink_arg, line);
    } else {
        fprintf(stderr, "%s\n", line);
    }
    pthread_mutex_unlock(&logger.lock);
}

#define DEFINE_LOG(name, level)                                                          \
    void name(const char *format, ...)                                                   \
    {                                                                                    \
        va_list args;                                                                    \
        va_start(args, format);                                                          \
        log_line(level, format, args);                                                   \
        va_end(args);                                                                    \
    }

DEFINE_LOG(log_error, "error")
DEFINE_LOG(log_warning, "warning")
DEFINE_LOG(log_info, "info")
