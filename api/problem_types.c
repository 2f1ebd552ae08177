/* GET /problems: the types of problems, which the 'type' of every refusal names. */
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/reply.h"

static void type_json(struct json_out *out, enum problem_kind kind)
{
    const struct problem_type *type = problem_type(kind);

    out_open(out, NULL, '{');
    out_format(out, "type", "/problems/%s", type->name);
    out_text(out, "title", type->title);
    out_int(out, "status", type->status);
    out_close(out, '}');
}

void problem_types_get_list(struct request *r)
{
    struct json_out out = JSON_OUT_INIT;

    list_open(&out);
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        type_json(&out, (enum problem_kind)i);
    }
    list_reply(r, &out);
}

void problem_types_get_one(struct request *r)
{
    struct json_out out = JSON_OUT_INIT;

    for (int i = 0; i < PROBLEM_COUNT; i++) {
        if (strcmp(problem_type((enum problem_kind)i)->name, r->arguments[0]) == 0) {
            type_json(&out, (enum problem_kind)i);
            reply_json(r, 200, &out);
            return;
        }
    }
    reply_problem(r, PROBLEM_NOT_FOUND, "there is no type of problem '%.64s'",
                  r->arguments[0]);
}
