/* The hosts of a configuration.  One entry may stand for many:
 *
 *   {"name":"gpu-[001-064,070]", "launch":["ssh","{host}","reprod","agent"]}
 *
 * Brackets hold numbers and ranges of numbers, as in the host lists of Slurm: a first
 * number that begins with a zero says how many digits all of its range have.  In the
 * words of `launch`, {host} is the name, as in all its texts.  What else an entry says is
 * said of each. */
#ifndef DAEMON_CONFIG_HOSTS_H
#define DAEMON_CONFIG_HOSTS_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/base/json_in.h"

enum { HOSTS_MAX = 4096 };

/* An entry of `hosts`; what may stand there. */
extern const struct in_shape hosts_entry_shape;

/* One host; borrowed from what it was read from. */
struct host_settings {
    const char *name;
    const json_t *launch; /* array of words, at least one; NULL: its engine makes it */
    const char *engine;   /* which (daemon/config/engine.h); NULL: none */
    bool needed;          /* "keep":"needed": it is started where there is work for it, */
    int idle_release_s;   /* and ended after so long without */
    int hello_s; /* in which its launch command brings a hello; 0: as long as it takes;
                    HOSTS_HELLO_USUAL: the entry does not say */
    int at_once; /* of the hosts of its entry; 0: all */
    int entry;   /* which entry of the file it comes from */
};
enum { HOSTS_HELLO_USUAL = -1 };

/* HOSTS, an array that is as hosts_entry_shape wants it, as a new array with one entry
 * for each host; caller frees with json_decref.  NULL: ERR_INVALID says what is wrong,
 * after the pointer of the entry in FILE: brackets that are none, a range whose hosts all
 * have the same launch, a name that is too long or listed twice, too many, or a limit
 * under which hosts that are always kept would wait for ever. */
json_t *hosts_expand(const json_t *hosts, const char *file, struct err *err);

/* HOST of what hosts_expand returned. */
void hosts_settings(const json_t *host, struct host_settings *ret_settings);

#endif
