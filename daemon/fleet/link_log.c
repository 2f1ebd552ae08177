#include "daemon/fleet/link_log.h"

#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/process/wire.h"

void link_log_init(struct link_log *log, const char *host)
{
    *log = (struct link_log){ .host = host };
}

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

static void end_line(struct link_log *log)
{
    void (*write)(const char *format, ...) = log_info;
    const char *text;

    log->line[log->length] = '\0';
    wire_clean(log->line);
    text = without_time(log->line);
    copy_text(log->last, sizeof log->last, text);
    for (int i = 0; i < COUNT_OF(levels); i++) {
        if (strncmp(text, levels[i].prefix, strlen(levels[i].prefix)) == 0) {
            write = levels[i].log;
            text += strlen(levels[i].prefix);
            break;
        }
    }
    write("%s: %s", log->host, text);
    log->length = 0;
}

void link_log_add(struct link_log *log, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (data[i] == '\n') {
            end_line(log);
        } else if (log->length < sizeof log->line - 1) {
            log->line[log->length++] = data[i] ? data[i] : ' ';
        }
    }
}

const char *link_log_last(const struct link_log *log)
{
    return log->last;
}

void link_log_release(struct link_log *log)
{
    if (log->length) {
        end_line(log);
    }
}
