/* reprod export: the runs that a service measured, a line of JSON for each page of
 * GET /v1/export, until there are no more.  What it prints is read by another service
 * (daemon/peers/), which may be slow: the next page is asked for once the last one was
 * written.  Pages are short, since who takes one writes nothing else meanwhile. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/client/answers.h"
#include "daemon/client/client.h"
#include "daemon/client/options.h"
#include "daemon/jobs/peer_run.h"

static const char RUNS_A_PAGE[] = "25";

/* Prints the page behind SINCE; RET_NEXT is where the next one begins, NULL if there is
 * none.  Caller frees it. */
static int print_page(const struct server *server, const char *since, const char *limit,
                      char **ret_next)
{
    char *from = url_escape(since), *most = url_escape(limit ? limit : RUNS_A_PAGE);
    char *path = xasprintf("/v1/export?since=%s&limit=%s", from, most);
    int code = CLIENT_OK;
    json_t *page = client_ask(server, "GET", path, NULL, NULL, &code);

    *ret_next = NULL;
    free(from);
    free(most);
    free(path);
    if (!page) {
        return code;
    }
    if (json_dumpf(page, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF ||
        fflush(stdout) != 0) {
        code = CLIENT_FAILED; /* nobody reads it any more */
    } else if (json_is_true(json_object_get(page, "more"))) {
        *ret_next = xstrdup(in_text_or_empty(page, "cursor"));
    }
    json_decref(page);
    return code;
}

int export_main(int argc, char **argv)
{
    const char *url = NULL, *since = PEER_CURSOR_FIRST, *limit = NULL;
    const struct client_option options[] = { CLIENT_OPTION("--server", &url),
                                             CLIENT_OPTION("--since", &since),
                                             CLIENT_OPTION("--limit", &limit),
                                             CLIENT_OPTIONS_END };
    struct err err = { .code = ERR_OK };
    struct server server;
    char *next;
    int code;

    if (client_options_read(argc, argv, options, 0, 0, NULL, &err) != ERR_OK ||
        server_read(url, &server, &err) != ERR_OK) {
        return client_error(&err);
    }
    next = xstrdup(since);
    do {
        char *from = next;

        code = print_page(&server, from, limit, &next);
        free(from);
    } while (next);
    return code;
}
