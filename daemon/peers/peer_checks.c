#include "daemon/peers/peer_checks.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/id.h"
#include "daemon/jobs/run.h"
#include "workloads/instruments/digest.h"

void peer_check_id(struct in_reader *r, const json_t *value)
{
    if (!id_valid(json_string_value(value))) {
        in_refuse(r, NULL, "is no id");
    }
}

void peer_check_since(struct in_reader *r, const json_t *value)
{
    if (json_string_value(value)[0]) {
        peer_check_id(r, value);
    }
}

/* An object of plain values, since our own agents' words are put beside it
 * (db/dissent/device_states.h). */
static bool is_state(const char *text)
{
    json_t *state = json_loads(text, 0, NULL);
    bool plain = json_is_object(state);
    const char *key;
    json_t *value;

    json_object_foreach(state, key, value)
    {
        plain = plain && !json_is_object(value) && !json_is_array(value);
    }
    json_decref(state);
    return plain;
}

void peer_check_state(struct in_reader *r, const json_t *value)
{
    if (json_string_value(value)[0] && !is_state(json_string_value(value))) {
        in_refuse(r, NULL, "is no state of a device");
    }
}

/* Behind a slash a workload is looked for (db/fleet.h). */
void peer_check_stack(struct in_reader *r, const json_t *value)
{
    if (strchr(json_string_value(value), '/')) {
        in_refuse(r, NULL, "has a '/'");
    }
}

/* As a title is made of it (daemon/run/run_event.h). */
void peer_check_fact(struct in_reader *r, const json_t *value)
{
    if (!json_is_string(value) && !json_is_integer(value)) {
        in_refuse(r, NULL, "must be a text or a whole number");
    }
}

void peer_check_environment(struct in_reader *r, const json_t *environment)
{
    static const char *const required[] = { "backend", "model", "worker_build" };

    for (int i = 0; i < COUNT_OF(required); i++) {
        if (!in_text_or_empty(environment, required[i])[0]) {
            in_refuse(r, NULL, "does not name its %s", required[i]);
        }
    }
}

void peer_check_outcome(struct in_reader *r, const json_t *value)
{
    enum outcome outcome;

    if (outcome_parse(json_string_value(value), &outcome) != 0) {
        in_refuse(r, NULL, "is no outcome");
    }
}

void peer_check_subject(struct in_reader *r, const json_t *value)
{
    enum subject subject;

    if (subject_parse(json_string_value(value), &subject) != 0) {
        in_refuse(r, NULL, "is no subject");
    }
}

void peer_check_check(struct in_reader *r, const json_t *value)
{
    if (check_state_parse(json_string_value(value)) == CHECK_NONE) {
        in_refuse(r, NULL, "is no state of a check");
    }
}

void peer_check_digest(struct in_reader *r, const json_t *value)
{
    const char *text = json_string_value(value);

    if (text[0] && !in_is_hex(text, DIGEST_TEXT_SIZE - 1)) {
        in_refuse(r, NULL, "is no digest");
    }
}

void peer_check_bits(struct in_reader *r, const json_t *value)
{
    const char *text = json_string_value(value);

    if (text[0] && !in_is_hex(text, BITS_TEXT_SIZE - 1)) {
        in_refuse(r, NULL, "are no bits of a number");
    }
}

/* Canonical, as they are compared with others. */
void peer_check_options(struct in_reader *r, const json_t *value)
{
    const char *text = json_string_value(value);
    struct run_options options;
    char written[RUN_OPTIONS_SIZE];

    if (!run_options_read(text, &options) || !run_options_write(&options, written) ||
        strcmp(text, written) != 0) {
        in_refuse(r, NULL, "are no options of a run");
    }
}

void peer_check_circumstances(struct in_reader *r, const json_t *value)
{
    const char *text = json_string_value(value);
    struct run_circumstances circumstances;
    char written[RUN_CIRCUMSTANCES_SIZE];

    if (!run_circumstances_read(text, &circumstances) ||
        !run_circumstances_write(&circumstances, written) || strcmp(text, written) != 0) {
        in_refuse(r, NULL, "are no circumstances of a run");
    }
}

void peer_check_seed(struct in_reader *r, const json_t *value)
{
    const char *text = json_string_value(value);
    char *end;

    if (strspn(text, "0123456789") != strlen(text) || !text[0] || strlen(text) > 20 ||
        (strtoull(text, &end, 10), *end)) {
        in_refuse(r, NULL, "is no seed");
    }
}
