/* What migrations added, undone: UNDO_nn takes from a database of today what migration nn
 * and all after it made, so that they can be done again from version nn - 1.
 *
 * A new migration that makes what cannot be made twice (a table, a column, an index, a
 * trigger) gets a macro at the top: UNDO_nn drops it again, and the macro that was the
 * first there begins with UNDO_nn.  No test needs a change for it. */
#ifndef TESTS_UNIT_DB_MIGRATIONS_UNDO_H
#define TESTS_UNIT_DB_MIGRATIONS_UNDO_H

/* A chain of statements that undoes many versions is longer than C99 promises. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

#define UNDO_42                                                                          \
    "DROP INDEX screening_device;"                                                       \
    "CREATE INDEX screening_device ON screening (device, number);"
#define UNDO_41                                                                          \
    UNDO_42                                                                              \
    "INSERT INTO run_check (run, state) SELECT id, 'asked' FROM run"                     \
    " WHERE asked AND outcome IS NULL; ALTER TABLE run DROP COLUMN asked;"
#define UNDO_39                                                                          \
    UNDO_41                                                                              \
    "DELETE FROM table_total WHERE name IN ('peer', 'peer_job', 'peer_origin',"          \
    " 'peer_refusal');"                                                                  \
    "DROP TABLE peer_refusal;"                                                           \
    "DROP TABLE peer;"                                                                   \
    "DROP TABLE peer_job;"                                                               \
    "DROP TABLE peer_origin;"
#define UNDO_38                                                                          \
    UNDO_39                                                                              \
    "DROP TABLE webhook_delivery; DROP TABLE webhook; DROP TABLE webhook_cursor;"        \
    "DROP TABLE host_lost; DELETE FROM table_total"                                      \
    " WHERE name IN ('webhook', 'webhook_cursor', 'webhook_delivery');"
#define UNDO_37 UNDO_38 "DELETE FROM table_total WHERE name = 'lost_commits';"
#define UNDO_35                                                                          \
    UNDO_37                                                                              \
    "ALTER TABLE screening DROP COLUMN sum;"                                             \
    "ALTER TABLE screening_job DROP COLUMN sum;"                                         \
    "ALTER TABLE quarantine DROP COLUMN sum;"                                            \
    "ALTER TABLE accepted_loss DROP COLUMN sum;"                                         \
    "DELETE FROM table_total WHERE name IN ('accepted_loss', 'event', 'quarantine',"     \
    " 'run_log', 'run_telemetry', 'screening', 'screening_job');"
#define UNDO_34                                                                          \
    UNDO_35                                                                              \
    "CREATE TABLE old_device (cell INTEGER NOT NULL REFERENCES cell (id),"               \
    " device TEXT NOT NULL, options TEXT NOT NULL,"                                      \
    " runs INTEGER NOT NULL CHECK (runs >= 1),"                                          \
    " digest TEXT CHECK (length(digest) = 32), last_ms INTEGER NOT NULL DEFAULT 0,"      \
    " last_digest TEXT NOT NULL DEFAULT '', varied_ms INTEGER NOT NULL DEFAULT 0,"       \
    " iterations INTEGER NOT NULL DEFAULT 0, first_ms INTEGER NOT NULL DEFAULT 0,"       \
    " first_run TEXT NOT NULL DEFAULT '', last_run TEXT NOT NULL DEFAULT '', mode TEXT," \
    " mode_runs INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (cell, device, options))"        \
    " STRICT, WITHOUT ROWID;"                                                            \
    "INSERT INTO old_device SELECT cell, device, options, runs, digest, last_ms,"        \
    " last_digest, varied_ms, iterations, first_ms, first_run, last_run, mode,"          \
    " mode_runs FROM cell_device;"                                                       \
    "DROP TABLE cell_device;"                                                            \
    "ALTER TABLE old_device RENAME TO cell_device;"                                      \
    "CREATE INDEX cell_device_conditions ON cell_device (cell) WHERE options <> '';"     \
    "CREATE TABLE old_digest (cell INTEGER NOT NULL REFERENCES cell (id),"               \
    " device TEXT NOT NULL, options TEXT NOT NULL,"                                      \
    " digest TEXT NOT NULL CHECK (length(digest) = 32), runs INTEGER NOT NULL,"          \
    " iterations INTEGER NOT NULL, only_runs INTEGER NOT NULL,"                          \
    " PRIMARY KEY (cell, device, options, digest)) STRICT, WITHOUT ROWID;"               \
    "INSERT INTO old_digest SELECT cell, device, options, digest, runs, iterations,"     \
    " only_runs FROM cell_device_digest;"                                                \
    "DROP TABLE cell_device_digest;"                                                     \
    "ALTER TABLE old_digest RENAME TO cell_device_digest;"                               \
    "DELETE FROM table_total WHERE name = 'device_state';"                               \
    "DROP TABLE device_state;"
#define UNDO_33 UNDO_34 "DELETE FROM table_total WHERE name = 'cell';"
#define UNDO_32 UNDO_33 "DROP INDEX cell_device_conditions;"
#define UNDO_31                                                                          \
    UNDO_32                                                                              \
    "DROP TABLE cell_algorithm;"                                                         \
    "UPDATE judged SET rules = 0;"
#define UNDO_30                                                                          \
    UNDO_31                                                                              \
    "DROP TABLE screening_job;"                                                          \
    "DROP TABLE screening;"
#define UNDO_29                                                                          \
    UNDO_30                                                                              \
    "DROP TABLE table_total;"                                                            \
    "ALTER TABLE host_facts DROP COLUMN sum;"                                            \
    "ALTER TABLE change DROP COLUMN sum;"
#define UNDO_28 UNDO_29 "DROP TABLE lost_commits;"
#define UNDO_27                                                                          \
    UNDO_28                                                                              \
    "DROP TABLE cell_device_digest;"                                                     \
    "ALTER TABLE job_item DROP COLUMN runs_more;"                                        \
    "DROP TABLE cell_dissenter;"                                                         \
    "ALTER TABLE cell_device DROP COLUMN iterations;"                                    \
    "ALTER TABLE cell_device DROP COLUMN first_ms;"                                      \
    "ALTER TABLE cell_device DROP COLUMN first_run;"                                     \
    "ALTER TABLE cell_device DROP COLUMN last_run;"                                      \
    "ALTER TABLE cell_device DROP COLUMN mode;"                                          \
    "ALTER TABLE cell_device DROP COLUMN mode_runs;"                                     \
    "ALTER TABLE cell DROP COLUMN agreeing;"                                             \
    "ALTER TABLE cell DROP COLUMN agreeing_devices;"                                     \
    "ALTER TABLE cell DROP COLUMN agreeing_runs;"                                        \
    "ALTER TABLE cell DROP COLUMN agreeing_iterations;"                                  \
    "ALTER TABLE cell DROP COLUMN agreement;"
#define UNDO_26                                                                          \
    UNDO_27                                                                              \
    "DROP TRIGGER run_answered;"                                                         \
    "DROP INDEX run_challenge;"                                                          \
    "DROP INDEX run_challenged;"                                                         \
    "ALTER TABLE run DROP COLUMN challenge;"                                             \
    "ALTER TABLE run DROP COLUMN challenged;"                                            \
    "ALTER TABLE case_key DROP COLUMN unseeded;"                                         \
    "ALTER TABLE case_key DROP COLUMN challenge;"                                        \
    "ALTER TABLE cell DROP COLUMN challenges_passed;"                                    \
    "ALTER TABLE cell DROP COLUMN challenges_repeated;"                                  \
    "ALTER TABLE cell DROP COLUMN challenges_unchanged;"                                 \
    "ALTER TABLE cell DROP COLUMN challenges_failed;"                                    \
    "ALTER TABLE cell DROP COLUMN challenge_run;"
#define UNDO_25                                                                          \
    UNDO_26                                                                              \
    "DROP TRIGGER run_inserted;"                                                         \
    "DROP TRIGGER run_updated;"                                                          \
    "DROP TRIGGER run_moved;"                                                            \
    "DROP TRIGGER run_deleted;"                                                          \
    "DROP TRIGGER run_digest_inserted;"                                                  \
    "DROP TRIGGER run_digest_updated;"                                                   \
    "DROP TRIGGER run_digest_deleted;"                                                   \
    "DROP TRIGGER run_check_inserted;"                                                   \
    "DROP TRIGGER run_check_updated;"                                                    \
    "DROP TRIGGER run_check_deleted;"                                                    \
    "DROP TRIGGER job_item_updated;"                                                     \
    "DROP TABLE run_summary;"                                                            \
    "DROP TABLE cell_changes;"                                                           \
    "DROP TABLE cell_verified;"                                                          \
    "DROP INDEX case_input_run;"                                                         \
    "DROP INDEX cell_history_run;"
#define UNDO_24                                                                          \
    UNDO_25                                                                              \
    "DROP TABLE change;"                                                                 \
    "DROP TABLE host_facts;"
#define UNDO_23 UNDO_24 "DROP TABLE device_environment;"
#define UNDO_22                                                                          \
    UNDO_23                                                                              \
    "DROP VIEW cell_control;"                                                            \
    "DROP TABLE quarantine; DROP TABLE commits; DROP TABLE accepted_loss;"               \
    "ALTER TABLE schedule DROP COLUMN sum;"                                              \
    "ALTER TABLE schedule_job DROP COLUMN sum;"                                          \
    "ALTER TABLE run DROP COLUMN sum;"                                                   \
    "ALTER TABLE cell DROP COLUMN sum;"                                                  \
    "ALTER TABLE cell_history DROP COLUMN sum;"                                          \
    "ALTER TABLE run_log DROP COLUMN sum;"                                               \
    "ALTER TABLE run_telemetry DROP COLUMN sum;"                                         \
    "ALTER TABLE run_trace DROP COLUMN sum;"                                             \
    "ALTER TABLE run_tensor DROP COLUMN sum;"                                            \
    "ALTER TABLE tensor_blob DROP COLUMN sum;"                                           \
    "ALTER TABLE job DROP COLUMN sum;"                                                   \
    "ALTER TABLE job_item DROP COLUMN sum;"                                              \
    "ALTER TABLE case_key DROP COLUMN sum;"                                              \
    "ALTER TABLE environment DROP COLUMN sum;"                                           \
    "ALTER TABLE library_list DROP COLUMN sum;"                                          \
    "ALTER TABLE localisation DROP COLUMN sum;"                                          \
    "ALTER TABLE input_decision DROP COLUMN sum;"                                        \
    "ALTER TABLE host DROP COLUMN sum;"                                                  \
    "ALTER TABLE device DROP COLUMN sum;"                                                \
    "CREATE VIEW cell_control AS SELECT 1;"
#define UNDO_21                                                                          \
    UNDO_22                                                                              \
    "DROP TABLE schedule_job;"                                                           \
    "DROP TABLE schedule;"                                                               \
    "DROP INDEX job_requested;"
#define UNDO_20                                                                          \
    UNDO_21                                                                              \
    "DROP TABLE case_input;"                                                             \
    "DROP TABLE input_decision;"                                                         \
    "UPDATE run SET cause = 'the inputs of run ' || id || ' have digest ' ||"            \
    " input_digest || ', those of run X of the same case have Y' WHERE refused;"         \
    "ALTER TABLE run DROP COLUMN refused;"                                               \
    "CREATE TABLE expected_input (workload, version, size, dtype, seed, digest, run);"
#define UNDO_19                                                                          \
    UNDO_20                                                                              \
    "ALTER TABLE cell DROP COLUMN checks_cut_off;"                                       \
    "ALTER TABLE cell DROP COLUMN digests_passed;"
#define UNDO_18 UNDO_19 "ALTER TABLE cell_digest DROP COLUMN checked;"
#define UNDO_17                                                                          \
    UNDO_18                                                                              \
    "ALTER TABLE cell_digest DROP COLUMN first_runs;"                                    \
    "ALTER TABLE cell_digest DROP COLUMN only_runs;"                                     \
    "ALTER TABLE cell DROP COLUMN digest_first_runs;"                                    \
    "ALTER TABLE cell DROP COLUMN digest_only_runs;"
#define UNDO_16                                                                          \
    UNDO_17                                                                              \
    "DROP TABLE run_check;"                                                              \
    "ALTER TABLE cell DROP COLUMN has_reference;"                                        \
    "ALTER TABLE cell DROP COLUMN checks_passed;"                                        \
    "ALTER TABLE cell DROP COLUMN checks_failed;"                                        \
    "ALTER TABLE cell DROP COLUMN checks_given_up;"                                      \
    "ALTER TABLE cell DROP COLUMN checks_unanswered;"                                    \
    "ALTER TABLE cell DROP COLUMN check_share_ppm;"                                      \
    "ALTER TABLE cell DROP COLUMN failed_check;"                                         \
    "ALTER TABLE cell DROP COLUMN failed_check_words;"
#define UNDO_15                                                                          \
    UNDO_16                                                                              \
    "ALTER TABLE cell_device DROP COLUMN last_ms;"                                       \
    "ALTER TABLE cell_device DROP COLUMN last_digest;"                                   \
    "ALTER TABLE cell_device DROP COLUMN varied_ms;"                                     \
    "ALTER TABLE cell_alike DROP COLUMN varied_ms;"                                      \
    "ALTER TABLE cell DROP COLUMN vouched_ms;"                                           \
    "ALTER TABLE cell_history DROP COLUMN vouched_ms;"                                   \
    "UPDATE judged SET rules = 0;"

#endif
