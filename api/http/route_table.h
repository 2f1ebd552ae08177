/* The table of routes: PARAMETER(name, members of struct parameter) and ROUTE(handler,
 * members of struct route), a row each.  api/http/handlers.h declares the handlers from
 * it and api/http/routes.c makes the array, from which come dispatch, the check of
 * parameters and the paths of /openapi.json. */

/* Of paths. */
PARAMETER(job_id, .name = "id", .type = PARAM_ID, .noun = "job")
PARAMETER(run_id, .name = "id", .type = PARAM_ID, .noun = "run")
PARAMETER(cell_id, .name = "id", .type = PARAM_NUMBER, .noun = "cell")
PARAMETER(environment_id, .name = "id", .type = PARAM_DIGEST, .noun = "environment")
PARAMETER(device_id, .name = "id")
PARAMETER(name, .name = "name")
PARAMETER(asset, .name = "asset")

/* Of lists. */
PARAMETER(limit, .name = "limit", .type = PARAM_LIMIT, .max = PARAM_LIMIT_MAX,
          .help = "at most so many items")
PARAMETER(cursor, .name = "cursor",
          .help = "where the page begins: 'next' of the page before")
PARAMETER(trace_limit, .name = "limit", .type = PARAM_LIMIT, .max = TRACE_LIMIT_MAX,
          .help = "at most so many items")
PARAMETER(evidence_limit, .name = "limit", .type = PARAM_LIMIT, .max = PARAM_LIMIT_MAX,
          .help = "at most so many items, and as many of 'alike'")

/* Of every view of the matrix. */
PARAMETER(view, .name = "view", .type = PARAM_CHOICE, .choice = view_choice,
          .has_default = true, .problem = PROBLEM_UNKNOWN_VIEW,
          .help = "the matrix's view")
PARAMETER(table, .name = "table", .help = "a table of /v1/profiles; default: the first")
PARAMETER(environment, .name = "environment", .type = PARAM_DIGEST,
          .problem = PROBLEM_UNKNOWN_ENVIRONMENT,
          .help = "default: the one most recently used")
PARAMETER(device_kind, .name = "device", .type = PARAM_NAME, .max = CASE_TITLE_SIZE - 1,
          .help = "instead of environment: the one last used on a device of this kind")
PARAMETER(as_of, .name = "as_of", .type = PARAM_TIME,
          .help =
              "as it stood then, by the recorded changes of verdicts; a reproducible "
              "cell counts as stale if its last recorded change was too long ago by then")

/* Of runs, of their traces, and of two of them. */
PARAMETER(of_job, .name = "job", .type = PARAM_ID, .noun = "job", .help = "of this job")
PARAMETER(of_cell, .name = "cell", .type = PARAM_NUMBER, .help = "of this cell")
PARAMETER(of_workload, .name = "workload", .type = PARAM_NAME, .max = CASE_NAME_SIZE - 1,
          .help = "of this workload")
PARAMETER(of_variant, .name = "variant", .type = PARAM_NAME, .max = CASE_NAME_SIZE - 1,
          .help = "of this variant")
PARAMETER(on_device, .name = "device", .type = PARAM_NAME, .max = CASE_TITLE_SIZE - 1,
          .help = "on this device")
PARAMETER(outcome, .name = "outcome", .type = PARAM_CHOICE, .choice = outcome_choice,
          .help = "that ended so")
PARAMETER(iteration, .name = "iteration", .type = PARAM_RANGE,
          .help = "a number, or a range: 0-3")
PARAMETER(step, .name = "step", .type = PARAM_RANGE,
          .help = "a number, or a range: 30-40")
PARAMETER(place, .name = "place", .type = PARAM_NAME, .max = 2 * TRACE_PLACE_MAX - 1,
          .help =
              "a glob of names: * is any number of characters, / included, ? is one; one "
              "that no place of the trace matches is refused")
PARAMETER(run_a, .name = "a", .type = PARAM_ID, .noun = "run", .required = true,
          .help = "the id of a run")
PARAMETER(run_b, .name = "b", .type = PARAM_ID, .noun = "run", .required = true,
          .help = "the id of a run")

ROUTE(root_get, .method = "GET", .pattern = "/",
      .help = "the matrix as text, or the page for a browser",
      .notes =
          "text/html where Accept has it (a browser), then with any query; else as "
          "/v1/matrix, text by default.",
      .parameters = { &view, &table, &environment, &device_kind, &as_of },
      .formats = { FORMAT_TEXT, FORMAT_HTML, FORMAT_JSON, FORMAT_CSV },
      .schema = "Matrix", .refusals = "503")

ROUTE(jobs_post, .method = "POST", .pattern = "/v1/jobs", .help = "submit a job",
      .body = "JobRequest", .formats = { FORMAT_JSON }, .schema = "Job", .creates = true,
      .refusals = "409 413 415 503")

ROUTE(jobs_get_list, .method = "GET", .pattern = "/v1/jobs", .help = "jobs, newest first",
      .parameters = { &limit, &cursor },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "JobList",
      .columns =
          "id state priority progress.runs_done:done progress.runs_total:total "
          "progress.runs_failed:failed progress.eta_seconds:eta_s created_at "
          "finished_at request.note:note",
      .refusals = "503")

ROUTE(jobs_get_one, .method = "GET", .pattern = "/v1/jobs/{id}",
      .help = "one job with its items and progress", .parameters = { &job_id },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "JobWithItems",
      .columns =
          "seq workload variant size dtype seed device runs_wanted:runs "
          "runs_answered:answered runs_failed:failed milliseconds:ms state "
          "options",
      .refusals = "503")

ROUTE(jobs_delete, .method = "DELETE", .pattern = "/v1/jobs/{id}", .help = "cancel a job",
      .parameters = { &job_id }, .formats = { FORMAT_JSON }, .schema = "Job",
      .refusals = "409 503")

ROUTE(jobs_rerun, .method = "POST", .pattern = "/v1/jobs/{id}/rerun",
      .help = "submit the same request again", .parameters = { &job_id },
      .formats = { FORMAT_JSON }, .schema = "Job", .creates = true,
      .refusals = "409 413 503")

ROUTE(digests_get, .method = "GET", .pattern = "/v1/jobs/{id}/digests",
      .help = "sum of weights and final loss, a line a run", .parameters = { &job_id },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "Digests",
      .refusals = "503")

ROUTE(localisation_get, .method = "GET", .pattern = "/v1/jobs/{id}/localisation",
      .help = "the place where the runs of a localising job diverge",
      .parameters = { &job_id }, .formats = { FORMAT_JSON, FORMAT_TEXT },
      .schema = "Localisation", .refusals = "503")

ROUTE(runs_get_list, .method = "GET", .pattern = "/v1/runs", .help = "runs, newest first",
      .notes =
          "A workload, variant, device, job or cell that neither the database nor, once "
          "they are connected, any agent has is refused; the list of one that has no "
          "runs is empty.",
      .parameters = { &of_job, &of_cell, &of_workload, &of_variant, &on_device, &outcome,
                      &limit, &cursor },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "RunList",
      .columns =
          "id job workload variant size dtype seed device outcome iterations "
          "distinct_digests:digests weight_sum milliseconds.median:ms started_at",
      .refusals = "503")

ROUTE(runs_get_one, .method = "GET", .pattern = "/v1/runs/{id}",
      .help = "one run with its distinct digests", .parameters = { &run_id },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "RunWithDigests",
      .columns = "digest iterations first_iteration", .refusals = "503")

ROUTE(runs_get_log, .method = "GET", .pattern = "/v1/runs/{id}/log",
      .help = "the tail of what the run printed", .parameters = { &run_id },
      .formats = { FORMAT_TEXT, FORMAT_JSON }, .schema = "RunLog", .refusals = "503")

ROUTE(traces_get_one, .method = "GET", .pattern = "/v1/runs/{id}/trace",
      .help = "what the probes of a run saw, in program order",
      .notes =
          "404 where the run recorded none. Another kind of list: items are in program "
          "order, oldest first.",
      .parameters = { &run_id, &iteration, &step, &place, &trace_limit, &cursor },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "Trace",
      .columns = "position iteration step place in out", .refusals = "503")

ROUTE(compare_get, .method = "GET", .pattern = "/v1/compare",
      .help = "where two runs diverge: first difference, root cause, what follows",
      .notes =
          "Records are aligned by position and compared up to where their iteration, "
          "step or place is another. Of two runs whose results differ although every "
          "record agrees, the difference is where there is no probe.",
      .parameters = { &run_a, &run_b }, .formats = { FORMAT_JSON, FORMAT_TEXT },
      .schema = "Comparison", .refusals = "404 503")

ROUTE(matrix_get, .method = "GET", .pattern = "/v1/matrix",
      .help = "which source of non-determinism has which solution here",
      .parameters = { &view, &table, &environment, &device_kind, &as_of },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "Matrix",
      .refusals = "503")

ROUTE(cells_get_one, .method = "GET", .pattern = "/v1/cells/{id}",
      .help = "everything known about a case in an environment",
      .parameters = { &cell_id }, .formats = { FORMAT_JSON, FORMAT_TEXT },
      .schema = "Cell", .refusals = "503")

ROUTE(cells_get_history, .method = "GET", .pattern = "/v1/cells/{id}/history",
      .help = "the changes of a cell's verdict, newest first",
      .parameters = { &cell_id, &limit, &cursor },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "CellHistory",
      .columns = "at verdict runs iterations distinct_digests:digests run reason",
      .refusals = "503")

ROUTE(cells_get_evidence, .method = "GET", .pattern = "/v1/cells/{id}/evidence",
      .help = "the distinct digests of a cell with their counts",
      .parameters = { &cell_id, &evidence_limit },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "CellEvidence",
      .columns = "digest runs iterations weight_sum loss", .refusals = "503")

ROUTE(findings_get, .method = "GET", .pattern = "/v1/findings",
      .help = "what contradicts the promise of a library",
      .parameters = { &limit, &cursor },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "FindingList",
      .columns =
          "finding workload variant size dtype seed runs iterations "
          "distinct_digests:digests last_run_at cell environment",
      .refusals = "503")

ROUTE(workloads_get_list, .method = "GET", .pattern = "/v1/workloads",
      .help = "what can be run", .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV },
      .schema = "WorkloadList",
      .columns =
          "workload version backend variant_names:variants size_names:sizes dtypes "
          "verification:gpu title",
      .refusals = "503")

ROUTE(workloads_get_one, .method = "GET", .pattern = "/v1/workloads/{name}",
      .help = "one workload with its variants, on every backend", .parameters = { &name },
      .formats = { FORMAT_JSON, FORMAT_TEXT }, .schema = "WorkloadByBackend",
      .refusals = "503")

ROUTE(profiles_get, .method = "GET", .pattern = "/v1/profiles",
      .help = "framework eras and their recipes",
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "ProfileList",
      .columns = "id title column_ids:columns recipe_names:recipes source")

ROUTE(stacks_get, .method = "GET", .pattern = "/v1/stacks",
      .help = "the configured sets of libraries",
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "StackList",
      .columns =
          "name host backend online device_ids:devices worker_build cause "
          "problem_texts:problems")

ROUTE(environments_get_list, .method = "GET", .pattern = "/v1/environments",
      .help = "where bit equality is expected, most recently used first",
      .parameters = { &limit, &cursor },
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "EnvironmentList",
      .columns = "id title cells first_seen_at last_seen_at", .refusals = "503")

ROUTE(environments_get_one, .method = "GET", .pattern = "/v1/environments/{id}",
      .help = "one environment with its facts", .parameters = { &environment_id },
      .formats = { FORMAT_JSON, FORMAT_TEXT }, .schema = "Environment", .refusals = "503")

ROUTE(devices_get, .method = "GET", .pattern = "/v1/devices",
      .help = "the devices that were ever seen",
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "DeviceList",
      .columns = "id host backend model stack online last_seen_at", .refusals = "503")

ROUTE(devices_get_one, .method = "GET", .pattern = "/v1/devices/{id}",
      .help = "one device with all that is known of it", .parameters = { &device_id },
      .formats = { FORMAT_JSON, FORMAT_TEXT }, .schema = "Device", .refusals = "503")

ROUTE(hosts_get, .method = "GET", .pattern = "/v1/hosts",
      .help = "the hosts that are configured or were ever seen",
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "HostList",
      .columns = "name online boot_id first_seen_at last_seen_at cause",
      .refusals = "503")

ROUTE(events_get, .method = "GET", .pattern = "/v1/events",
      .help = "what happens, as server-sent events",
      .notes =
          "Events: job, run, cell, each with an id and a JSON object; reset (data {}): "
          "too much was missed, read everything anew. A comment every 15 s. At most 64 "
          "listeners.",
      .formats = { FORMAT_EVENTS }, .refusals = "503")

ROUTE(health_get, .method = "GET", .pattern = "/healthz",
      .help = "whether the process answers", .formats = { FORMAT_JSON, FORMAT_TEXT },
      .schema = "Status")

ROUTE(ready_get, .method = "GET", .pattern = "/readyz", .help = "whether jobs can be run",
      .formats = { FORMAT_JSON, FORMAT_TEXT }, .schema = "Status", .refusals = "503")

ROUTE(metrics_get, .method = "GET", .pattern = "/metrics",
      .help = "figures for Prometheus", .notes = "Prometheus text format 0.0.4.",
      .formats = { FORMAT_TEXT }, .refusals = "503")

ROUTE(openapi_get, .method = "GET", .pattern = "/openapi.json",
      .help = "this interface, described", .formats = { FORMAT_JSON })

ROUTE(problem_types_get_list, .method = "GET", .pattern = "/problems",
      .help = "the types of problems",
      .formats = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV }, .schema = "ProblemTypeList",
      .columns = "type status title")

ROUTE(problem_types_get_one, .method = "GET", .pattern = "/problems/{name}",
      .help = "one type of problem", .parameters = { &name },
      .formats = { FORMAT_JSON, FORMAT_TEXT }, .schema = "ProblemType")

ROUTE(assets_get, .method = "GET", .pattern = "/{asset}", .help = "a file of the page",
      .parameters = { &asset }, .formats = { FORMAT_FILE }, .exists = assets_exist)
