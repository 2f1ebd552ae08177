"""Every algorithm of cuDNN's convolutions: what is claimed, what was observed, how long it takes,
in each dtype and at two shapes.  They are many: they have a stage of their own, which takes what
the others leave.
"""
import judge
import stages
import timing

PREFIX = "cudnn_conv_"
RUNS = 3  # of each case but the first, which has those of any survey
TIMED = 6  # iterations


def is_algorithm(record):
    return record["workload"].startswith(PREFIX)


def divide(records):
    """(the others, the algorithms)"""
    return ([record for record in records if not is_algorithm(record)],
            [record for record in records if is_algorithm(record)])


def with_controls(records, algorithms):
    """RECORDS, and the controls of ALGORITHMS that are kernels of ours."""
    return records + [record for record in algorithms if record["variant"] == "unordered"]


def shapes(entry):
    """The sizes that are measured: all but the one for checks."""
    return [size["name"] for size in reversed(entry["sizes"])][:-1] or [entry["sizes"][0]["name"]]


def further_cases(session, records, sizes):
    """[(record, dtype, size)] without each record's first pair; the second ones of all come first."""
    found = []
    for number in range(1, 16):
        for record in records:
            entry = session.catalogue[record["workload"]]
            pairs = [(dtype, size) for dtype in entry["dtypes"] for size in sizes(entry)
                     if dtype == entry["dtypes"][0] or not record["variant"].endswith("_tf32")]
            done = [(case["dtype"], case["size"]) for case in record["cases"]]
            found += [(record, *pair) for pair in pairs[number:number + 1] if pair not in done]
    return found


def measure(session, records, until, sizes=shapes):
    for record in records:  # the CPU has neither these workloads nor their bits
        record["inputs"], record["bits"] = "no twin", "not promised"
    stages.check_reference(session, [record for record in records if not record["check"]], until)
    stages.survey(session, records, until, sizes=lambda entry: sizes(entry)[:1])
    measure_cases(session, further_cases(session, records, sizes), until)
    measure_times(session, records, until)


def measure_cases(session, due, until):
    def run(item):
        record, dtype, size = item
        case = {"dtype": dtype, "size": size, "iterations": stages.ITERATIONS, "check": None}
        if dtype != session.catalogue[record["workload"]]["dtypes"][0]:
            case["check"] = stages.check_one(session, record, dtype)
        done = stages.survey_at(session, record, size, RUNS, until, dtype)
        case.update(judge.judge_runs(done, RUNS))
        record["cases"].append(case)
        if case["not_run"] or not done:
            late.append(item)

    late = []
    late += session.each(run, due, until)
    if late:
        session.skip("algorithms: " + ", ".join(
            f"{record['workload']} {record['variant']} {dtype} {size}"
            for record, dtype, size in late), "deadline")


def measure_times(session, records, until):
    """The median iteration of a process that is alone on the device."""
    def run(item):
        record, case = item
        done = session.run(record, case["size"], TIMED, dtype=case["dtype"])
        if judge.outcome(done)[0] == "completed":
            case["ms"] = timing.milliseconds(done)
        else:
            late.append(item)

    late = []
    due = [(record, case) for record in records for case in cases_of(record)
           if case["completed"] and "ms" not in case]
    late += session.each(run, due, until, jobs=1)
    if late:
        session.skip("time of algorithms: " + ", ".join(
            f"{record['workload']} {record['variant']} {case['dtype']} {case['size']}"
            for record, case in late), "deadline, or the run did not complete")


def cases_of(record):
    """All cases of a record, the first with the check that the record has."""
    if not record["survey"]:
        return record["cases"]
    record["survey"].setdefault("check", record["check"])
    return [record["survey"], *record["cases"]]


# For the report

HEADER = ("workload", "variant", "dtype", "size", "claim", "digests in runs × iterations",
          "bits", "a control varied", "error ÷ bound", "ms", "what computed")


def varied(case):
    return len(case["digests"]) > 1


def beside(records, record, case):
    """[(record, case)] of all that computed the same thing, CASE among them."""
    return [(other, same) for other in records if other["workload"] == record["workload"]
            for same in cases_of(other)
            if (same["dtype"], same["size"]) == (case["dtype"], case["size"])]


def control_varied(records, record, case):
    if not case["completed"]:
        return "–"
    return "yes" if any(other["control"] and varied(same)
                        for other, same in beside(records, record, case)) else "no"


def class_of_bits(records, record, case):
    """A, B, …: those of one letter have the same bits."""
    if len(case["digests"]) != 1:
        return "–"
    classes = list(dict.fromkeys(same["digests"][0] for _, same in beside(records, record, case)
                                 if len(same["digests"]) == 1))
    return chr(ord("A") + classes.index(case["digests"][0]))


def observed(case):
    if case["unsupported"]:
        return "unsupported"
    if not case["completed"]:
        return "; ".join(case["failures"]) or "not run"
    return f"{len(case['digests'])} in {case['completed']} × {case['iterations']}"


def error(case):
    check = case.get("check") or {}
    worst = check.get("max_error_to_bound")
    return f"{worst:.3g}" if worst is not None else check.get("outcome", "–")


def rows(records):
    """What HEADER is over; records of other workloads have none."""
    return [(record["workload"], record["variant"] + (" (control)" if record["control"] else ""),
             case["dtype"], case["size"], case["claim"] or record["claim"] or "–", observed(case),
             class_of_bits(records, record, case), control_varied(records, record, case), error(case),
             f"{case['ms']:.3g}" if case.get("ms") is not None else "–",
             case["unsupported"] or "; ".join(case["algorithms"]) or "–")
            for record in records if is_algorithm(record) for case in cases_of(record)]
