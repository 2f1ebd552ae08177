"""The step `packs` of a campaign: the frameworks that an interpreter has become stacks of the service, and
the operations of their packs are measured, what tells most first.
"""
import collections
import fnmatch
import json
import os
import subprocess
import time

import machine
import runs
from campaign_jobs import Skipped, configuration, serve, submit
from product import Refused

MODULES = {"pytorch": "torch", "jax": "jax"}  # in the order in which they are measured
OF_REHEARSALS = {**MODULES, "numpy": "numpy"}
SHARE = 0.65  # of the time that is left, of a stack that others follow
# Operations of a job: what is cut leaves whole operations, those of the jobs before.  The first job, of one,
# shows whether anything works.
CHUNK = 6
TIMEOUT = 90  # seconds of a run: one that hangs is not to take the time of all
ENOUGH = 3  # runs: after so many a job goes on with no case that varies
LOGS = 6  # of what failed, for each stack
STACK_LIMIT = 90  # seconds until a stack has said what it is

# What tells most, by the name of the operation; the others follow in the pack's order.
ORDER = {
    "pytorch": ["index_add", "scatter_add", "index_put", "cumsum", "bincount", "ctc_loss_bwd",
                "interpolate_bilinear_bwd", "grid_sample_bwd", "conv2d_bwd", "embedding_bag_sum_bwd",
                "put_accumulate", "gather_bwd", "histc", "median", "kthvalue", "max_pool2d_bwd",
                "adaptive_avg_pool2d_bwd", "adaptive_max_pool2d_bwd", "avg_pool3d_bwd", "index_put_replace",
                "scatter_reduce_sum", "embedding_bwd", "getitem_bwd", "index_select_bwd", "interpolate_bicubic_bwd",
                "reflect_pad2d_bwd", "replicate_pad2d_bwd", "nll_loss", "attention_bwd", "scatter", "put", "empty",
                "max_unpool2d", "fractional_max_pool2d_bwd", "conv_transpose2d_bwd", "mm", "sum", "batch_norm_bwd"],
    "jax": ["scatter_add", "scatter_add_1d", "segment_sum", "gather_bwd", "conv_bwd", "matmul_tall", "bincount",
            "embedding_bwd", "scatter_set", "scatter_mul", "cumsum", "resize_bilinear_bwd", "max_pool_bwd",
            "conv_depthwise_bwd", "conv_strided_bwd", "conv_transpose_bwd", "sum", "sort_ties", "top_k",
            "attention_bwd", "scan_bwd", "matmul", "dot"],
}
# A variant that switches but a few operations is asked for these, and after everything else.
LATER = {"cudnn_deterministic": ("conv*", "batch_norm*", "lstm*", "ctc*", "*grid_sample*", "max_pool*", "attention*")}


# Stacks

def script(programs):
    """deploy/framework, as the bundle has it or the tree."""
    bundled = programs / "framework"
    return bundled if bundled.exists() else machine.ROOT / "deploy" / "framework"


def wanted(campaign):
    """[arguments of the script that name a pack]; a rehearsal takes what is there."""
    if campaign.options.pack:
        return [["--pack", path] for path in campaign.options.pack]
    modules = OF_REHEARSALS if campaign.options.rehearse else MODULES
    question = ("import importlib.util, json, sys; print(json.dumps("
                "[name for name in sys.argv[1:] if importlib.util.find_spec(name)]))")
    answer = runs.ask([campaign.options.interpreter, "-s", "-c", question, *modules.values()], 60)
    try:
        found = json.loads(answer.output)
    except ValueError:
        raise Refused(f"{campaign.options.interpreter}: {answer.errors.strip()[-200:]}") from None
    return [["--framework", name] for name, module in modules.items() if module in found]


def start_script(campaign, named):
    options = campaign.options
    command = [options.interpreter, "-s", script(campaign.programs), *named, "--interpreter", options.interpreter,
               "--into", campaign.unpacked / "packs", "--backend", "cpu" if options.rehearse else "cuda"]
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def entry_of(campaign, process, until):
    """(its entry for the configuration, the framework's name).  What the script said joins the log."""
    try:
        output, errors = process.communicate(timeout=max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Refused("it did not say what it is in time") from None
    print(errors.rstrip(), flush=True)
    if process.returncode:
        raise Refused(errors.strip()[-300:] or f"exit status {process.returncode}")
    entry = json.loads(output)
    said = json.loads((campaign.unpacked / "packs" / entry["name"] / "framework.json").read_text())
    return ({**entry, **({"library_path": campaign.driver} if campaign.driver else {})}, said["framework"])


def add_stacks(campaign, until):
    """({name of the stack: framework}, [what went wrong]).  The frameworks are loaded side by side: from a
    cold disk each takes a while."""
    asked = wanted(campaign)
    if not asked:
        raise Skipped(f"{campaign.options.interpreter} has none of {', '.join(MODULES)}")
    (campaign.unpacked / "packs").mkdir(exist_ok=True)
    processes = [(named, start_script(campaign, named)) for named in asked]
    entries, frameworks, causes = [], {}, []
    try:
        for named, process in processes:
            try:
                entry, frameworks_name = entry_of(campaign, process, until)
                frameworks[entry["name"]] = frameworks_name
                entries.append(entry)
            except (Refused, OSError, ValueError, KeyError) as error:
                causes.append(f"{os.path.basename(str(named[1]))}: {error}")
    finally:
        for _, process in processes:
            runs.stop(process)
            process.wait()
    campaign.packs = entries
    return frameworks, causes


def start_again(campaign):
    """The service reads its configuration when it starts."""
    if campaign.product is not None:
        campaign.product.stop()
        campaign.product.configure(configuration(campaign))
    serve(campaign, None)


def stack_said(campaign, name, until):
    """What the service says of the stack NAME, once its worker has said what it is."""
    while True:
        found = next((stack for stack in campaign.product.get("/v1/stacks")["items"] if stack["name"] == name), {})
        if found.get("devices"):
            return found
        if found.get("cause") or time.monotonic() >= until:
            raise Refused(found.get("cause") or "it did not say what it is in time")
        time.sleep(0.25)


def device_of(campaign, said):
    ids = [device["id"] for device in said["devices"]]
    if campaign.device in ids:
        return campaign.device
    if campaign.options.rehearse:  # on a CPU, where the simulator is not
        return ids[0]
    raise Refused(f"it sees {', '.join(ids)}, not {campaign.device}")


# Operations

def operations(campaign, framework):
    """[what the service says of its workloads], what tells most first."""
    globs = campaign.options.operations or ["*"]
    backend = "cpu" if campaign.options.rehearse else "cuda"
    order = {name: at for at, name in enumerate(ORDER.get(framework, []))}
    found = [item for item in campaign.product.get("/v1/workloads")["items"]
             if item["backend"] == backend and item["workload"].startswith(framework + "_")]
    found = [item for item in found if any(fnmatch.fnmatchcase(short(item, framework), glob) for glob in globs)]
    return sorted(found, key=lambda item: order.get(short(item, framework), len(order)))


def short(item, framework):
    return item["workload"][len(framework) + 1:]


def shares_import(items):
    """Whether the service lets several runs be forked from one process that imported the framework."""
    return all("shared_import" in (item.get("circumstances") or []) for item in items)


def chunks(items):
    return [items[:1]] * bool(items) + [items[at:at + CHUNK] for at in range(1, len(items), CHUNK)]


def measured(campaign, said):
    """{(workload, variant)} that have their runs in the database, of this very build."""
    same = {one["id"] for one in campaign.product.items("/v1/environments")
            if one["facts"].get("worker_build") == said["worker_build"]}
    found = collections.Counter()
    for run in campaign.runs():
        if run["stack"] == said["name"] and run["environment"] in same:
            found[run["workload"], run["variant"]] += {"completed": 1, "unsupported": ENOUGH}.get(run["outcome"], 0)
    return {case for case, count in found.items() if count >= min(ENOUGH, campaign.options.runs)}


def requests(items, framework, done=()):
    """One job after the other: what each asks for.  What is DONE is not asked for again."""
    if not items:
        return []
    variants = list(dict.fromkeys(variant["name"] for item in items for variant in item["variants"]))
    shared = {"shared_import": True} if shares_import(items) else {}
    plain = {"sizes": [items[0]["sizes"][0]["name"]], "stop_when_varies": True,
             "timeout_seconds": TIMEOUT, **shared}
    at_once = [name for name in variants if name not in LATER]
    left = [item for item in items if any((item["workload"], name) not in done for name in at_once)]
    found = [{"workloads": [item["workload"] for item in chunk], "variants": at_once, **plain}
             for chunk in chunks(left)]
    for name in variants:
        some = [item["workload"] for item in items if (item["workload"], name) not in done and
                any(fnmatch.fnmatchcase(short(item, framework), glob) for glob in LATER.get(name, ()))]
        found += [{"workloads": some, "variants": [name], **plain}] if some else []
    return found


def measure_stack(campaign, name, framework, until):
    """None, or what was cut."""
    said = stack_said(campaign, name, min(until, time.monotonic() + STACK_LIMIT))
    campaign.packs_said.append((name, said["library_path"], said))
    device = device_of(campaign, said)
    asked, cuts = requests(operations(campaign, framework), framework, measured(campaign, said)), []
    try:
        while asked:
            if time.monotonic() >= until:
                cuts.append(f"{len(asked)} more jobs: deadline")
                break
            request = asked.pop(0)
            cuts.append(submit(campaign, "packs", name, {"devices": [device], **request}, until))
            if request.get("shared_import") and not answered(campaign, campaign.jobs[-1]["job"]):
                campaign.notes.append(f"{name}: no run that shares an import completed; each imports for itself")
                asked = [{key: value for key, value in one.items() if key != "shared_import"}
                         for one in [request, *asked]]
    finally:
        campaign.try_to(lambda: keep_logs(campaign, name))
    return "; ".join(cut for cut in cuts if cut) or None


def answered(campaign, job):
    """Whether any run of JOB said what it computed, or why it cannot."""
    return any(run["outcome"] in ("completed", "unsupported") for run in campaign.product.items(f"/v1/runs?job={job}"))


def keep_logs(campaign, name):
    """Of some runs that failed: why an operation cannot be computed is there."""
    failed = [run for run in campaign.runs() if run["stack"] == name
              and run["outcome"] not in ("completed", "unsupported", "cancelled", None)]
    for run in failed[:LOGS]:
        body = campaign.product.get(f"/v1/runs/{run['id']}/log")
        campaign.extras[f"log-{run['workload']}-{run['variant']}-{run['id']}.txt"] = (
            f"{run['outcome']}: {run['cause']}\n\n{body}")


def packs(campaign, until):
    """Each stack for itself: what is wrong with one costs no other."""
    frameworks, causes = add_stacks(campaign, time.monotonic() + (until - time.monotonic()) / 2)
    if not frameworks:
        raise Refused("; ".join(causes))
    start_again(campaign)
    left = list(frameworks.items())
    while left:
        name, framework = left.pop(0)
        limit = time.monotonic() + (until - time.monotonic()) * (SHARE if left else 1)
        try:
            cause = measure_stack(campaign, name, framework, limit)
        except Exception as error:  # the next stack has its turn
            cause = f"{type(error).__name__}: {error}"
        causes += [f"{name}: {cause}"] if cause else []
        campaign.save()
    return "; ".join(causes) or None
