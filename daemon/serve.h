/* The service: `reprod serve`. */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

/* Serves until SIGINT or SIGTERM; returns an enum exit_code. */
int serve_main(int argc, char **argv);

#endif
