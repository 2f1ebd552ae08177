/* Options of runs as their canonical text. */
#ifndef TESTS_UNIT_JOBS_OPTIONS_FIXTURE_H
#define TESTS_UNIT_JOBS_OPTIONS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/jobs/options.h"

static inline struct run_options options_of(const char *text)
{
    struct run_options options;

    assert_true(run_options_read(text, &options));
    return options;
}

static inline void check_options(const struct run_options *options, const char *text)
{
    char written[RUN_OPTIONS_SIZE];

    assert_true(run_options_write(options, written));
    assert_string_equal(written, text);
}

#endif
