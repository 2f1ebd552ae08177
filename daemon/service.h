/* Inside `reprod serve`: what the service is made of, in order of dependency.  serve.c
 * starts and stops it, service_api.c answers what the API asks of it. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/api.h"
#include "daemon/background.h"
#include "daemon/base/err.h"
#include "daemon/base/health.h"
#include "daemon/changes.h"
#include "daemon/config/config.h"
#include "daemon/delivery/delivery.h"
#include "daemon/evidence/profile.h"
#include "daemon/evidence/verified.h"
#include "daemon/fleet/fleet.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/larger.h"
#include "daemon/localise/localise.h"
#include "daemon/notices.h"
#include "daemon/peers/peers.h"
#include "daemon/process/pump.h"
#include "daemon/recurring.h"
#include "daemon/run/runner.h"
#include "daemon/screening.h"
#include "daemon/stopping.h"
#include "daemon/survey.h"
#include "db/store.h"

struct reload;  /* daemon/reload.c */
struct check;   /* daemon/service_check.c */
struct folding; /* daemon/service_retention.c */
struct slurm;   /* daemon/engine/slurm.h */

struct service {
    uv_loop_t loop;
    int argc; /* the command line, which is read again with the configuration */
    char **argv;
    struct config config;
    struct profile_set *profiles;
    struct verified_set *verified;
    struct store *store;
    struct scheduler *scheduler;
    struct localiser *localiser;
    struct recurring *recurring;
    struct background *background;
    struct larger *larger;
    struct runner *runner;
    struct fleet *fleet;
    struct slurm *slurm; /* NULL: no host is one of Slurm */
    char *slurm_name;    /* of our jobs there */
    struct peers *peers;
    struct api *api;
    struct survey_watch *watch;
    struct changes *changes;
    struct screener *screener;
    struct delivery *delivery; /* NULL: nothing is stored */
    struct notices *notices;   /* likewise */
    struct pump store_pump, api_pump;
    int64_t breathed_ns;   /* monotonic: when requests were served between agents */
    int64_t wrote_ns;      /* monotonic: when what follows from writes was done so */
    uv_timer_t tick, look; /* LOOK: service_watch */
    uv_signal_t interrupt, terminate, hangup;
    bool reads_only;         /* nothing is stored, so nothing runs (store_refusal) */
    bool on_terminal;        /* it was started from one */
    struct reload *reload;   /* in progress; NULL: none is */
    bool reload_again;       /* when that is over */
    struct reload *replaced; /* what reloads replaced, and requests may still read */
    struct stopping stopping;
    int ticks;
    struct health health;
    struct vigil {
        int64_t looked_ms;     /* monotonic, of the last look, or of the start */
        int64_t stalled_ms;    /* when a stall of the loop was noticed; 0: never */
        bool probing;          /* the store was asked, and has not answered */
        int64_t wrote_ms;      /* when it was last asked to commit */
        int64_t moved_ms;      /* when it was last seen to answer anybody's write … */
        int64_t moved_wall_ms; /* (by the clock) */
        uint64_t generation;   /* … since its generation was another one */
        bool asked;            /* somebody wanted to know since it last committed */
        bool clock_apart;      /* from wall time, and that was told */
    } vigil;
    struct check *check;     /* that is going on; NULL: none is */
    int64_t checked_ms;      /* monotonic, when the last one began; 0: never */
    int64_t backup_ms;       /* wall clock, of the newest backup when one last ended; 0 */
    bool check_again;        /* the last one failed or found damage, which is all that
                                HEALTH_DATABASE says: the next one says it anew */
    struct folding *folding; /* of old runs; NULL: none is going on */
    int64_t folded_ms;       /* monotonic, when the last pass ended; 0: never */
    bool profiles_checked;
    struct err refusal; /* why the service ended itself; code ERR_OK: it did not */
    uint64_t generation;
};

/* Looks what is wrong with the service, logs what changed, and asks the store whether it
 * takes writes.  To be called every SERVICE_WATCH_MS: a fault shows within two seconds.
 */
enum { SERVICE_WATCH_MS = 250 };
void service_watch(struct service *service);

/* The same, without what takes time: as of now.  Borrowed until the loop runs on. */
const struct health *service_health(struct service *service);

/* Has the whole database looked through now and then; called once a second, and ends what
 * is going on once the service stops. */
void service_check(struct service *service);

/* COUNT things are in quarantine (db/integrity/quarantine.h), WORDS says which: as the
 * condition `database`. */
void service_tell_quarantine(struct service *service, int64_t count, const char *words);

/* Has old runs folded, a few at a time, as the configuration says; called once a second.
 */
void service_retention(struct service *service);

/* Reads the configuration again, on a thread of its own.  If it is wrong, the one of
 * before stays, and the log says why.  What cannot change while the service runs is said
 * there, too. */
void service_reload(struct service *service);

/* Frees what earlier reloads replaced, once nobody reads it; called once a second.  ALL:
 * nobody does. */
void service_free_replaced(struct service *service, bool all);

/* Devices may have to be screened: some may be there, or the configuration changed. */
void service_screen(struct service *service);

/* Opens the database of the configuration, or the backup that is to be shown.  Returns an
 * enum exit_code, with ERR filled where it is not 0. */
int service_open_store(struct service *service, struct err *err);

/* Where the store refuses writes: what is there is shown, nothing runs, and the health of
 * the service says why. */
void service_tell_read_only(struct service *service);

/* Takes over what the database has of the last service; where nothing is stored, what is
 * wrong with it only. */
enum err_code service_resume(struct service *service, struct err *err);

/* What the fleet has for hosts that an engine starts. */
struct fleet_engine service_engine(struct service *service);

/* The engine of the hosts is asked from now on; the fleet is there. */
void service_open_engine(struct service *service);

/* Starts listening; returns an enum exit_code, with ERR filled where it is not 0. */
int service_open_api(struct service *service, struct err *err);

/* Background evidence by the configuration as it is now. */
void service_configure_background(struct service *service);

/* Webhooks are told of what happens from now on. */
void service_open_webhooks(struct service *service);
void service_configure_webhooks(struct service *service); /* as the configuration says */

/* Tells, in events, what the service sees itself; called once a second. */
void service_notice(struct service *service);

/* Recurring jobs, and background evidence, are made from now on. */
enum err_code service_open_recurring(struct service *service, struct err *err);

/* JOB is durable: it is scheduled from now on.  ARG is the service. */
void service_job_accepted(void *arg, const struct job *job);

#endif
