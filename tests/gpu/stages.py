"""What is computed on the device: each stage fills the records of the session."""
import time

import judge
from session import small_size, sizes_from_large

ITERATIONS = 5


def names(records):
    return ", ".join(f"{record['workload']} {record['variant']}" for record in records)


# Against the float64 reference, and the instruments against the host's

def check_one(session, record, dtype=None):
    """judge.judge_check of a variant; None where the deadline came first."""
    answer = session.ask([
        session.worker, "--check", "--workload", record["workload"], "--variant",
        record["variant"], "--size", small_size(session.catalogue[record["workload"]]),
        "--device", session.device, *(["--dtype", dtype] if dtype else [])])
    if answer.cut:
        return None
    return judge.judge_check(answer)


def check_reference(session, records, until):
    def check(record):
        record["check"] = check_one(session, record)
        if not record["check"]:
            late.append(record)

    late = []
    late += session.each(check, [record for record in records if not record["check"]], until)
    if late:
        session.skip(f"check: {names(late)}", "deadline")


# Against the CPU worker, at the small size

def promised(session, record):
    """Whether both compute our own code, with one text of its algorithm: the CPU's variant of that
    name has its bits.  A library promises none."""
    entry = session.cpu_catalogue.get(record["workload"], {"variants": []})
    return not record["control"] and record["subject"] == "model" and any(
        variant["name"] == record["variant"] and variant["algorithm"] == record["algorithm"]
        and variant["subject"] == "model" for variant in entry["variants"])


def one_digest(run):
    """(digest of the outputs, None), or (None, why there is none)."""
    name, cause = judge.outcome(run)
    if name != "completed":
        return None, f"{name}: {cause}"
    return judge.digests([run])[0], None


def input_digest(run):
    return run.of_kind("start")[0]["input_digest"]


def against_cpu(session, record, size, threads=2):
    """{"inputs", "bits"} as in a record; {} where the deadline came first."""
    is_promised = promised(session, record)
    cpu_variant = record["variant"] if is_promised else \
        session.cpu_catalogue[record["workload"]]["variants"][0]["name"]
    run = session.run(record, size, 1)
    cpu = session.run_on_cpu(record, size, cpu_variant, threads)
    if run.cut or cpu.cut or cpu.timed_out:
        return {}
    digest, cause = one_digest(run)
    cpu_digest, cpu_cause = one_digest(cpu)
    if digest is None:
        if judge.outcome(run)[0] == "unsupported":
            return {"unsupported": True}
        return {"inputs": f"at size {size}, {cause}", "bits": "not promised"}
    if cpu_digest is None:
        return {"inputs": f"on the CPU, {cpu_cause}", "bits": "not promised"}
    found = {"inputs": "equal", "bits": "not promised"}
    if input_digest(run) != input_digest(cpu):
        found["inputs"] = (f"input digest {input_digest(run)} at size {size}, "
                           f"{input_digest(cpu)} on the CPU")
    if is_promised:
        found["bits"] = "equal" if digest == cpu_digest else \
            f"digest {digest} at size {size}, {cpu_digest} on the CPU with the same algorithm"
    return found


def compare_small(session, records, until):
    def compare(record):
        found = against_cpu(session, record, small_size(session.catalogue[record["workload"]]))
        record["inputs"], record["bits"] = found.get("inputs"), found.get("bits")
        if not found:
            late.append(record)

    late = []
    known = [record for record in records
             if record["workload"] in session.cpu_catalogue and not record["inputs"]]
    for record in records:
        if record["workload"] not in session.cpu_catalogue:
            session.skip(f"comparison with the CPU: {names([record])}", "the CPU has no such workload")
    late += session.each(compare, known, until)
    if late:
        session.skip(f"comparison with the CPU: {names(late)}", "deadline")


def beside_cpu(survey, cpu):
    """"equal", or how the runs of a survey differ from the one of the CPU."""
    digest, cause = one_digest(cpu)
    if digest is None:
        return f"at size {survey['size']} on the CPU, {cause}"
    if survey["input_digests"] != [input_digest(cpu)]:
        return (f"input digest {', '.join(survey['input_digests'])} at size {survey['size']}, "
                f"{input_digest(cpu)} on the CPU")
    if survey["digests"] != [digest]:
        return (f"digest {', '.join(survey['digests'])} at size {survey['size']}, {digest} on the CPU "
                "with the same algorithm")
    return "equal"


def compare_large(session, records, until, threads):
    """The same bits where blocks are many; the inputs too.  What the device gave is known from the
    survey."""
    def compare(record):
        cpu = session.run_on_cpu(record, record["survey"]["size"], record["variant"], each)
        if cpu.cut or cpu.timed_out:
            late.append(record)
        else:
            record["large_bits"] = beside_cpu(record["survey"], cpu)

    late, jobs = [], max(1, threads // 4)
    each = max(1, threads // jobs)
    due = [record for record in records if promised(session, record) and record["survey"]
           and not record["large_bits"] and len(record["survey"]["digests"]) == 1
           and record["survey"]["size"] != small_size(session.catalogue[record["workload"]])]
    late += session.each(compare, due, until, jobs=jobs)
    if late:
        session.skip(f"bits at the size of the survey, against the CPU: {names(late)}",
                     "deadline, or longer than a minute on the CPU")


# Fresh processes, many iterations

def survey_at(session, record, size, count, until, dtype=None):
    """COUNT runs, or fewer: one says that it cannot be, and time ends."""
    done = []
    for number in range(count):
        if time.monotonic() >= until:
            break
        run = session.run(record, size, ITERATIONS, seed=number + 1, dtype=dtype)
        done.append(run)
        if judge.outcome(run)[0] in ("unsupported", "out_of_memory", "timeout"):
            break
    return done


def survey(session, records, until, sizes=sizes_from_large):
    def measure(record):
        for size in sizes(session.catalogue[record["workload"]]):
            done = survey_at(session, record, size, session.runs, until)
            if not any(judge.outcome(run)[0] == "out_of_memory" for run in done):
                break
            record["notes"].append(f"size {size}: {judge.outcome(done[-1])[1]}")
        found = judge.judge_runs(done, session.runs)
        record["survey"] = {"size": size, "iterations": ITERATIONS, **found,
                            "dtype": session.catalogue[record["workload"]]["dtypes"][0]}
        record["claim"] = found["claim"] or record["claim"]
        if found["not_run"]:
            late.append(record)

    late = []
    late += session.each(measure, [record for record in records if not record["survey"]], until)
    if late:
        session.skip(f"survey: {names(late)}", "deadline")
