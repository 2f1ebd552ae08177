#include "daemon/client/local.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"

enum { POLL_MS = 50, HEARD_MS = 5000, SAID_SIZE = 8192, DEPTH = 16 };
/* Longer than a stack may take to say what it is. */
enum { READY_MS = 660000 };
/* For a service to end its runs, and itself. */
enum { LEFT_MS = 30000 };
/* Of a host that cannot be started, and is tried again. */
enum { LOST_MS = 60000 };
static const char LISTENING[] = "listening on ";

/* In the child: never returns.  The parent may have ended before prctl was called. */
static void become_service(const struct local *local, pid_t parent, char **argv)
{
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC), said = fileno(local->said);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(none, STDIN_FILENO) >= 0 &&
        dup2(said, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0) {
        execv("/proc/self/exe", argv);
    }
    _exit(127);
}

static char words[][16] = { "reprod",   "serve",       "--no-survey", "--data",
                            "--listen", "127.0.0.1:0", "--config",    "--no-webhooks" };

static enum err_code spawn(struct local *local, const char *config, const char *data,
                           struct err *err)
{
    char *argv[] = { words[0],       words[1],     words[2],
                     words[3],       (char *)data, words[4],
                     words[5],       words[7],     config ? words[6] : NULL,
                     (char *)config, NULL };
    pid_t parent = getpid();

    local->said = tmpfile();
    if (!local->said || fcntl(fileno(local->said), F_SETFL, O_APPEND) != 0) {
        return err_set_errno(err, errno, "a file for what the service prints");
    }
    local->pid = fork();
    if (local->pid == 0) {
        become_service(local, parent, argv);
    }
    return local->pid > 0 ? ERR_OK : err_set_errno(err, errno, "fork");
}

/* The beginning of what it printed, as a text. */
static void read_said(const struct local *local, char text[SAID_SIZE])
{
    ssize_t length = pread(fileno(local->said), text, SAID_SIZE - 1, 0);

    text[length > 0 ? length : 0] = '\0';
}

/* "http://127.0.0.1:40123" of its first line to standard output; false: not yet. */
static bool read_address(const struct local *local, char address[SERVER_TEXT_SIZE])
{
    char text[SAID_SIZE];
    const char *at;
    size_t length;

    read_said(local, text);
    for (at = text; at && strncmp(at, LISTENING, sizeof LISTENING - 1) != 0;) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    length = at ? strcspn(at, "\n") : 0;
    if (!at || at[length] != '\n' || length >= SERVER_TEXT_SIZE) {
        return false;
    }
    at += sizeof LISTENING - 1;
    snprintf(address, SERVER_TEXT_SIZE, "%.*s", (int)(length - (sizeof LISTENING - 1)),
             at);
    return true;
}

static bool has_ended(struct local *local)
{
    if (waitpid(local->pid, NULL, WNOHANG) != local->pid) {
        return false;
    }
    local->pid = 0;
    return true;
}

/* The answer to GET PATH, or NULL; *ret_status is 0 where there is none. */
static json_t *ask(const struct server *server, const char *path, int *ret_status)
{
    struct err err;
    struct answer answer;
    bool answered = server_ask(server, "GET", path, NULL, NULL, &answer, &err) == ERR_OK;
    json_t *said =
        answered ? json_loadb(answer.body.data, answer.body.length, 0, NULL) : NULL;

    *ret_status = answered ? answer.status : 0;
    answer_release(&answer);
    return said;
}

/* Whether it is ready; if not, ERR says why. */
static bool is_ready(const struct server *server, struct err *err)
{
    int status;
    json_t *said = ask(server, "/readyz", &status);
    const char *detail = in_text(said, "detail");

    err_set(err, ERR_BUSY, "the service of this check is not ready: %s",
            detail ? detail : "it does not answer");
    json_decref(said);
    return status == 200;
}

/* Whether each host has said what is there.  What is not ready then stays so.  If not,
 * ERR says of which, and *ret_lost whether the service knows why. */
static bool has_heard_all(const struct server *server, bool *ret_lost, struct err *err)
{
    int status;
    json_t *said = ask(server, "/v1/hosts", &status);
    const json_t *hosts = json_object_get(said, "items"), *host;
    bool all = json_array_size(hosts) > 0;
    size_t i;

    *ret_lost = false;
    json_array_foreach(hosts, i, host)
    {
        const char *cause = in_text(host, "cause");
        const char *state = in_text_or_empty(host, "state");

        /* One that is released has said it, and one that waits does as it should. */
        if (!json_is_true(json_object_get(host, "online")) &&
            strcmp(state, "released") != 0 && !*ret_lost) {
            all = false;
            *ret_lost = cause != NULL && strcmp(state, "waiting") != 0;
            err_set(err, ERR_BUSY, "host %s is not online: %s",
                    in_text_or_empty(host, "name"),
                    cause ? cause : "its agent has said nothing yet");
        }
    }
    json_decref(said);
    return all;
}

static enum err_code ended_early(const struct local *local, struct err *err)
{
    char text[SAID_SIZE], *rest = text;

    read_said(local, text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (line[0]) {
            text_print(stderr, "%s", line);
        }
    }
    return err_set(err, ERR_IO, "the service of this check ended before it was ready");
}

/* A job is of the devices that are there: what has not said so would not be measured, and
 * not be missed.  Once all was heard, its own look at that may be a second away. */
static enum err_code wait_until_ready(struct local *local, struct server *server,
                                      struct err *err)
{
    const struct timespec pause = { 0, POLL_MS * 1000000L };
    char address[SERVER_TEXT_SIZE];
    bool listens = false, lost;
    int heard = 0, without = 0;

    for (int polls = 0; polls < READY_MS / POLL_MS; polls++) {
        if (has_ended(local)) {
            return ended_early(local, err);
        }
        listens = listens || (read_address(local, address) &&
                              server_read(address, server, err) == ERR_OK);
        if (listens && !has_heard_all(server, &lost, err)) {
            heard = 0;
            without += lost;
        } else if (listens && is_ready(server, err)) {
            server->is_own = true;
            err->code = ERR_OK;
            return ERR_OK;
        } else {
            heard += listens;
        }
        if (heard > HEARD_MS / POLL_MS || without > LOST_MS / POLL_MS) {
            return err->code;
        }
        nanosleep(&pause, NULL);
    }
    return listens
               ? err->code
               : err_set(err, ERR_TIMEOUT, "the service of this check does not listen");
}

enum err_code local_start(const char *config, const char *data, struct local *ret_local,
                          struct server *ret_server, struct err *err)
{
    *ret_local = (struct local){ .pid = 0 };
    if (spawn(ret_local, config, data, err) != ERR_OK) {
        return err->code;
    }
    return wait_until_ready(ret_local, ret_server, err);
}

void local_stop(struct local *local)
{
    if (local->pid > 0) {
        kill(local->pid, SIGTERM);
        while (waitpid(local->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (local->said) {
        fclose(local->said);
    }
    *local = (struct local){ .pid = 0 };
}

static volatile sig_atomic_t worker;

static void on_signal(int number)
{
    (void)number;
    kill(worker, SIGTERM);
}

static int remove_cb(const char *path, const struct stat *status, int kind,
                     struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    remove(path);
    return 0;
}

enum { SPARED_MAX = 256 };
static pid_t spared[SPARED_MAX];
static int spared_count;

static bool is_spared(pid_t pid)
{
    int i = 0;

    while (i < spared_count && spared[i] != pid) {
        i++;
    }
    return i < spared_count;
}

/* TAKE each child; false: it is not known which there are. */
static bool each_child(void (*take)(pid_t pid, int *count), int *count)
{
    char path[64], line[32];
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    while (file && fscanf(file, "%31s", line) == 1) {
        take((pid_t)strtol(line, NULL, 10), count);
    }
    return file && fclose(file) == 0;
}

static void spare(pid_t pid, int *count)
{
    if (*count < SPARED_MAX) {
        spared[(*count)++] = pid;
    }
}

static void count_own(pid_t pid, int *count)
{
    *count += !is_spared(pid);
}

static void kill_own(pid_t pid, int *count)
{
    (void)count;
    if (!is_spared(pid)) {
        kill(pid, SIGKILL);
    }
}

void local_spare_children(void)
{
    spared_count = 0;
    each_child(spare, &spared_count);
}

void local_kill_children(void)
{
    each_child(kill_own, NULL);
}

bool local_has_only_spared(void)
{
    int own = 0;

    return spared_count > 0 && each_child(count_own, &own) && own == 0;
}

/* Waits for all children; those of the worker became ours.  What is left some time after
 * the worker belongs to an agent that was killed: nobody else ends it.  Returns the
 * worker's exit status. */
static int wait_for_all(pid_t pid)
{
    const struct timespec pause = { 0, POLL_MS * 1000000L };
    int status = 0, code = 0, left = LEFT_MS / POLL_MS;
    bool ended = false;

    for (;;) {
        pid_t child = waitpid(-1, &status, ended ? WNOHANG : 0);

        if (child == pid) {
            ended = true;
            code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        } else if (child < 0 && errno != EINTR) {
            return code;
        } else if (child == 0) {
            if (local_has_only_spared()) {
                return code;
            }
            if (left-- <= 0) {
                local_kill_children();
            }
            nanosleep(&pause, NULL);
        }
    }
}

char *local_scratch_make(struct err *err)
{
    const char *base = getenv("TMPDIR");
    char *folder = xasprintf("%s/reprod-check-XXXXXX", base && base[0] ? base : "/tmp");

    if (mkdtemp(folder)) {
        return folder;
    }
    err_set_errno(err, errno, "%s", folder);
    free(folder);
    return NULL;
}

void local_scratch_remove(char *folder)
{
    nftw(folder, remove_cb, DEPTH, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

int local_in_scratch(int (*work)(void *arg, const char *folder), void *arg,
                     struct err *err)
{
    const struct sigaction forward = { .sa_handler = on_signal };
    char *folder = local_scratch_make(err);
    pid_t pid = -1;
    int code = -1;

    if (!folder) {
        return -1;
    }
    local_spare_children();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        exit(work(arg, folder));
    }
    if (pid > 0) {
        worker = pid;
        sigaction(SIGINT, &forward, NULL);
        sigaction(SIGTERM, &forward, NULL);
        sigaction(SIGHUP, &forward, NULL);
        code = wait_for_all(pid);
    } else {
        err_set_errno(err, errno, "fork");
    }
    local_scratch_remove(folder);
    return code;
}
