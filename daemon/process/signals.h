/* Signals that mean nothing to the processes of the service. */
#ifndef DAEMON_PROCESS_SIGNALS_H
#define DAEMON_PROCESS_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* Ignores whatever would end this process, is no fault of its own, and has no meaning for
 * it.  SIGINT, SIGQUIT and SIGTERM stay; who starts a program gives it the default of all
 * again.  A limit that SIGXFSZ or SIGXCPU tell of is an error of the write, or SIGKILL.
 */
static inline void signals_ignore(void)
{
    static const int numbers[] = { SIGHUP,  SIGUSR1,   SIGUSR2, SIGPIPE,
                                   SIGALRM, SIGSTKFLT, SIGXCPU, SIGXFSZ,
                                   SIGPWR,  SIGVTALRM, SIGPROF, SIGIO };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        signal(numbers[i], SIG_IGN);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        signal(number, SIG_IGN);
    }
}

#endif
