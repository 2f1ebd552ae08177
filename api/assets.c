/* GET /{asset}: the files of the page, which are built in; GET /: the page for a browser,
 * the matrix for everybody else. */
#include <stdio.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "daemon/base/embed.h"

static const struct embed *find(const char *name)
{
    char path[128];
    int length = snprintf(path, sizeof path, "web/%s", name);

    return length < (int)sizeof path ? embed_find(path) : NULL;
}

bool assets_exist(const char *name)
{
    return find(name) != NULL;
}

static const char *type_of(const char *name)
{
    static const struct {
        const char *suffix, *type;
    } types[] = {
        { ".html", "text/html; charset=utf-8" },
        { ".css", "text/css; charset=utf-8" },
        { ".js", "text/javascript; charset=utf-8" },
        { ".svg", "image/svg+xml" },
        { ".png", "image/png" },
        { ".ico", "image/x-icon" },
        { ".json", "application/json" },
        { ".webmanifest", "application/manifest+json" },
        { ".woff2", "font/woff2" },
        { ".txt", "text/plain; charset=utf-8" },
    };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(dot, types[i].suffix) == 0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

void assets_get(struct request *r)
{
    const struct embed *file = find(r->arguments[0]);

    if (!file) {
        reply_problem(r, PROBLEM_NOT_FOUND,
                      "there is no page here; try Accept: text/plain");
        return;
    }
    reply_file(r, type_of(r->arguments[0]), file->start, embed_size(file));
    reply_header(r, "Content-Security-Policy",
                 "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                 "form-action 'self'");
    reply_header(r, "Referrer-Policy", "no-referrer");
}

void root_get(struct request *r)
{
    if (r->format == FORMAT_HTML) {
        r->arguments[0] = "index.html";
        assets_get(r);
        return;
    }
    matrix_get(r);
}
