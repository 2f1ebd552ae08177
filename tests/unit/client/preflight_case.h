/* The case that tests of preflights and baselines speak of. */
#ifndef TESTS_UNIT_CLIENT_PREFLIGHT_CASE_H
#define TESTS_UNIT_CLIENT_PREFLIGHT_CASE_H

#define CASE                                                                             \
    "workload", "w", "version", 1, "variant", "ordered", "size", "small", "dtype",       \
        "float32", "seed", "1"
#define CASE_FORMAT "s:s, s:i, s:s, s:s, s:s, s:s"

#endif
