#include "daemon/link/agent_log.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/process/wire.h"

/* The agent's log has the daemon's form: its time is dropped, its level taken over. */
static const char *without_time(const char *line)
{
    char time[CLOCK_RFC3339_SIZE];
    int64_t wall_ms;

    copy_text(time, sizeof time, line);
    if (strlen(line) > strlen(time) && line[strlen(time)] == ' ' &&
        clock_parse_rfc3339(time, &wall_ms) == 0) {
        return line + strlen(time) + 1;
    }
    return line;
}

static const struct {
    const char *prefix;
    void (*log)(const char *format, ...);
} levels[] = {
    { "error ", log_error },
    { "warning ", log_warning },
    { "info ", log_info },
};

static void write_line(const struct agent_log *log, const char *text)
{
    void (*write)(const char *format, ...) = log_info;

    for (int i = 0; i < COUNT_OF(levels); i++) {
        if (strncmp(text, levels[i].prefix, strlen(levels[i].prefix)) == 0) {
            write = levels[i].log;
            text += strlen(levels[i].prefix);
            break;
        }
    }
    write("%s: %s", log->host, text);
}

static void say_left(const struct agent_log *log)
{
    log_warning("%s: %" PRId64 " more lines of its standard error, %" PRId64
                " bytes, were left out",
                log->host, log->left_lines, log->left_bytes);
}

void agent_log_tick(struct agent_log *log, int64_t now_ms)
{
    if (log->window_ms && now_ms - log->window_ms < AGENT_LOG_WINDOW_MS) {
        return;
    }
    if (log->left_lines) {
        say_left(log);
    }
    log->window_ms = now_ms;
    log->lines = log->bytes = log->left_lines = log->left_bytes = 0;
}

static void end_line(struct agent_log *log, int64_t now_ms)
{
    int64_t length = (int64_t)log->length;
    const char *text;

    log->line[log->length] = '\0';
    log->length = 0;
    wire_clean(log->line);
    text = without_time(log->line);
    copy_text(log->last, sizeof log->last, text);
    agent_log_tick(log, now_ms);
    if (log->left_lines == 0 && log->lines < AGENT_LOG_LINES &&
        log->bytes + length <= AGENT_LOG_BYTES) {
        log->lines++;
        log->bytes += length;
        write_line(log, text);
        return;
    }
    if (log->left_lines == 0) {
        log_warning(
            "%s: it says more on its standard error than is logged: what "
            "follows is counted",
            log->host);
    }
    log->left_lines++;
    log->left_bytes += length + 1;
}

void agent_log_add(struct agent_log *log, const char *data, size_t length, int64_t now_ms)
{
    for (size_t i = 0; i < length; i++) {
        if (data[i] == '\n') {
            end_line(log, now_ms);
        } else if (log->length < sizeof log->line - 1) {
            log->line[log->length++] = data[i] ? data[i] : ' ';
        }
    }
}

void agent_log_end(struct agent_log *log, int64_t now_ms)
{
    if (log->length) {
        end_line(log, now_ms);
    }
    if (log->left_lines) {
        say_left(log);
        log->left_lines = 0;
    }
}

bool agent_log_overflows(const struct agent_log *log)
{
    return log->left_lines > 0;
}
