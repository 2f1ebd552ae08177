#include "daemon/terminal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"

enum { BAR_WIDTH = 32 };

static struct {
    bool is_terminal;
    bool drawn;
    char line[256];
    int last_tenth; /* elsewhere than on a terminal */
} terminal;

static void erase(void)
{
    if (terminal.drawn) {
        fputs("\r\033[K", stdout);
        terminal.drawn = false;
    }
}

static void draw(void)
{
    if (terminal.is_terminal && terminal.line[0]) {
        fputs(terminal.line, stdout);
        terminal.drawn = true;
    }
    fflush(stdout);
}

static void log_above(void *arg, const char *line)
{
    (void)arg;
    erase();
    fflush(stdout);
    fprintf(stderr, "%s\n", line);
    draw();
}

void terminal_open(void)
{
    terminal.is_terminal = isatty(STDOUT_FILENO);
    terminal.last_tenth = -1;
    log_set_sink(log_above, NULL);
}

void terminal_close(void)
{
    terminal_clear();
    log_set_sink(NULL, NULL);
}

static void format_eta(char *text, size_t size, int64_t eta_ms)
{
    int64_t seconds = (eta_ms + 999) / 1000;

    if (eta_ms < 0) {
        snprintf(text, size, "ETA unknown");
    } else if (seconds < 60) {
        snprintf(text, size, "ETA %" PRId64 " s", seconds);
    } else {
        snprintf(text, size, "ETA %" PRId64 " min %02" PRId64 " s", seconds / 60,
                 seconds % 60);
    }
}

void terminal_progress(const char *label, int done, int total, int failed, int64_t eta_ms)
{
    char bar[BAR_WIDTH + 1];
    char eta[48];
    char trouble[48] = "";
    int filled = total > 0 ? (int)((int64_t)done * BAR_WIDTH / total) : 0;
    int tenth = total > 0 ? (int)((int64_t)done * 10 / total) : 0;

    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[BAR_WIDTH] = '\0';
    format_eta(eta, sizeof eta, eta_ms);
    if (failed > 0) {
        snprintf(trouble, sizeof trouble, ", %d failed", failed);
    }
    erase();
    snprintf(terminal.line, sizeof terminal.line, "%s [%s] %d of %d runs%s, %s", label,
             bar, done, total, trouble, eta);
    if (!terminal.is_terminal && tenth != terminal.last_tenth) {
        terminal.last_tenth = tenth;
        printf("%s\n", terminal.line);
    }
    draw();
}

void terminal_clear(void)
{
    erase();
    terminal.line[0] = '\0';
    fflush(stdout);
}

void terminal_print(const char *text)
{
    erase();
    fputs(text, stdout);
    draw();
}
