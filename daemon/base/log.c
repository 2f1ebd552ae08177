#include "daemon/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"

enum { LOG_TEXT_SIZE = 1900 };

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
    struct buf line = BUF_INIT;
    char stamp[CLOCK_RFC3339_SIZE] = "";
    char text[LOG_TEXT_SIZE];

    vsnprintf(text, sizeof text, format, args);
    if (!getenv("JOURNAL_STREAM")) {
        clock_rfc3339(clock_wall_ms(), stamp);
    }
    buf_printf(&line, "%s%s%s ", stamp, stamp[0] ? " " : "", level);
    text_show(&line, text, strlen(text), "\t");

    pthread_mutex_lock(&logger.lock);
    if (logger.sink) {
        logger.sink(logger.sink_arg, line.data);
    } else {
        fprintf(stderr, "%s\n", line.data);
    }
    pthread_mutex_unlock(&logger.lock);
    buf_release(&line);
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
