"""What the stored runs of a campaign say about time.  Pure: from what the service answers."""
import datetime

from timing import spread


def moment(text):
    """Milliseconds."""
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() * 1000


def completed(runs):
    """In the order they were started.  Those under load say nothing about times."""
    good = [run for run in runs if run["outcome"] == "completed" and not run["circumstances"]]
    return sorted(good, key=lambda run: run["started_at"])


def pairs(runs):
    """Runs that came one after the other, in one job and on one device."""
    groups = {}
    for run in completed(runs):
        groups.setdefault((run["job"], run["device"]), []).append(run)
    return [pair for group in groups.values() for pair in zip(group, group[1:])]


def turnaround(runs):
    """From the start of a run to that of the next, which is what a run costs in a survey."""
    return spread([moment(after["started_at"]) - moment(before["started_at"])
                   for before, after in pairs(runs)])


def gap(runs):
    """From the end of a run to the start of the next."""
    return spread([moment(after["started_at"]) - moment(before["finished_at"])
                   for before, after in pairs(runs)])


def beside_computing(runs):
    """What a run takes in addition to its iterations: the process, CUDA, inputs, digests of them."""
    return spread([run["process"]["wall_milliseconds"]
                   - run["milliseconds"]["median"] * run["iterations"] for run in completed(runs)
                   if run["milliseconds"]["median"] is not None])


def subject_of(variant):
    """Whose code it is: "cuDNN", or "model"."""
    return variant["subject_name"] or variant["subject"]


def costs(matrix):
    """[{"workload","variant","subject","against","size","median","low","high"}], the dearest first."""
    found = [{"workload": variant["workload"], "variant": variant["variant"],
              "subject": subject_of(variant), "size": variant["size"], **variant["cost"]}
             for variant in matrix.get("variants", []) if variant.get("cost")]
    return sorted(found, key=lambda cost: -cost["median"])


def agreement(matrices):
    """What is reproducible with several stacks, in the same case: does it have the same bits?
    {subject: {"equal": number, "different": [{"workload","variant","size","digests":{stack: digest}}]}}"""
    seen, found = {}, {}
    for stack, matrix in matrices.items():
        for variant in matrix.get("variants", []):
            if variant["verdict"] == "reproducible":
                case = (subject_of(variant), *(variant[key] for key in (
                    "workload", "variant", "version", "size", "dtype", "seed")))
                seen.setdefault(case, {})[stack] = variant["digest"]
    for (subject, workload, variant, _, size, *_), digests in sorted(seen.items()):
        if len(digests) > 1:
            one = found.setdefault(subject, {"equal": 0, "different": []})
            if len(set(digests.values())) == 1:
                one["equal"] += 1
            else:
                one["different"].append({"workload": workload, "variant": variant, "size": size,
                                         "digests": digests})
    return found


def operations(matrix):
    """[{"workload","variant","verdict","reason","runs","digests","digest"}] of a framework's, by name."""
    found = [{"workload": variant["workload"], "variant": variant["variant"], "control": variant["is_control"],
              "verdict": variant["verdict"], "reason": variant["reason"], "runs": variant["runs"],
              "digests": variant["distinct_digests"], "digest": variant["digest"]}
             for variant in matrix.get("variants", []) if variant["subject"] == "framework"]
    return sorted(found, key=lambda one: one["workload"])


def failures(runs):
    """[(workload, variant, outcome, cause, count)] of what did not complete."""
    found = {}
    for run in runs:
        if run["outcome"] not in ("completed", "cancelled", None):
            key = (run["workload"], run["variant"], run["outcome"], run["cause"] or "")
            found[key] = found.get(key, 0) + 1
    return [(*key, count) for key, count in sorted(found.items())]


def build(runs, matrices, probes_ms):
    """MATRICES: {stack: matrix}; PROBES_MS: how long the worker took to say what is there."""
    return {"runs": len(runs), "completed": len([run for run in runs if run["outcome"] == "completed"]),
            "turnaround_ms": turnaround(runs), "gap_ms": gap(runs),
            "beside_computing_ms": beside_computing(runs), "probe_ms": spread(probes_ms),
            "agreement": agreement(matrices),
            "operations": {stack: operations(matrix) for stack, matrix in matrices.items() if operations(matrix)},
            "costs": {stack: costs(matrix) for stack, matrix in matrices.items()}}
