/* Every text of a table is shown somewhere: none is empty, blank or holds what a terminal
 * would obey. */
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* It has each member of the format. */
static const char whole[] =
    "{'table':'t','title':'T','source':'S','recipes':[{'name':'TDO','title':'do'},"
    "{'name':'FE','title':'more'}],'images':[{'name':'i','framework':'f'}],"
    "'columns':[{'id':'c','title':'C','recipes':['TDO'],'extra_recipes':['FE'],"
    "'images':['i']}],'rows':[{'id':'r','workload':'w','title':'W','subject':'library',"
    "'library':'L','framework':'F','references':[{'kind':'issue','id':'1','title':'t',"
    "'url':'https://u','state':'open 2020-06','solved':'2.1'}],'cells':{'c':{"
    "'model':{'none':'a','TDO':'b','FE':'b'},'library':{'none':'a','TDO':'b'},"
    "'framework':{'none':'a','TDO':'raises'},'documented':'TDO','note':'n'}}}]}";

struct texts {
    json_t *table;
    const char *value; /* what each text is replaced by */
    const char *reason;
    int count;
};

/* Expects that the table is refused, for what stands at POINTER. */
static void expect_refusal(const struct texts *t, const char *pointer)
{
    char *text = json_dumps(t->table, 0);
    struct profile_table *table = NULL;
    struct err err = { .code = ERR_OK };
    char *begin = xasprintf("t.json: %s: ", pointer);
    /* Not any text is a word of a list, an address or a state: these say what they are.
     */
    bool is_list = strstr(pointer, "/subject") || strstr(pointer, "/kind");
    bool is_checked = strstr(pointer, "/url") || strstr(pointer, "/state");

    if (profile_parse("t.json", text, strlen(text), &table, &err) == ERR_OK) {
        fail_msg("%s may be '%s'", pointer, t->value);
    }
    assert_int_equal(err.code, ERR_INVALID);
    if (strncmp(err.message, begin, strlen(begin)) != 0) {
        fail_msg("%s: %s", pointer, err.message);
    }
    if (!is_list && !(is_checked && !strstr(t->reason, "control")) &&
        !strstr(err.message, t->reason) &&
        !(strcmp(t->value, "") == 0 && strstr(err.message, "of 1 to 63 bytes"))) {
        fail_msg("%s: not '%s'", err.message, t->reason);
    }
    free(begin);
    free(text);
}

/* Replaces, one at a time, every text that VALUE, at POINTER, is or holds. */
static void replace_each(struct texts *t, json_t *value, const char *pointer)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach(value, key, item)
    {
        char *token = in_pointer(key);
        char *below = xasprintf("%s%s", pointer, token);

        replace_each(t, item, below);
        free(below);
        free(token);
    }
    json_array_foreach(value, i, item)
    {
        char *below = xasprintf("%s/%zu", pointer, i);

        replace_each(t, item, below);
        free(below);
    }
    if (json_is_string(value)) {
        char *kept = xstrdup(json_string_value(value));

        json_string_set(value, t->value);
        expect_refusal(t, pointer);
        json_string_set(value, kept);
        free(kept);
        t->count++;
    }
}

static void test_every_text(void **state)
{
    static const struct {
        const char *value, *reason;
    } wrong[] = {
        { "", "must be a text that is not empty" },
        { "  ", "must not be blank" },
        { "a\nb", "has a control character (U+000A)" },
        { "\x1b[2Jb", "has a control character (U+001B)" },
        { "a\x7f", "has a control character (U+007F)" },
        { "a\u202eb", "has a control character (U+202E)" },
        { "a\xc2\x9b"
          "2J",
          "has a control character (U+009B)" },
    };
    char *text = xstrdup(whole);

    (void)state;
    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct texts t = { .table = json_loads(text, 0, NULL),
                           .value = wrong[i].value,
                           .reason = wrong[i].reason };

        assert_non_null(t.table);
        replace_each(&t, t.table, "");
        assert_int_equal(t.count, 35);
        json_decref(t.table);
    }
    free(text);
}

/* What is written in other scripts stays. */
static void test_other_texts(void **state)
{
    static const char *const right[] = { "é", "TF 2.1 – 2.3", "\xc2\xa0x", "表" };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct profile_table *table = NULL;
        struct err err;

        snprintf(text, sizeof text,
                 "{\"table\":\"t\",\"title\":\"%s\",\"source\":\"S\",\"recipes\":[{"
                 "\"name\":\"R\",\"title\":\"r\"}],\"columns\":[{\"id\":\"c\","
                 "\"title\":\"C\",\"recipes\":[\"R\"]}],\"rows\":[{\"workload\":\"w\","
                 "\"title\":\"W\",\"subject\":\"model\",\"cells\":{}}]}",
                 right[i]);
        assert_int_equal(profile_parse("t.json", text, strlen(text), &table, &err),
                         ERR_OK);
        assert_string_equal(table->title, right[i]);
        profile_free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_text),
        cmocka_unit_test(test_other_texts),
    };

    return cmocka_run_group_tests_name("profile_texts", tests, NULL, NULL);
}
