"""The data folder whose answers are compared: a program of the old build makes it, with jobs of
every kind, so that every table has rows and every outcome, verdict and state is there."""
import sqlite3

import rows
from configured import GPU, config, install
from daemons import Daemon, Question

SELFTESTS = ("pass", "no_control", "claims", "varies_once", "stale_output", "memory", "telemetry",
             "unsupported", "out_of_memory", "infra", "crash", "exit_zero_silent", "zero_elements",
             "wrong_device", "truncated_line", "garbage", "duplicate_keys", "wrong_count",
             "huge_line", "input_scribbler", "nan_everywhere", "closes_fd3")
DOCUMENTED = ("conv_wgrad", "bias_add_bwd", "ctc_loss", "conv_dgrad", "crop_and_resize_bwd",
              "softmax_xent_sparse", "xla_scatter", "xla_reduction", "sparse_dense_matmul",
              "depthwise_wgrad", "batchnorm_freeze_bwd", "gather_bwd")
PROBED = {"workloads": ["train_cnn"], "variants": ["ordered"], "runs": 2, "iterations": 2,
          "stacks": ["plain"]}
PASS = {"workloads": ["selftest_pass"], "runs": 2, "iterations": 3}
TRAINING = {"workloads": ["training"], "iterations": 1}
HANG = {"workloads": ["selftest_hang"], "variants": ["ordered"], "runs": 2, "timeout_seconds": 60}
HANG_GPU = {**HANG, "workloads": ["hang"], "devices": [GPU]}
KEY = "the key of one job"
JOBS = (
    {"workloads": ["selftest_" + name for name in SELFTESTS], "runs": 2, "iterations": 4,
     "note": "µ, \"quoted\" & <b>,\nin two lines"},
    {"workloads": list(DOCUMENTED), "runs": 2, "iterations": 2, "priority": "background"},
    {"workloads": ["checkpoint_resume", "conv_autotune"], "runs": 2, "iterations": 2,
     "stacks": ["plain"]},
    {"workloads": ["reduce_sum", "conv_wgrad"], "variants": ["ordered"], "runs": 2,
     "sizes": ["small", "medium"], "iterations": 1, "seed": 7},
    {"workloads": ["onednn_matmul"], "runs": 1, "stacks": ["plain"]},
    {**PASS, "seeds": ["18446744073709551615", 2], "stacks": ["cpu", "three"]},
    {**PASS, "stacks": "all", "priority": "confirmation", "timeout_seconds": 2.5},
    {**PASS, "contention": 1, "memory_poison": "0badcafe", "allocation_jitter": "7"},
    {**PASS, "variants": ["unordered"], "allocation_jitter": "9", "seed": 3},
    {**PASS, "variants": ["ordered"], "seed": 3},
    {**PASS, "workloads": ["selftest_memory"], "memory_poison": True, "allocation_jitter": True},
    {**PASS, "workloads": ["selftest_varies_once"], "runs": 40, "stop_when_varies": True},
    {**PASS, "survey": True, "workloads": ["selftest_claims", "selftest_pass"], "seed": 4},
    {**PROBED, "probes": True, "iterations": 1},
    {**PROBED, "probes": {"every": 2, "names": "gradient/*", "steps": [0, 4]}},
    {**PROBED, "variants": ["unordered"], "probes": {"names": "*2*"}},
    {**PASS, "variants": ["unordered"], "localise": True, "runs": 3, "runs_max": 9},
    {**PASS, "variants": ["ordered"], "localise": True, "runs_max": 6},
    {"workloads": ["selftest_crash"], "variants": ["compute"], "localise": True, "runs_max": 4,
     "runs": 2},
    {**TRAINING, "runs": 3},
    {**TRAINING, "variants": ["counted"], "localise": True, "runs": 3, "runs_max": 9},
    {**TRAINING, "variants": ["steady"], "sizes": ["large"], "runs": 2, "contention": 2},
    {"workloads": ["words"], "runs": 3, "probes": {"steps": [0, 3]}, "iterations": 2},
    {"workloads": ["broken"], "runs": 2, "iterations": 2},
    {"workloads": ["endless"], "variants": ["hangs"], "runs": 1, "timeout_seconds": 0.7},
    {"workloads": ["no_program"], "runs": 1},
    {"workloads": ["selftest_hang"], "variants": ["ordered"], "runs": 2, "timeout_seconds": 0.5},
    {"workloads": ["selftest_flood"], "variants": ["log"], "runs": 1, "timeout_seconds": 0.5},
    {"workloads": ["trace_" + name for name in (
        "equal", "end", "parts", "seed", "data", "twice", "none", "unprobed", "single", "bad",
        "crash", "dropped", "environment", "outside", "long")], "runs": 2, "iterations": 1},
    {"workloads": ["trace_root"], "runs": 3, "iterations": 2},
    {"workloads": ["good", "tame", "loose", "liar", "lacking", "big", "crash", "alone",
                   "cudnn_conv_pretend", "fragile"], "runs": 2, "iterations": 2,
     "devices": [GPU]},
    {"workloads": ["big", "good"], "sizes": ["large", "medium"], "runs": 2, "iterations": 2},
    {"workloads": ["cudnn_conv_pretend"], "dtypes": ["float32", "float16"], "runs": 2,
     "iterations": 2, "memory_poison": "0badcafe"},
    {"workloads": ["fragile"], "runs": 2, "iterations": 2, "memory_poison": "0badcafe",
     "contention": 3},
    *rows.PLANNED,
)
# A cell that was last measured so long ago is stale.
OLD_MS = 40 * 24 * 3600 * 1000
OLD_CELLS = "(SELECT number FROM case_key WHERE workload IN ('selftest_no_control', 'words'))"


def runs_of(daemon, job):
    return daemon.get(f"/v1/runs?job={job}")["items"]


def elsewhere(folder, build, selftest):
    """A host that the later configuration does not name."""
    path = folder / "there.json"
    path.write_text('{"stacks": [{"name": "theirs", "worker": "%s", "threads": 2}]}' % selftest)
    return {"hosts": [{"name": "there", "launch": [str(build / "reprod"), "agent", "--config",
                                                   str(path)]}]}


def make_old(path):
    """Moves what some cells show into the past."""
    with sqlite3.connect(path) as db:
        for column in ("last_completed_ms", "last_ms", "first_ms", "changed_ms"):
            db.execute(f"UPDATE cell SET {column} = {column} - {OLD_MS} WHERE {column} > 0 AND "
                       f"case_key IN {OLD_CELLS}")
        db.execute(f"UPDATE cell_history SET at_ms = at_ms - {OLD_MS} WHERE cell IN "
                   f"(SELECT id FROM cell WHERE case_key IN {OLD_CELLS})")
    db.close()


def record(folder, build, selftest):
    """A daemon of BUILD that is stopped, and may be started on as it is."""
    install(folder)
    daemon = Daemon(build, folder, elsewhere(folder, build, selftest)).start()
    daemon.finish(daemon.post({**PASS, "seed": 9}))
    daemon.stop()
    daemon.configure(config(folder, build, selftest))
    daemon.start()
    posted = [daemon.post(job) for job in JOBS]
    for job in posted + [daemon.post({**PASS, "note": "with a key"}, KEY)]:
        daemon.finish(job)
    for job in (HANG, {**PASS, "variants": ["ordered"], "localise": True, "runs_max": 10000}):
        cancelled = daemon.post(job)
        daemon.wait("a run", lambda: any(run["started_at"] for run in runs_of(daemon, cancelled)))
        daemon.ask(Question("DELETE", f"/v1/jobs/{cancelled}"))
        daemon.finish(cancelled)
    lost = daemon.post(HANG_GPU)
    daemon.wait("a run", lambda: any(run["started_at"] for run in runs_of(daemon, lost)))
    daemon.post({"workloads": ["good", "fragile"], "devices": [GPU], "runs": 3, "note": "waits"})
    daemon.kill()
    daemon.configure(config(folder, build, selftest, gpu=False))
    daemon.start()
    daemon.ask(Question("DELETE", f"/v1/jobs/{lost}"))
    daemon.finish(lost)
    daemon.stop()
    make_old(daemon.data / "reprod.db")
    return daemon
