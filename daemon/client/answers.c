#include "daemon/client/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/text.h"

enum { DEPTH_MAX = 64 };

int client_error(const struct err *err)
{
    text_print(stderr, "reprod: %s", err->message);
    return err->code == ERR_INVALID ? CLIENT_USAGE : CLIENT_UNREACHABLE;
}

static json_t *parse(const struct buf *body)
{
    return body->length > 0 && in_depth(body->data, body->length) <= DEPTH_MAX
               ? json_loadb(body->data, body->length, 0, NULL)
               : NULL;
}

/* What a request did wrong is the caller's; what is too much now is tried again later. */
static int exit_of(int status)
{
    return status == 404 || status == 409 || status == 410 ? CLIENT_FAILED
           : status == 429 || status >= 500                ? CLIENT_UNREACHABLE
                                                           : CLIENT_USAGE;
}

static void print_fault(const json_t *fault)
{
    const char *detail = in_text(fault, "detail");
    const char *where = in_text(fault, "pointer");

    where = where ? where : in_text(fault, "parameter");
    text_print(stderr, "reprod: %s%s%s", where ? where : "", where ? ": " : "",
               detail ? detail : "refused");
}

int client_refused(const struct answer *answer)
{
    json_t *problem = parse(&answer->body);
    const json_t *faults = json_object_get(problem, "errors"), *fault;
    const char *detail = in_text(problem, "detail");
    size_t i;

    json_array_foreach(faults, i, fault)
    {
        print_fault(fault);
    }
    if (json_array_size(faults) == 0) {
        text_print(stderr, "reprod: %s (status %d)",
                   detail ? detail : "the service refused", answer->status);
    }
    json_decref(problem);
    return exit_of(answer->status);
}

int client_show(const struct server *server, const char *path)
{
    struct err err = { .code = ERR_OK };
    struct answer answer;
    int code = CLIENT_OK;

    if (server_ask(server, "GET", path, NULL, NULL, &answer, &err) != ERR_OK) {
        code = client_error(&err);
    } else if (answer.status != 200) {
        code = client_refused(&answer);
    } else if (answer.body.length > 0) {
        fwrite(answer.body.data, 1, answer.body.length, stdout);
    }
    answer_release(&answer);
    return code;
}

json_t *client_json(const struct server *server, const struct answer *answer,
                    int *ret_exit)
{
    struct err err = { .code = ERR_OK };
    json_t *value;

    if (answer->status < 200 || answer->status > 299) {
        *ret_exit = client_refused(answer);
        return NULL;
    }
    value = parse(&answer->body);
    if (!value) {
        err_set(&err, ERR_PROTOCOL, "what answers at http://%s is no reprod",
                server->authority);
        *ret_exit = client_error(&err);
    }
    return value;
}

json_t *client_ask(const struct server *server, const char *method, const char *path,
                   const char *body, const char *key, int *ret_exit)
{
    struct err err = { .code = ERR_OK };
    struct answer answer;
    json_t *value = NULL;

    if (server_ask(server, method, path, body, key, &answer, &err) != ERR_OK) {
        *ret_exit = client_error(&err);
    } else {
        value = client_json(server, &answer, ret_exit);
    }
    answer_release(&answer);
    return value;
}

char *client_read_file(const char *path, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    struct buf text = BUF_INIT;
    static char part[65536];
    size_t n;

    if (!file) {
        err_set(err, ERR_INVALID, "%.200s: %s", path, strerror(errno));
        return NULL;
    }
    while ((n = fread(part, 1, sizeof part, file)) > 0) {
        buf_add(&text, part, n);
    }
    if (ferror(file)) {
        err_set(err, ERR_INVALID, "%.200s cannot be read", path);
    }
    if (!standard) {
        fclose(file);
    }
    if (err->code != ERR_OK) {
        buf_release(&text);
        return NULL;
    }
    return buf_detach(&text, NULL);
}
