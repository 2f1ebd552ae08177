/* What answers a client: an HTTP answer, of which the body is judged as the gate would.
 * Whatever a service says, nothing passes that it did not say to be reproducible. */
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/client/gate_report.h"
#include "daemon/client/http.h"
#include "tests/fuzz/fuzz.h"

static void check_equal(const struct gate_case *one, const struct gate_runs *runs,
                        const json_t *cell)
{
    const char *verdict = in_text_or_empty(cell, "verdict");

    if (one->result == GATE_EQUAL && !one->is_control) {
        FUZZ_CHECK(strcmp(verdict, "reproducible") == 0);
        FUZZ_CHECK(runs && runs->completed == runs->runs && runs->completed > 1 &&
                   runs->distinct == 1);
    }
}

static void report(const struct gate_case *one)
{
    struct gate_report r = { .cases = one, .count = 1, .job = "J", .server = "" };
    struct buf text = BUF_INIT;

    gate_text(&r, &text);
    gate_junit(&r, &text);
    gate_markdown(&r, &text);
    gate_annotations(&r, &text);
    FUZZ_CHECK(text.length > 0);
    buf_release(&text);
}

/* {"item":…,"runs":[…],"cell":…,"drift":…} */
static void judge(const json_t *said)
{
    const json_t *item = json_object_get(said, "item"), *run;
    const json_t *cell = json_object_get(said, "cell");
    const struct gate_limits limits = {
        in_text(said, "against"), json_number_value(json_object_get(said, "cost"))
    };
    struct gate_runs *runs = NULL;
    struct gate_case one;
    int count = 0;
    size_t i;

    json_array_foreach(json_object_get(said, "runs"), i, run)
    {
        gate_add_run(&runs, &count, run);
    }
    one = gate_judge(item, count ? runs : NULL, cell,
                     gate_drift_case(json_object_get(said, "drift"), item), &limits);
    check_equal(&one, count ? runs : NULL, cell);
    report(&one);
    gate_case_release(&one);
    free(runs);
}

static void run(const uint8_t *data, size_t size)
{
    struct answer answer;
    struct err err = { .code = ERR_OK };
    json_t *said = NULL;

    if (answer_read((const char *)data, size, &answer, &err) == ERR_OK) {
        FUZZ_CHECK(strlen(answer.type) < ANSWER_TYPE_SIZE);
        if (answer.body.length > 0 &&
            in_depth(answer.body.data, answer.body.length) <= 64) {
            said = json_loadb(answer.body.data, answer.body.length, 0, NULL);
        }
        if (said) {
            judge(said);
        }
    } else {
        FUZZ_CHECK(err.message[0]);
    }
    json_decref(said);
    answer_release(&answer);
}

FUZZ_TARGET("answer", run);
