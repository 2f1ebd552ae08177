/* Many agents in one process, with results that were recorded (record.py):
 *
 *   scale-player play SOCKET CATALOGUE RESULTS DEVICES ANSWERED
 *   scale-player agent SOCKET HOST       the launch command of a host
 *
 * An agent hands its standard input and output over to the player and waits until that
 * lets go of them: so a host costs a sleeping process, and two processors are enough for
 * hundreds of them.  The player says that each host has DEVICES devices, and ends when
 * its standard input does.  Runs take no time; after a number of milliseconds on its
 * standard input, they take that in the mean, from half of it to half as much again.
 * ANSWERED gets a line for each run that it answered in full: its id, a blank, and its
 * iterations.
 *
 * RESULTS: recorded.h. */
#include "tests/scale/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 64,
    READ_SIZE = 65536,
    FDS = 2,
    MERGED_MAX = 256, /* iterations in a line, as agents have it */
    STEP_MS = 5       /* between looks at which runs are over */
};

/* A watched descriptor: the player's own input, its socket, or one of an agent. */
struct agent {
    char host[128];
    int socket, in, out;
    bool watches_out;
    struct text read, write;
};
struct watched {
    enum { OWN_INPUT, LISTENER, AGENT_SOCKET, AGENT_IN, AGENT_OUT } kind;
    struct agent *agent; /* of the last three */
};

/* A run that takes time. */
static struct going {
    struct agent *agent;
    char *line; /* owned */
    int64_t due_ms;
} * going;
static int going_count, going_capacity, run_ms;
static int devices, epoll;
static char *catalogue;
static FILE *answered;
static uint64_t controls; /* iterations of controls so far */

__attribute__((format(printf, 2, 3))) static void say(struct agent *agent,
                                                      const char *format, ...)
{
    char line[16384];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof line) {
        fprintf(stderr, "a line is too long\n");
        exit(1);
    }
    text_add(&agent->write, line, (size_t)length);
}

/* The value of KEY, a string or a number, in a line that the service wrote: without
 * blanks between, and nothing escaped. */
static bool value_of(const char *line, const char *key, char *ret_value, size_t size)
{
    char quoted[64];
    const char *at;
    size_t length;

    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(line, quoted);
    ret_value[0] = '\0';
    if (!at) {
        return false;
    }
    at += strlen(quoted);
    at += *at == '"';
    length = strcspn(at, "\",}");
    if (length >= size) {
        return false;
    }
    memcpy(ret_value, at, length);
    ret_value[length] = '\0';
    return true;
}

static void hello(struct agent *agent)
{
    say(agent,
        "{\"event\":\"hello\",\"v\":1,\"host\":\"%s\",\"pid\":%d,\"boot_id\":\"boot\","
        "\"build\":\"recorded\",\"pings\":true,\"stacks\":[{\"name\":\"recorded\","
        "\"worker\":\"/nowhere\",\"library_path\":null,\"cause\":null,\"probe\":{\"v\":1,"
        "\"backend\":\"cuda\",\"worker_build\":\"recorded-1\",\"checks\":true,\"passed\":"
        "true,"
        "\"nonce\":true,\"versions\":{},\"cause\":null,\"problems\":{},\"devices\":[",
        agent->host, (int)getpid());
    for (int i = 0; i < devices; i++) {
        say(agent,
            "%s{\"id\":\"GPU-%s-%d\",\"model\":\"recorded "
            "GPU\",\"attributes\":{\"serial\":"
            "\"SN-%s-%d\",\"pci_bus_id\":\"00:%02x.0\",\"vbios\":\"96.00\",\"ecc_mode\":"
            "\"on\"}}",
            i ? "," : "", agent->host, i, agent->host, i, i);
    }
    text_add(&agent->write, "]},\"catalogue\":", strlen("]},\"catalogue\":"));
    text_add(&agent->write, catalogue, strlen(catalogue));
    say(agent, "}]}\n");
}

/* COUNT iterations from I on that show the same, as an agent tells them where the service
 * understands it. */
static void show_several(struct agent *agent, const char *run, const struct result *r,
                         int i, int count)
{
    say(agent,
        "{\"event\":\"iterations\",\"run\":\"%s\",\"i\":%d,\"digest\":\"%s\","
        "\"weight_sum\":\"%s\",\"loss\":null,\"algorithm\":\"%s\",\"ms\":[1.0",
        run, i, r->digests[0], r->sums[0], r->fields[ALGORITHM]);
    for (int k = 1; k < count; k++) {
        say(agent, ",1.0");
    }
    say(agent, "]}\n");
}

static void show(struct agent *agent, const char *run, const struct result *r, int i,
                 uint64_t number, char digest[40], const char **ret_sum)
{
    int which = (int)(number % (uint64_t)r->shown);

    *ret_sum = r->sums[which];
    snprintf(digest, 40, "%s", r->digests[which]);
    if (r->fields[CONTROL][0]) {
        char unique[17];

        snprintf(unique, sizeof unique, "%016" PRIx64, number * 0x9e3779b97f4a7c15);
        memcpy(digest, unique, 16);
    }
    say(agent,
        "{\"event\":\"worker\",\"run\":\"%s\",\"data\":{\"event\":\"iteration\",\"i\":%d,"
        "\"digest\":\"%s\",\"weight_sum\":\"%s\",\"loss\":null,\"ms\":%d.%03d,"
        "\"algorithm\":"
        "\"%s\"}}\n",
        run, i, digest, *ret_sum, 1 + which % 3, (int)(number % 1000),
        r->fields[ALGORITHM]);
}

static void check(struct agent *agent, const char *run, const char *line,
                  const struct result *r, const char *digest, const char *sum)
{
    char seconds[16], passed[40];

    if (!value_of(line, "check_seconds", seconds, sizeof seconds)) {
        return;
    }
    value_of(line, "check_passed", passed, sizeof passed);
    if (strcmp(passed, digest) == 0 && !r->fields[CONTROL][0]) {
        say(agent,
            "{\"event\":\"worker\",\"run\":\"%s\",\"data\":{\"event\":\"check\","
            "\"result\":"
            "\"known\"}}\n",
            run);
        return;
    }
    say(agent,
        "{\"event\":\"worker\",\"run\":\"%s\",\"data\":{\"event\":\"checking\","
        "\"seconds\":%s}}\n"
        "{\"event\":\"worker\",\"run\":\"%s\",\"data\":{\"event\":\"check\",\"result\":"
        "\"passed\","
        "\"i\":0,\"digest\":\"%s\",\"weight_sum\":\"%s\",%s}}\n",
        run, seconds, run, digest, sum, r->fields[CHECK]);
}

/* All iterations; of the first, what a check may compare. */
static void show_all(struct agent *agent, const char *run, const char *line,
                     const struct result *r, int count, char first[40],
                     const char **ret_first_sum)
{
    char digest[40], merges[8];
    bool control = r->fields[CONTROL][0];
    const char *sum;

    value_of(line, "merge_iterations", merges, sizeof merges);
    *ret_first_sum = "";
    if (!control && count > 1 && strcmp(merges, "true") == 0) {
        snprintf(first, 40, "%s", r->digests[0]);
        *ret_first_sum = r->sums[0];
        for (int i = 0; i < count; i += MERGED_MAX) {
            show_several(agent, run, r, i,
                         count - i < MERGED_MAX ? count - i : MERGED_MAX);
        }
        return;
    }
    for (int i = 0; i < count; i++) {
        show(agent, run, r, i, control ? controls++ : 0, digest, &sum);
        if (i == 0) {
            memcpy(first, digest, 40);
            *ret_first_sum = sum;
        }
    }
}

static void compute(struct agent *agent, const char *run, const char *device,
                    const char *line, const struct result *r)
{
    char first[40] = "", size[64], dtype[32], seed[32], iterations[16];
    const char *first_sum;
    int count;

    value_of(line, "size", size, sizeof size);
    value_of(line, "dtype", dtype, sizeof dtype);
    value_of(line, "seed", seed, sizeof seed);
    value_of(line, "iterations", iterations, sizeof iterations);
    count = (int)strtol(iterations, NULL, 10);
    say(agent,
        "{\"event\":\"started\",\"run\":\"%s\",\"pid\":%d,\"process_start\":1}\n"
        "{\"event\":\"worker\",\"run\":\"%s\",\"data\":{\"event\":\"start\",\"v\":1,"
        "\"pid\":%d,"
        "\"workload\":\"%s\",\"version\":1,\"variant\":\"%s\",\"size\":\"%s\",\"dtype\":"
        "\"%s\","
        "\"seed\":\"%s\",\"iterations\":%d,\"threads\":1,\"backend\":\"cuda\",\"device\":"
        "\"%s\","
        "\"algorithm\":\"%s\",\"claim\":null,\"input_digest\":\"%s\",\"environment\":%s,"
        "\"libraries\":%s}}\n",
        run, (int)getpid(), run, (int)getpid(), r->fields[WORKLOAD], r->fields[VARIANT],
        size, dtype, seed, count, device, r->fields[ALGORITHM], r->fields[INPUTS],
        r->fields[ENVIRONMENT], r->fields[LIBRARIES]);
    show_all(agent, run, line, r, count, first, &first_sum);
    check(agent, run, line, r, first, first_sum);
    say(agent,
        "{\"event\":\"worker\",\"run\":\"%s\",\"data\":{\"event\":\"end\",\"outcome\":"
        "\"completed\",\"cause\":null,\"iterations\":%d,\"elements\":%s,\"bytes_hashed\":"
        "%" PRId64
        ",\"device\":\"%s\",\"input_digest\":\"%s\"}}\n"
        "{\"event\":\"exited\",\"run\":\"%s\",\"exit_code\":0,\"signal\":null,\"reason\":"
        "\"exited\",\"wall_ms\":10000.0,\"max_rss_kb\":14000,\"log\":\"\",\"log_bytes\":"
        "0}\n",
        run, count, r->fields[ELEMENTS],
        count * (int64_t)strtol(r->fields[BYTES], NULL, 10), device, r->fields[INPUTS],
        run);
    fprintf(answered, "%s %d\n", run, count);
}

static void answer(struct agent *agent, const char *line)
{
    char run[64], device[256], workload[128], variant[128];
    const struct result *r;

    value_of(strstr(line, "\"run\":"), "run", run, sizeof run);
    value_of(line, "device", device, sizeof device);
    value_of(line, "workload", workload, sizeof workload);
    value_of(line, "variant", variant, sizeof variant);
    r = recorded_find(workload, variant);
    if (r) {
        compute(agent, run, device, line, r);
    } else {
        say(agent,
            "{\"event\":\"refused\",\"run\":\"%s\",\"cause\":\"it was not "
            "recorded\"}\n",
            run);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void begin(struct agent *agent, const char *line)
{
    if (going_count == going_capacity) {
        going_capacity = 2 * going_capacity + 64;
        going = must(realloc(going, (size_t)going_capacity * sizeof *going));
    }
    going[going_count++] =
        (struct going){ agent, must(strdup(line)),
                        now_ms() + run_ms / 2 + rand() % (run_ms + 1) };
}

static void handle_command(struct agent *agent, const char *line)
{
    char command[32];

    value_of(line, "command", command, sizeof command);
    if (strcmp(command, "ping") == 0) {
        say(agent, "{\"event\":\"pong\"}\n");
    } else if (strcmp(command, "run") == 0) {
        (run_ms ? begin : answer)(agent, line);
    }
}

static void watch(int fd, uint32_t events, int kind, struct agent *agent)
{
    struct watched *w = must(calloc(1, sizeof *w));
    struct epoll_event event = { .events = events, .data.ptr = w };

    w->kind = kind;
    w->agent = agent;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("epoll_ctl");
    }
}

/* What the service does not take yet is kept. */
static void flush(struct agent *agent)
{
    size_t written = 0;

    while (agent->out >= 0 && written < agent->write.length) {
        ssize_t n =
            write(agent->out, agent->write.data + written, agent->write.length - written);

        if (n < 0) {
            if (errno != EAGAIN) {
                written = agent->write.length; /* nobody reads it any more */
            }
            break;
        }
        written += (size_t)n;
    }
    if (written > 0) {
        agent->write.length -= written;
        memmove(agent->write.data, agent->write.data + written, agent->write.length);
    }
    if (agent->write.length > 0 && !agent->watches_out && agent->out >= 0) {
        watch(agent->out, EPOLLOUT | EPOLLET, AGENT_OUT, agent);
        agent->watches_out = true;
    }
}

static void end_due(void)
{
    int64_t now = now_ms();

    for (int i = 0; i < going_count;) {
        struct going *g = &going[i];

        if (run_ms && g->due_ms > now) {
            i++;
            continue;
        }
        if (g->agent->socket >= 0) {
            answer(g->agent, g->line);
            flush(g->agent);
        }
        free(g->line);
        *g = going[--going_count];
    }
}

/* Its other half exits then.  Its memory is kept: events of this turn may name it. */
static void end(struct agent *agent)
{
    if (agent->socket >= 0) {
        fflush(answered);
        close(agent->in);
        close(agent->out);
        close(agent->socket);
        agent->socket = agent->in = agent->out = -1;
    }
}

static void hear(struct agent *agent)
{
    char part[READ_SIZE];
    ssize_t length = agent->in >= 0 ? read(agent->in, part, sizeof part) : -1;
    char *line, *newline;

    if (length <= 0) {
        if (length == 0 || errno != EAGAIN) {
            end(agent);
        }
        return;
    }
    text_add(&agent->read, part, (size_t)length);
    line = agent->read.data;
    while ((newline = strchr(line, '\n')) != NULL) {
        *newline = '\0';
        handle_command(agent, line);
        line = newline + 1;
    }
    agent->read.length -= (size_t)(line - agent->read.data);
    memmove(agent->read.data, line, agent->read.length + 1);
    flush(agent);
}

/* The descriptors that an agent hands over, and its name. */
static bool receive(int socket, char *ret_host, size_t size, int ret_fds[FDS])
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FDS * sizeof(int))];
    } control;
    struct iovec name = { .iov_base = ret_host, .iov_len = size - 1 };
    struct msghdr message = { .msg_iov = &name,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (!header || header->cmsg_len != CMSG_LEN(FDS * sizeof(int))) {
        return false;
    }
    ret_host[length] = '\0';
    memcpy(ret_fds, CMSG_DATA(header), FDS * sizeof(int));
    return true;
}

static void welcome(int listener)
{
    struct agent *agent = must(calloc(1, sizeof *agent));
    int fds[FDS];

    agent->socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (agent->socket < 0 ||
        !receive(agent->socket, agent->host, sizeof agent->host, fds)) {
        close(agent->socket);
        free(agent);
        return;
    }
    agent->in = fds[0];
    agent->out = fds[1];
    fcntl(agent->in, F_SETFL, O_NONBLOCK);
    fcntl(agent->out, F_SETFL, O_WRONLY | O_NONBLOCK);
    watch(agent->socket, EPOLLIN, AGENT_SOCKET, agent);
    watch(agent->in, EPOLLIN, AGENT_IN, agent);
    hello(agent);
    flush(agent);
}

static bool handle(const struct watched *w, int listener)
{
    char text[32];
    ssize_t length;

    switch (w->kind) {
    case OWN_INPUT:
        length = read(0, text, sizeof text - 1);
        text[length > 0 ? length : 0] = '\0';
        run_ms = (int)strtol(text, NULL, 10);
        return length > 0;
    case LISTENER:
        welcome(listener);
        break;
    case AGENT_SOCKET:
        end(w->agent);
        break;
    case AGENT_IN:
        hear(w->agent);
        break;
    case AGENT_OUT:
        flush(w->agent);
        break;
    }
    return true;
}

static int connected(const char *path, bool listens)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "%s is too long for a socket\n", path);
        exit(1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd < 0 ||
        (listens ? bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
                       listen(fd, SOMAXCONN) != 0
                 : connect(fd, (struct sockaddr *)&address, sizeof address) != 0)) {
        die(path);
    }
    return fd;
}

static int play(char **argv)
{
    struct rlimit files;
    int listener = connected(argv[0], true);

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    catalogue = read_file(argv[1]);
    recorded_read(argv[2]);
    devices = (int)strtol(argv[3], NULL, 10);
    answered = must(fopen(argv[4], "w"));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(0, EPOLLIN, OWN_INPUT, NULL);
    watch(listener, EPOLLIN, LISTENER, NULL);
    puts("playing");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll, events, EVENTS, going_count ? STEP_MS : -1);

        for (int i = 0; i < count; i++) {
            if (!handle(events[i].data.ptr, listener)) {
                return fclose(answered) == 0 ? 0 : 1;
            }
        }
        end_due();
    }
}

static int agent(const char *path, const char *host)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FDS * sizeof(int))];
    } control = { .header = { .cmsg_len = CMSG_LEN(FDS * sizeof(int)),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS } };
    const int fds[FDS] = { 0, 1 };
    struct iovec name = { .iov_base = (char *)host, .iov_len = strlen(host) };
    struct msghdr message = { .msg_iov = &name,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    int fd = connected(path, false);
    char byte;

    memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
    if (sendmsg(fd, &message, 0) < 0) {
        die("sendmsg");
    }
    close(0);
    close(1);
    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
    return 0;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc == 7 && strcmp(argv[1], "play") == 0) {
        return play(argv + 2);
    }
    if (argc == 4 && strcmp(argv[1], "agent") == 0) {
        return agent(argv[2], argv[3]);
    }
    fprintf(stderr,
            "scale-player play SOCKET CATALOGUE RESULTS DEVICES ANSWERED\n"
            "scale-player agent SOCKET HOST\n");
    return 2;
}
