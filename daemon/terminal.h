/* What `reprod serve` shows on the terminal: one line of progress that stays last,
 * redrawn in place on a terminal and printed at every tenth elsewhere. */
#ifndef DAEMON_TERMINAL_H
#define DAEMON_TERMINAL_H

#include <stdint.h>

/* Log lines go above the progress line from now on. */
void terminal_open(void);
void terminal_close(void);

/* LABEL: what is running ("survey").  ETA_MS -1: unknown. */
void terminal_progress(const char *label, int done, int total, int failed,
                       int64_t eta_ms);

/* Removes the progress line. */
void terminal_clear(void);

/* Prints TEXT (lines) above the progress line. */
void terminal_print(const char *text);

#endif
