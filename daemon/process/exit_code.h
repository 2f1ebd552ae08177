/* Exit codes of the reprod command, one a cause, so that service managers and scripts can
 * tell them apart.  README.md lists them. */
#ifndef DAEMON_PROCESS_EXIT_CODE_H
#define DAEMON_PROCESS_EXIT_CODE_H

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_OTHER = 1,
    EXIT_CODE_USAGE = 2, /* command line or configuration */
    EXIT_CODE_PORT_IN_USE = 3,
    EXIT_CODE_DATA = 4,       /* data folder or database cannot be read or written */
    EXIT_CODE_NEWER = 5,      /* database of a newer reprod */
    EXIT_CODE_CORRUPT = 6,    /* database damaged, or not ours */
    EXIT_CODE_NETWORK_FS = 7, /* database on a network file system */
    EXIT_CODE_SERVED = 8,     /* another reprod serves this database */
    EXIT_CODE_DIFFERS = 10    /* fsck: stored and recomputed state differ */
};

#endif
