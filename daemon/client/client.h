/* The commands of the program reprod that ask a service: thin clients of its API.  Each
 * returns an enum client_exit.
 *
 *   reprod status                 what the service is doing, and what is wrong
 *   reprod matrix [--table NAME]  the status matrix
 *   reprod submit FILE            submits a job
 *   reprod wait JOB               until it is over
 *   reprod drift FROM TO          what changed between two environments
 *   reprod export                 its runs, for another service (daemon/peers/)
 *   reprod check                  a gate: whether results are equal (gate.h)
 *   reprod baseline               what a service knows cases to give (baseline.h)
 *   reprod preflight              whether this machine's devices compute as their equals
 *
 * All take --server URL, or the variable REPROD_SERVER. */
#ifndef DAEMON_CLIENT_CLIENT_H
#define DAEMON_CLIENT_CLIENT_H

#include "daemon/base/err.h"

/* Of what asks a service. */
enum client_exit {
    CLIENT_OK = 0,
    CLIENT_FAILED = 1, /* the service says no: there is no such thing, or a run failed */
    CLIENT_USAGE = 2,  /* the command line, or the request, is wrong */
    CLIENT_UNREACHABLE = 3 /* no service answers, or it takes nothing now */
};

int status_main(int argc, char **argv);
int matrix_main(int argc, char **argv);
int submit_main(int argc, char **argv);
int wait_main(int argc, char **argv);
int drift_main(int argc, char **argv);
int export_main(int argc, char **argv);

/* Its exit status: 0, all cases are equal; 1, some are different; 2, some are unverified,
 * or the command line is wrong; 3, no service answers. */
int check_main(int argc, char **argv);

int baseline_main(int argc, char **argv);

/* Its exit status: an enum preflight_verdict, or CLIENT_USAGE. */
int preflight_main(int argc, char **argv);

/* The whole of the file PATH, "-": of standard input.  Caller frees.  NULL: ERR_INVALID
 * says why. */
char *client_read_file(const char *path, struct err *err);

#endif
