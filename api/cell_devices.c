/* GET /v1/cells/{id}/devices: what each device of a cell showed, those first that differ
 * from most, and the camps that they form. */
#include "api/cells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/devices_json.h"
#include "api/render/nouns_json.h"
#include "daemon/base/clock.h"
#include "db/cells.h"

enum { CLASSES_MAX = 26 };

struct loaded {
    struct cell_digest digests[CLASSES_MAX];
    int digest_count;
    struct device_list list;
};

static void take_digest(void *arg, const struct cell_digest *digest)
{
    struct loaded *loaded = arg;

    loaded->digests[loaded->digest_count++] = *digest;
}

/* The caller releases the list after ERR_OK. */
static enum err_code load(struct tx *tx, int64_t cell, struct loaded *ret_loaded,
                          struct err *err)
{
    ret_loaded->digest_count = 0;
    return cells_each_digest(tx, cell, CLASSES_MAX, take_digest, ret_loaded, err) ==
                   ERR_OK
               ? device_list_load(tx, cell, &ret_loaded->list, err)
               : err->code;
}

static struct devices_shown shown_of(const struct request *r, const struct loaded *loaded)
{
    return (struct devices_shown){ .digests = loaded->digests,
                                   .digest_count = loaded->digest_count,
                                   .now_ms = clock_wall_ms(),
                                   .stale_after_ms = r->api->stale_after_ms };
}

enum err_code cell_devices_show(const struct request *r, struct tx *tx,
                                const struct cell *cell, int limit, struct json_out *out,
                                struct err *err)
{
    struct devices_shown shown;

    struct loaded loaded;

    if (load(tx, cell->id, &loaded, err) != ERR_OK) {
        return err->code;
    }
    shown = shown_of(r, &loaded);
    cell_devices_json(out, cell, &loaded.list, &shown, limit);
    device_list_release(&loaded.list);
    return ERR_OK;
}

struct view {
    struct page page;
    int64_t id;
    enum dissent_mark only; /* DISSENT_MARKS: all */
    int64_t before;         /* how many came on the pages before */
};

/* Those that dissent, those that depart, those that agree; then by name. */
static int by_mark(const void *a, const void *b)
{
    const struct cell_device *left = a;
    const struct cell_device *right = b;

    return left->mark != right->mark ? (int)right->mark - (int)left->mark
                                     : strcmp(left->device, right->device);
}

static void show_page(const struct request *r, const struct cell *cell,
                      const struct loaded *loaded)
{
    const struct devices_shown shown = shown_of(r, loaded);
    struct view *view = r->state;
    struct page *page = &view->page;
    int64_t number = 0;

    for (int i = 0; i < loaded->list.count; i++) {
        const struct cell_device *d = &loaded->list.devices[i];

        number += view->only == DISSENT_MARKS || d->mark == view->only;
        if ((view->only == DISSENT_MARKS || d->mark == view->only) &&
            number > view->before && page_takes(page, "%" PRId64, number)) {
            cell_device_json(&page->out, cell, d, &shown);
        }
    }
}

static void show_cell(const struct request *r, const struct cell *cell,
                      struct json_out *out)
{
    out_open(out, NULL, '{');
    out_format(out, "href", "/v1/cells/%" PRId64, cell->id);
    case_json(out, &cell->key);
    out_bool(out, "is_control", cell->is_control);
    subject_json(out, cell->subject, cell->subject_name);
    out_text(out, "environment", cell->environment);
    cell_verdict_show(r, cell, false, out);
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    struct json_out *out = &view->page.out;
    struct devices_shown shown;
    struct loaded loaded;
    struct cell cell;

    if (cells_get(tx, view->id, &cell, err) != ERR_OK ||
        load(tx, view->id, &loaded, err) != ERR_OK) {
        return err->code;
    }
    if (loaded.list.count > 0) {
        qsort(loaded.list.devices, (size_t)loaded.list.count, sizeof *loaded.list.devices,
              by_mark);
    }
    show_cell(r, &cell, out);
    shown = shown_of(r, &loaded);
    cell_camps_json(out, &loaded.list, &shown);
    out_open(out, "items", '[');
    show_page(r, &cell, &loaded);
    device_list_release(&loaded.list);
    page_reply(r, &view->page);
    return ERR_OK;
}

void cells_get_devices(struct request *r)
{
    struct view *view = page_new(r, sizeof *view, 'g');
    const char *state = param_value(r, "state");

    view->id = parse_id(r->arguments[0]);
    view->only = DISSENT_MARKS;
    for (int i = 0; state && i < DISSENT_MARKS; i++) {
        if (strcmp(state, dissent_mark_name((enum dissent_mark)i)) == 0) {
            view->only = (enum dissent_mark)i;
        }
    }
    view->before = param_cursor_number(r, 'g');
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}
