/* A library that is loaded before all others (LD_PRELOAD) and makes the n-th call of a
 * kind fail, or kills the process there.  It counts every call, so that whoever plans
 * faults knows how many there are.
 *
 *   REPROD_FAULT=ROLE:CALL:FIRST:TIMES:ACTION
 *     ROLE    serve, agent, maintenance (reprod's other commands) or worker
 *     CALL    a name of FAULT_CALLS, or "any": all of them but malloc
 *     FIRST   the first call that is struck, from 1, over all processes of the role
 *     TIMES   how many calls are struck, from there on
 *     ACTION  a number: errno, and the call fails; "before", "after" or "torn": SIGKILL,
 * torn after half of the bytes were written; "child": the process that was just started
 *             is killed instead
 *   REPROD_FAULT_SHARED=FILE  struct fault_shared, which outlives the processes
 *   REPROD_FAULT_LOG=FILE     a line for each call that was struck: ROLE CALL NUMBER PID
 * PATH FRAME..., each frame as FILE+OFFSET, the innermost first
 */
#ifndef TESTS_FAULTS_PRELOAD_FAULT_H
#define TESTS_FAULTS_PRELOAD_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FAULT_CALLS(X)                                                                   \
    X(malloc)                                                                            \
    X(open)                                                                              \
    X(read)                                                                              \
    X(write)                                                                             \
    X(fsync)                                                                             \
    X(truncate)                                                                          \
    X(mmap)                                                                              \
    X(lock)                                                                              \
    X(rename)                                                                            \
    X(unlink)                                                                            \
    X(stat)                                                                              \
    X(spawn)                                                                             \
    X(thread)                                                                            \
    X(pipe)                                                                              \
    X(pidfd)                                                                             \
    X(socket)                                                                            \
    X(accept)                                                                            \
    X(send)                                                                              \
    X(receive)                                                                           \
    X(event)

enum fault_call {
#define X(name) FAULT_##name,
    FAULT_CALLS(X)
#undef X
        FAULT_any,
    FAULT_CALL_COUNT
};

enum fault_role {
    FAULT_SERVE,
    FAULT_AGENT,
    FAULT_MAINTENANCE,
    FAULT_WORKER,
    FAULT_ROLE_COUNT
};

/* tests/faults/plan.py reads it. */
struct fault_shared {
    _Atomic int64_t calls[FAULT_ROLE_COUNT][FAULT_CALL_COUNT];
    _Atomic int64_t struck;
    _Atomic int64_t wall_ahead_ns; /* what CLOCK_REALTIME is ahead of the system's */
};

enum fault_what { FAULT_PASS, FAULT_FAIL, FAULT_AFTER, FAULT_TORN, FAULT_CHILD };

/* What becomes of this call: FAULT_FAIL with errno set; FAULT_AFTER and FAULT_TORN want
 * fault_kill once it was made.  FD and PATH say of what, for the log: -1 and NULL if
 * unknown. Does not return where the process is killed before the call. */
enum fault_what fault_begin(enum fault_call call, int fd, const char *path);

/* SIGKILL where WHAT asks for it; errno stays. */
void fault_end(enum fault_what what);

/* FAULT_write for a file, or what it is for what transfers messages, FAULT_CALL_COUNT for
 * what is neither, such as an eventfd. */
enum fault_call fault_kind(int fd, enum fault_call file, enum fault_call message);

/* Whether messages over FD are left alone from now on. */
void fault_leave_alone(int fd, bool alone);

/* Whether CODE is of the library whose file's name begins with NAME. */
bool fault_is_library(const void *code, const char *name);

/* What CLOCK_REALTIME is ahead of the system's. */
int64_t fault_wall_ahead_ns(void);

/* The function NAME that this library stands before; found once and kept in CACHE. */
void *fault_real(void **cache, const char *name);
#define REAL(name)                                                                       \
    static void *cached;                                                                 \
    __typeof__(&(name)) real = (__typeof__(&(name)))fault_real(&cached, #name)

#endif
