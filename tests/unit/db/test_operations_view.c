/* Where operations of frameworks were measured: the newest, and how many more there are.
 */
#include "tests/unit/db/store_fixture.h"

#include "daemon/base/choices.h"
#include "daemon/base/mem.h"
#include "db/views/operations.h"

static void insert_items(struct fixture *f)
{
    static const char *const names[] = { "JAX", "PyTorch", "" };
    struct job_item items[3];
    struct fixture_job j = fixture_job(1, items, 3);

    for (int i = 0; i < 3; i++) {
        items[i] = fixture_item(names[i][0] ? names[i] : "model", "cpu:a", 9);
        items[i].seq = i;
        items[i].subject = names[i][0] ? SUBJECT_FRAMEWORK : SUBJECT_MODEL;
        copy_text(items[i].subject_name, sizeof items[i].subject_name, names[i]);
    }
    fixture_write(f, fixture_insert_job, &j);
}

static void run(struct fixture *f, int n, int item, int environment)
{
    struct fixture_run r = { .n = n,
                             .job = 1,
                             .item = item,
                             .environment = environment,
                             .outcome = OUTCOME_COMPLETED };

    fixture_write(f, fixture_whole_run, &r);
}

struct listed {
    const char *framework;
    int limit;
    struct framework_environment *list;
    int count, left_out;
    struct choices frameworks;
};

static void add_framework(void *arg, const char *framework)
{
    choices_add(arg, framework);
}

static enum err_code list(struct tx *tx, void *arg, struct err *err)
{
    struct listed *l = arg;

    return operations_environments(tx, l->framework, l->limit, &l->list, &l->count,
                                   &l->left_out, err) == ERR_OK
               ? operations_frameworks(tx, add_framework, &l->frameworks, err)
               : err->code;
}

/* "JAX 1, …": the environments by their numbers. */
static void expect(struct fixture *f, const char *framework, int limit,
                   const char *expected, int left_out)
{
    struct listed l = { .framework = framework, .limit = limit };
    char text[256] = "";

    fixture_read(f, list, &l);
    for (int i = 0; i < l.count; i++) {
        size_t used = strlen(text);

        snprintf(text + used, sizeof text - used, "%s%s %c", i ? ", " : "",
                 l.list[i].framework, l.list[i].environment[31]);
    }
    assert_string_equal(text, expected);
    assert_int_equal(l.left_out, left_out);
    free(l.list);
    choices_release(&l.frameworks);
}

static void test_the_newest_environments(void **state)
{
    struct fixture *f = *state;

    expect(f, NULL, 9, "", 0);
    insert_items(f);
    run(f, 1, 0, 1);
    run(f, 2, 0, 2);
    run(f, 3, 0, 2);
    run(f, 4, 1, 3);
    run(f, 5, 0, 3);
    run(f, 6, 2, 4); /* a model's */
    expect(f, NULL, 9, "JAX 1, JAX 2, JAX 3, PyTorch 3", 0);
    expect(f, "jax", 9, "JAX 1, JAX 2, JAX 3", 0);
    expect(f, "jax", 2, "JAX 2, JAX 3", 1);
    expect(f, "JAXX", 9, "", 0);
}

static void test_frameworks_by_name(void **state)
{
    struct fixture *f = *state;
    struct listed l = { .limit = 1 };

    insert_items(f);
    run(f, 1, 1, 1);
    run(f, 2, 0, 2);
    run(f, 3, 0, 3);
    run(f, 4, 2, 3);
    fixture_read(f, list, &l);
    assert_int_equal(l.frameworks.count, 2);
    assert_string_equal(l.frameworks.names[0], "JAX");
    assert_string_equal(l.frameworks.names[1], "PyTorch");
    free(l.list);
    choices_release(&l.frameworks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_the_newest_environments),
        STORE_TEST(test_frameworks_by_name),
    };

    return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
