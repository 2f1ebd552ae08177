/* The daemon's and agent's log: one line an event on stderr, "LEVEL area: text",
 * prefixed with a UTC timestamp unless systemd's journal adds its own.  What would act on
 * a terminal, a line break too, is spelt (text_show). */
#ifndef DAEMON_BASE_LOG_H
#define DAEMON_BASE_LOG_H

/* Every line, the timestamp and level included, also goes to SINK(arg, line) instead of
 * stderr; NULL restores stderr.  The terminal progress display uses it to keep its own
 * line last.  SINK must not log. */
void log_set_sink(void (*sink)(void *arg, const char *line), void *arg);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
