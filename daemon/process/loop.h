/* The loop of a process, where the system refuses what it needs. */
#ifndef DAEMON_PROCESS_LOOP_H
#define DAEMON_PROCESS_LOOP_H

#include <stdint.h>

/* Ends the process with EXIT_CODE_OTHER and words on standard error where RC, of libuv,
 * is an error.  WHAT was tried.  For what nothing can go on without: as when memory runs
 * out, the database is safe at every instant, and who started the process starts another.
 */
void loop_must(int rc, const char *what);

/* From here on a library that aborts is not silent: libuv does where the system refuses
 * it something, without a word.  And memory that jansson cannot get ends the process, as
 * all other memory does (daemon/base/mem.h), rather than being taken for JSON that is
 * wrong. */
void loop_prepare(void);

/* Ends the process with EXIT_CODE_OTHER and words on standard error if it is still there
 * WITHIN_MS from now, whatever its threads wait for: a stop has an end.  Nothing is lost
 * that was acknowledged. */
void loop_must_end(int64_t within_ms);

#endif
