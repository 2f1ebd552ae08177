/* Figures as Prometheus reads them: both formats, labels, and lists that are bounded. */
#include "api/render/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct buf text_of(const struct figures *f, bool whole, bool open)
{
    struct buf buf = BUF_INIT;

    metrics_text(f, "1.2", whole, open, &buf);
    return buf;
}

static struct figures *none(void)
{
    struct figures *f = calloc(1, sizeof *f);

    assert_non_null(f);
    return f;
}

static int lines_of(const struct buf *buf, const char *series)
{
    int count = 0;

    for (const char *at = buf->data; (at = strstr(at, series)) != NULL; at++) {
        count += at[-1] == '\n';
    }
    return count;
}

static void test_nothing_is_zeros(void **state)
{
    struct figures *f = none();
    struct buf buf = text_of(f, true, false);

    (void)state;
    assert_non_null(strstr(buf.data, "\nreprod_cells_regressed{verdict=\"varies\"} 0\n"));
    assert_non_null(strstr(buf.data, "\nreprod_drift_cases{kind=\"bits_changed\"} 0\n"));
    assert_non_null(strstr(buf.data, "# TYPE reprod_runs_total counter\n"));
    assert_non_null(strstr(buf.data, "\nreprod_webhook_dead_letters 0\n"));
    assert_int_equal(lines_of(&buf, "reprod_backup_timestamp_seconds"), 0);
    assert_int_equal(lines_of(&buf, "reprod_background_weakest_bound_ratio"), 0);
    assert_null(strstr(buf.data, "# EOF"));
    buf_release(&buf);
    free(f);
}

static void test_openmetrics_names_counters_without_their_ending(void **state)
{
    struct figures *f = none();
    struct buf buf = text_of(f, true, true);

    (void)state;
    assert_non_null(strstr(buf.data,
                           "# TYPE reprod_runs counter\n"
                           "reprod_runs_total{outcome=\"completed\"} 0\n"));
    assert_non_null(strstr(buf.data, "# HELP reprod_events Events"));
    assert_non_null(strstr(buf.data, "# TYPE reprod_cells gauge\n"));
    assert_string_equal(buf.data + buf.length - 6, "# EOF\n");
    buf_release(&buf);
    free(f);
}

static void test_without_the_database_the_service_is_told(void **state)
{
    struct figures *f = none();
    struct buf buf;

    (void)state;
    f->backup_ms = 5500;
    f->weakest_bound = 0.25;
    snprintf(f->causes[HEALTH_STORAGE], HEALTH_CAUSE_SIZE, "a \"b\" \\ c\n\x1b[m \xff.");
    buf = text_of(f, false, true);
    assert_non_null(strstr(buf.data, "\nreprod_condition{name=\"storage\"} 1\n"));
    assert_non_null(
        strstr(buf.data, "{name=\"storage\",cause=\"a \\\"b\\\" \\\\ c  [m  .\"} 1\n"));
    assert_non_null(strstr(buf.data, "\nreprod_backup_timestamp_seconds 5\n"));
    assert_non_null(strstr(buf.data, "\nreprod_background_weakest_bound_ratio 0.25\n"));
    assert_null(strstr(buf.data, "reprod_cells"));
    buf_release(&buf);
    free(f);
}

static void test_of_many_cells_the_worst_are_listed(void **state)
{
    struct figures *f = none();
    struct buf buf;

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct regressed_cell cell = { .cell = i,
                                       .since_ms = 1000 * i + 5,
                                       .verdict = i < 5    ? VERDICT_DEVICES_DISAGREE
                                                  : i < 55 ? VERDICT_VARIES
                                                           : VERDICT_INCONCLUSIVE };

        figures_add_regressed(f, &cell);
    }
    assert_int_equal(f->regressed_count, FIGURES_LISTED);
    assert_int_equal(f->regressed_cells[0].cell, 4); /* of the worst, the newest */
    assert_int_equal(f->regressed_cells[5].cell, 54);
    assert_int_equal(f->regressed_cells[FIGURES_LISTED - 1].cell, 10);
    buf = text_of(f, true, false);
    assert_non_null(
        strstr(buf.data, "\nreprod_cells_regressed{verdict=\"varies\"} 50\n"));
    assert_int_equal(lines_of(&buf, "reprod_cell_regressed_timestamp_seconds{"),
                     FIGURES_LISTED);
    assert_non_null(strstr(buf.data, "timestamp_seconds{cell=\"4\",workload=\"\","));
    assert_non_null(strstr(buf.data, ",verdict=\"devices_disagree\"} 4.005\n"));
    buf_release(&buf);
    free(f);
}

static void test_of_many_hosts_those_with_most_are_listed(void **state)
{
    struct figures *f = none();
    struct buf buf;

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct host_drift drift = { .at_ms = 1000 * i,
                                    .kinds = { [DRIFT_BITS] = i < 3 ? 0 : i % 50 } };

        snprintf(drift.host, sizeof drift.host, "gpu%d", i);
        figures_add_drift(f, &drift);
    }
    assert_int_equal(f->drifted_count, FIGURES_LISTED);
    assert_string_equal(f->drifted[0].host, "gpu49");
    f->drifted_case_count = 1;
    f->drifted_cases[0].kind = DRIFT_BITS;
    f->drifted_cases[0].key.seed = UINT64_MAX;
    buf = text_of(f, true, false);
    assert_int_equal(lines_of(&buf, "reprod_host_drift_cases{"), FIGURES_LISTED);
    assert_non_null(
        strstr(buf.data,
               "\nreprod_host_drift_cases{host=\"gpu49\",kind=\"bits_changed\"} 49\n"));
    assert_non_null(strstr(buf.data, "drift_timestamp_seconds{host=\"gpu49\"} 49\n"));
    assert_non_null(strstr(buf.data, "seed=\"18446744073709551615\"} 1\n"));
    assert_null(strstr(buf.data, "host=\"gpu1\""));
    buf_release(&buf);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_zeros),
        cmocka_unit_test(test_openmetrics_names_counters_without_their_ending),
        cmocka_unit_test(test_without_the_database_the_service_is_told),
        cmocka_unit_test(test_of_many_cells_the_worst_are_listed),
        cmocka_unit_test(test_of_many_hosts_those_with_most_are_listed),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
