#include "daemon/engine/slurm_read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"

/* What sinfo's marks behind a state mean. */
static const struct {
    char mark;
    const char *flag;
} marks[] = {
    { '*', "NOT_RESPONDING" }, { '~', "POWERED_DOWN" },     { '#', "POWERING_UP" },
    { '!', "POWER_DOWN" },     { '%', "POWERING_DOWN" },    { '$', "MAINTENANCE" },
    { '@', "REBOOT_ISSUED" },  { '^', "REBOOT_REQUESTED" }, { '-', "PLANNED" },
};

/* Appends WORD to the list at TEXT. */
static void join(char *text, size_t size, char sign, const char *word, size_t length)
{
    size_t before = strlen(text);

    if (length > 0) {
        snprintf(text + before, size - before, "%.*s%.*s", before > 0, &sign, (int)length,
                 word);
    }
}

/* Appends the flags of the marks at the end of WORD; returns the length without them. */
static size_t take_marks(const char *word, size_t length, char *text, size_t size)
{
    const size_t all = sizeof marks / sizeof marks[0];
    size_t i = 0;

    while (length > 0 && i < all) {
        for (i = 0; i < all && marks[i].mark != word[length - 1]; i++) {
        }
        if (i < all) {
            join(text, size, '+', marks[i].flag, strlen(marks[i].flag));
            length--;
        }
    }
    return length;
}

/* Appends STATE ("mixed", "IDLE+DRAIN", "down*") in capitals. */
static void add_state(char text[SLURM_STATE_SIZE], const char *state)
{
    while (*state) {
        size_t length = strcspn(state, "+");
        char behind[SLURM_STATE_SIZE] = "";
        size_t plain = take_marks(state, length, behind, sizeof behind);

        join(text, SLURM_STATE_SIZE, '+', state, plain);
        join(text, SLURM_STATE_SIZE, '+', behind, strlen(behind));
        state += length + (state[length] == '+');
    }
    for (char *c = text; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
}

static void add_states(char text[SLURM_STATE_SIZE], const json_t *states)
{
    size_t i;
    json_t *each;

    if (json_is_string(states)) {
        add_state(text, json_string_value(states));
    }
    json_array_foreach((json_t *)states, i, each)
    {
        if (json_is_string(each)) {
            add_state(text, json_string_value(each));
        }
    }
}

/* A text, or an array of them with commas between. */
static void read_list(const json_t *json, char text[SLURM_TEXT_SIZE])
{
    size_t i;
    json_t *each;

    text[0] = '\0';
    if (json_is_string(json)) {
        copy_text(text, SLURM_TEXT_SIZE, json_string_value(json));
    }
    json_array_foreach((json_t *)json, i, each)
    {
        if (json_is_string(each)) {
            join(text, SLURM_TEXT_SIZE, ',', json_string_value(each),
                 json_string_length(each));
        }
    }
}

static int64_t read_number(const json_t *json)
{
    const json_t *wrapped = json_object_get(json, "number");

    if (json_is_integer(wrapped)) {
        return json_is_false(json_object_get(json, "set")) ||
                       json_is_true(json_object_get(json, "infinite"))
                   ? -1
                   : json_integer_value(wrapped);
    }
    return json_is_integer(json) ? json_integer_value(json) : -1;
}

static void read_text(const json_t *json, const char *key, char *text, size_t size)
{
    copy_text(text, size, in_text_or_empty(json, key));
}

static void read_node(const json_t *json, struct slurm_node *node)
{
    const json_t *active = json_object_get(json, "active_features");

    read_text(json, "name", node->name, sizeof node->name);
    read_text(json, "reason", node->reason, sizeof node->reason);
    add_states(node->state, json_object_get(json, "state"));
    add_states(node->state, json_object_get(json, "state_flags"));
    read_list(active ? active : json_object_get(json, "features"), node->features);
    read_list(json_object_get(json, "gres"), node->gres);
}

/* {"nodes":{"nodes":["n1"]}, "node":{"state":["IDLE"]}, "gres":{"total":"gpu:8"}, …} */
static void read_row(const json_t *json, struct slurm_node *node)
{
    const json_t *reason = json_object_get(json, "reason");

    copy_text(node->reason, sizeof node->reason,
              json_is_string(reason) ? json_string_value(reason)
                                     : in_text_or_empty(reason, "description"));
    add_states(node->state, json_object_get(json_object_get(json, "node"), "state"));
    read_list(json_object_get(json_object_get(json, "features"), "active"),
              node->features);
    read_list(json_object_get(json_object_get(json, "gres"), "total"), node->gres);
}

void slurm_nodes_read(const json_t *json,
                      void (*take)(void *arg, const struct slurm_node *node), void *arg)
{
    struct slurm_node node = { .name = "" };
    const json_t *names = json_object_get(json_object_get(json, "nodes"), "nodes"), *name;
    size_t i;

    if (!names) {
        read_node(json, &node);
        take(arg, &node);
        return;
    }
    read_row(json, &node);
    json_array_foreach((json_t *)names, i, name)
    {
        copy_text(node.name, sizeof node.name,
                  json_is_string(name) ? json_string_value(name) : "");
        take(arg, &node);
    }
}

void slurm_job_read(const json_t *json, struct slurm_job *job)
{
    *job = (struct slurm_job){ .name = "" };
    job->id = read_number(json_object_get(json, "job_id"));
    job->user = read_number(json_object_get(json, "user_id"));
    job->submitted = read_number(json_object_get(json, "submit_time"));
    job->preempted = read_number(json_object_get(json, "preempt_time"));
    if (job->preempted < 0) {
        job->preempted = 0;
    }
    read_text(json, "name", job->name, sizeof job->name);
    read_text(json, "comment", job->comment, sizeof job->comment);
    add_states(job->state, json_object_get(json, "job_state"));
    read_text(json, "state_reason", job->reason, sizeof job->reason);
    if (strcmp(job->reason, "None") == 0) {
        job->reason[0] = '\0';
    }
    read_text(json, "nodes", job->node, sizeof job->node);
}

void slurm_error_read(const json_t *json, char ret_text[SLURM_TEXT_SIZE])
{
    const char *said = in_text(json, "description");

    if (!said || !said[0]) {
        said = in_text(json, "error");
    }
    copy_text(ret_text, SLURM_TEXT_SIZE, said && said[0] ? said : "an error");
}
