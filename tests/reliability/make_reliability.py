#!/usr/bin/env python3
"""RELIABILITY.md from results/*.json: every figure is of a result, none is typed.

  make_reliability.py [FOLDER [FILE]]
"""
import json
import pathlib
import sys

from results import FOLDER, ROOT

HEAD = """# Reliability

What reprod was seen to withstand, with the command that showed it. `make reliability` renders this file from
`tests/reliability/results/`, where each campaign leaves what it found; a test compares the two. A figure is of
the day, commit and machine beside it; `+` behind a commit: with changes that were not committed. Nothing here
is a promise about what was not tried.
"""


def origin(result):
    machine = result["machine"]
    machine = ", ".join(f"{key} {value}" for key, value in machine.items()) if isinstance(machine, dict) else machine
    return f"`{result['command']}`, {result['date']}, commit {result['commit'][:13]}, on {machine}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(" --- " for _ in heads) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def number(value):
    return f"{value:,}"


def counts(found):
    return ", ".join(f"{name} {number(count)}" for name, count in found.items() if count)


def failures_of(result, key="failures"):
    return len(result[key])


def verdict(failed, good):
    return good if failed == 0 else f"**{number(failed)} failed**"


# Each section: the claim, its figure, and its text, from one result.

def kills(result):
    failed = failures_of(result)
    text = (
        f"{number(result['kills'])} SIGKILLs in {number(result['chapters'])} data folders, one of three of which began "
        f"with a database of an older schema, in {number(result['seconds'])} s (seed {result['seed']}). "
        f"{number(result['by_place'])} came at a chosen call: before it, after it, or in the middle of what it wrote "
        f"({counts(result['moments'])}), in {number(result['functions'])} different functions of reprod. The others "
        f"came from outside, at random times: {counts(result['from_outside'])}.\n\n"
        f"{number(result['jobs_acknowledged'])} jobs were acknowledged and {number(result['runs_remembered'])} finished "
        f"runs had been shown. Checked at the end of each folder: every acknowledged job is there, once; every item was "
        f"answered exactly as often as asked; a finished run is what it was; a green cell shows the bits of an "
        f"undisturbed run; `reprod fsck` finds nothing.\n\n"
        + table(["at work on", "kills"], [(name, number(count)) for name, count in result["phases"].items()])
        + "\nBy process and call: " + counts(result["calls"]) + ".\n")
    return ("Killed at any point, nothing acknowledged is lost, done twice, or done again",
            verdict(failed, f"{number(result['kills'])} kills, 0 losses"), text,
            "The power of the machine was not cut: what a disk acknowledges and forgets is not shown. The launcher is "
            "linked statically, and is killed only as a child that was just started. Kills inside of a system call "
            "are those the kernel allows.")


def outages(result):
    failed = failures_of(result)
    text = (
        f"{number(result['kills'])} SIGKILLs in {number(result['chapters'])} worlds, in {number(result['seconds'])} s (seed {result['seed']}); "
        f"{number(result['while_others_were_away'])} of them while somebody else was away. A world is a service with hosts by launch command "
        + ("and three nodes of a real Slurm on this machine" if result["slurm"] else "(no Slurm was installed)")
        + ", two receivers of webhooks, one of which fails half of the time, schedules, and a peer whose runs are pulled. Who was killed comes "
        "back as its supervisor would start it, some only after others were killed, too; nodes that Slurm itself drained are resumed. "
        f"{number(result['jobs'])} jobs were acknowledged and {number(result['runs'])} runs seen to end. At the end of each world everybody "
        "has come back, schedules are paused, and a job of each workload measures anew, since a run that was killed alone is a crash, which "
        "twenty runs heal. Deliveries that the failing receiver refused seven times or more would wait for minutes: it is made well, and they are "
        "resumed. The rest is only waited for. Then is checked: every item has its runs or says why not; every run has one outcome, which never changed, and cells count "
        "what is on record; controls vary, the others are reproducible, nothing dissents, and no event ever said otherwise, but for regressions "
        "where runs were killed; each event "
        "arrived, with one id and one text, and in order where the receiver is well; the peer's runs are there once; the service is ready, "
        "stops, and leaves no process and no job of Slurm; `reprod fsck` finds nothing.\n\n"
        + table(["killed", "times"], [(name, number(count)) for name, count in result["by_victim"].items()]))
    return ("Whoever is killed, together and in any order, all becomes consistent by itself",
            verdict(failed, f"{number(result['kills'])} kills of everybody, 0 inconsistent"), text,
            "Several machines; the network between them. munged. Disks that lose what they acknowledged. A Slurm whose controller has a backup.")


def faults(result):
    failed = failures_of(result)
    ends = sorted({end for found in result["calls"].values() for end in found})
    rows = [(call, *(number(found.get(end, 0)) for end in ends)) for call, found in result["calls"].items()]
    ends = ["aborted with words" if end == "out of memory" else end for end in ends]
    struck = result["faults"] - sum(found.get("not struck", 0) for found in result["calls"].values())
    how = "each call" if result["each"] == "all" else f"up to {result['each']} calls of each kind and error"
    text = (
        f"{number(struck)} faults, one a life of the service: {how} failed with ENOMEM, EMFILE, ENOSPC, EIO, "
        f"EAGAIN or what fits it, once or some times in turn (seed {result['seed']}; {number(result['seconds'])} s; in "
        f"{number(result['functions'])} functions). The service went on, said what was wrong and recovered; or it "
        f"ended with a documented exit code and words. Then an undisturbed life found and finished everything that "
        f"was acknowledged, with the bits of an undisturbed run, and fsck found nothing. How the lives ended:\n\n"
        + table(["call"] + ends, rows))
    return ("A call that fails is not a crash, a hang or a loss",
            verdict(failed, f"{number(struck)} faults, 0 losses"), text,
            "One fault a life; no two different ones. Allocations are a sample, since there are 160,000 in a life. "
            "Threads of the workers' OpenMP are not struck. \"Not struck\" is a call that came less often this time.")


def fuzz(result):
    failed = sum(not each["passed"] for each in result["targets"])
    rows = [(each["target"], number(each["runs"]), number(each["edges"]), each["seconds"],
             "passed" if each["passed"] else "**failed**") for each in result["targets"]]
    runs = sum(each["runs"] for each in result["targets"])
    text = (f"libFuzzer with AddressSanitizer and UBSan, {len(rows)} targets:\n\n"
            + table(["target", "inputs", "edges reached", "seconds", ""], rows))
    return ("No bytes from outside crash it", verdict(failed, f"{number(runs)} inputs, {len(rows)} targets, 0 findings"),
            text, "More than seconds or minutes for each target. Libraries are not instrumented. `/proc` is read through the "
            "system's own and is not fuzzed. NVML's answers are made up: its own library is not called.")


def tests(result):
    failed = sum(each["failed"] for each in result["files"])
    rows = [(f"`{each['file']}`", each["says"], each["passed"], each["failed"], each["skipped"])
            for each in result["files"]]
    text = table(["tests", "of", "passed", "failed", "skipped"], rows)
    return ("Under each fault it says what is wrong, and recovers",
            verdict(failed, f"{sum(each['passed'] for each in result['files'])} tests"), text,
            "Any fault for longer than seconds.")


def coverage(result):
    core = [each for each in result["files"] if each["file"] in result.get("core", [each["file"]])]
    others = [each for each in result["files"] if each not in core]

    def total(files):
        return sum(each["taken"] for each in files), sum(each["branches"] for each in files)

    def rows(files):
        return [(f"`{each['file']}`", number(each["branches"]), number(each["taken"]), len(each.get("excluded", [])))
                for each in files]
    heads = ["file", "branches", "taken", "excluded, with a reason"]
    taken, branches = total(core)
    text = "What turns measurements into verdicts:\n\n" + table(heads, rows(core))
    if others:
        text += ("\nBeyond that, {} of {} branches:\n\n".format(*map(number, total(others)))
                 + table(heads, rows(others)))
    return ("What judges was taken down every branch by a unit test", f"{number(taken)} of {number(branches)} branches",
            text, "A branch that is taken is not a result that is checked: `make mutate` asks that.")


def damage(result):
    """Another campaign's result: its own words, and a table of what it lists."""
    known = {"date", "commit", "machine", "command"}
    text = ""
    for key, value in result.items():
        if key in known:
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict):
            heads = list(value[0])
            text += f"\n{key}:\n\n" + table(heads, [[row.get(head, "") for head in heads] for row in value])
        elif isinstance(value, dict):
            text += f"\n{key}: {counts_or_text(value)}\n"
        else:
            text += f"\n{key}: {value}\n"
    figure = result.get("figure") or counts_or_text({k: v for k, v in result.items() if isinstance(v, int)})
    return ("Damage of the database is noticed", figure, text.lstrip("\n"), "What the campaign lists, and no more.")


def alone(result):
    first, last, jobs, pages = result["looks"][0], result["looks"][-1], result["jobs"], result.get("pages", [])
    heads = ["minute", "weakest bound", "cells below the target", "oldest run", "device time", "share"]
    rows = [(look["minute"], f"< {look['weakest_bound_percent']} %", f"{look['below_target']} of {look['cells']}",
             f"{look['oldest_seconds']} s", f"{look['spent_seconds']} s", f"{look['share_percent']} %")
            for look in result["looks"]]
    text = (f"A service measured {', '.join(result['workloads'])} with three runs each, and was left alone for "
            f"{result['minutes']} real minutes with background evidence: at most {result['budget_percent']} % of the device, "
            f"looking every {result['every_seconds']} s, until a bound is below {result['target_percent']} %.\n\n"
            + table(heads, rows)
            + f"\n{len(jobs)} jobs were requested meanwhile. Before the first run of one, at most "
            f"{max(job['runs_before'] for job in jobs)} other run began; it began after "
            f"{max(job['waited_ms'] for job in jobs)} ms at most.\n"
            + (f"\nA browser had the page open all the time and showed the same: the weakest bound < "
               f"{pages[0]['weakest_bound_percent']:g} % after the first minute and < {pages[-1]['weakest_bound_percent']:g} % "
               f"at the end, where it said “{pages[-1]['background']}”\n" if pages else ""))
    return ("Left alone, bounds fall within the budget, and whoever asks comes first",
            verdict(len(result["failures"]), f"{first['weakest_bound_percent']} % to {last['weakest_bound_percent']} % "
                                             f"in {result['minutes']} minutes"),
            text, "Days. A whole night is simulated (`tests/unit/jobs/test_background.c`).")


def large(result):
    checks = result["checks"]
    rows = [(check["check"], check["seconds"], check.get("processor_seconds", ""), check.get("megabytes", ""),
             number(check["cells_recomputed"]) if "cells_recomputed" in check else "", check["load"]) for check in checks]
    text = (f"A database of {number(result['runs'])} runs in {number(result['cells'])} cells, {number(result['megabytes'])} "
            "MB, made by the functions that store runs; `reprod fsck`, in this order, and the look of a service that runs "
            "nothing:\n\n"
            + table(["check", "seconds", "of the processors", "MB of memory at most", "cells summed up from their runs",
                     "load of the machine"], rows)
            + "\nWhere the load is above the number of processors, others had most of them: the seconds of the processors tell.\n")
    return ("A large database is checked in bounded time", verdict(
        failures_of(result), f"{number(result['runs'])} runs: {checks[0]['processor_seconds']} s of processors, again "
        f"{checks[1]['processor_seconds']} s"), text,
        "Files that are not in memory: the database was just written. Runs with logs, sensors and traces. Folded runs.")


def fleets(result):
    kinds = result["kinds"]
    rows = [(each["kind"], number(each["one_wrong"]), number(each["controls"]), number(each["devices"]),
             number(each["runs"]), number(each["services"]), number(each["pages"]), f"{number(each['seconds'])} s",
             number(each["failed"])) for each in kinds]
    of = kinds[0]["of"]
    text = (
        f"Fleets of eight devices on one, two, four or eight hosts, drawn from seed {result['seed']}; each is an environment of its "
        f"own, and some share a service. In most, one device is wrong: in all cases, in one of them, or with another "
        f"digest in each run. Beside them are fleets without a wrong device, and with half against half. The agents "
        f"of commands and simulated devices are the real ones, and each of their runs is a process; the command is a C "
        f"program, and the simulated device flips a low bit of what a kernel writes. After the first survey it was checked "
        f"of each fleet: verdict, camps, states and the named of every cell; each device and its screening; findings; all "
        f"events from the first on; metrics; `view=devices`; the text of cells; of some, the page in a browser; `reprod fsck`. The "
        f"wrong device is named in its cases and nobody else anywhere, the seven others are reproducible, and no cell of two "
        f"devices or more was ever said to vary.\n\n"
        + table(["kind", "one wrong", "controls", "devices", "runs", "services", "pages", "took", "failed"], rows)
        + f"\nOf {number(sum(each['services'] for each in kinds))} listeners, "
          f"{number(sum(each['streams_begun_anew'] for each in kinds))} were left behind by a busy machine and told to "
          f"begin anew, as documented; there the events were read from the database. Of the {kinds[0]['kind']}: " + counts_or_text(of) + ".\n")
    figure = ", ".join(f"{number(each['one_wrong'])} fleets of {each['kind']}" for each in kinds)
    return ("One wrong device of eight is named by the first survey, and no healthy one ever",
            verdict(result["failed"], f"{figure}, 0 failures"), text,
            "Real GPUs. Devices that are wrong rarely or turn wrong later (`tests/unit/evidence/test_dissent.c` simulates them). "
            "Where the first run of a cell is the wrong device's and differs with itself, the cell is said to vary until a "
            "second device is measured.")


def counts_or_text(found):
    return ", ".join(f"{name} {number(value) if isinstance(value, int) else value}" for name, value in found.items())


def scale(result):
    found = result["found"]

    def ingested(name):
        of = found[name]
        busy = of.get("latencies", {})
        return (name, number(of["runs"]), of["seconds"], number(of["runs_a_second"]), number(of["results_a_second"]),
                of["processor_us_a_run"], of["loop_us_a_run"], of["agents_us_a_run"], busy.get("p50_ms", ""), busy.get("p99_ms", ""))

    jobs = [name for name in found if name.startswith(("a job of", "the same"))]
    asked = ["a steady rate", *(name for name in jobs if "latencies" in found[name])]
    starts = [(name, found[name]["listening_s"], found[name]["online_s"], found[name]["ready_s"], found[name]["processor_s"],
               found[name]["rss_mb"]) for name in found if "start" in name]
    paths = [(f"`GET {path}`", of["p50_ms"], of["p99_ms"], *(found[job]["latencies"]["paths"][path]["p99_ms"] for job in asked))
             for path, of in found["idle"]["latencies"]["paths"].items()]
    stores = [(name, number(of["runs"]), number(of["runs_a_second"]), number(of["results_a_second"]), of["processor_us_a_run"])
              for name, of in found["the store"].items()]
    goals = [(name, number(of["measured"]) if of["measured"] >= 1000 else of["measured"], number(of["goal"]), "yes" if of["met"] else "no")
             for name, of in result["goals"].items()]
    text = (
        f"{number(result['hosts'])} hosts with {number(result['devices'])} devices, one service, agents that play results of real "
        f"runs from one process; a load of {result['load'][0]} before and {result['load'][1]} at the end, {number(result['seconds'])} s. "
        "A result is what a worker says of one iteration; a run has ten, and is one process with its intent on record before it begins. "
        f"{number(found['accounts']['runs_stored'])} runs are stored, each once; {number(found['accounts']['runs_lost'])} that a SIGKILL cut off are "
        "said to be lost and were made again; the database has "
        f"{number(found['database']['megabytes'])} MB, the service {number(found['idle']['rss_mb'])} MB of memory, "
        f"{number(found['idle']['most_mb'])} MB at most. A job of all devices is posted in "
        f"{number(found['posting a job of all devices']['ms'])} ms.\n\n"
        + table(["", "measured", "wanted", "reached"], goals) + "\n"
        + table(["end to end", "runs", "seconds", "runs/s", "results/s", "µs of processors a run", "of these the loop",
                 "agents, beside", "API p50, ms", "API p99, ms"], [ingested(name) for name in ["the first survey", *jobs]]) + "\n"
        + table(["the store alone", "runs", "runs/s", "results/s", "µs of processors a run"], stores) + "\n"
        + table(["latency, ms", "idle p50", "idle p99", *(f"p99 during {job}" for job in asked)], paths) + "\n"
        + table(["start", "listens after, s", "all hosts online", "ready", "processor, s", "MB"], starts)
        + "\nOn two processors the agents, the service and who measures share them; the figures are of one machine on one day. While the "
        f"steady rate was measured, other machines of the same host took {found['a steady rate']['stolen_percent']} % of the processors.\n")
    return ("Thousands of devices are one service's, and each of their results is stored once", verdict(
        failures_of(result), f"{number(result['devices'])} devices, {number(found['accounts']['runs_stored'])} runs, 0 lost or doubled"), text,
        "A network between service and agents. Real workers, which take longer than their results. Traces and logs.")


SECTIONS = [("kills", kills), ("outages", outages), ("faults", faults), ("tests", tests), ("damage", damage), ("coverage", coverage),
            ("fuzz", fuzz), ("alone", alone), ("large", large), ("fleets", fleets),
            ("scale", scale)]


def render(folder=FOLDER):
    summary, body = [], ""
    found = [(path, section) for name, section in SECTIONS
             for path in [pathlib.Path(folder) / f"{name}.json", *sorted(pathlib.Path(folder).glob(f"{name}-*.json"))]
             if path.exists()]
    for path, section in found:
        result = json.loads(path.read_text())
        claim, figure, text, missing = section(result)
        earlier = f" (an earlier campaign, of {result['commit'][:13]})" if "-" in path.stem else ""
        claim += earlier
        summary.append((claim, figure, f"`{result['command']}`", result["date"]))
        body += f"\n## {claim}\n\n{origin(result)}.\n\n{text}\nNot tried: {missing}\n"
        for failure in result.get("failures", []):
            body += f"\n```\n{failure if isinstance(failure, str) else json.dumps(failure, indent=1)}\n```\n"
    return HEAD + "\n" + table(["claim", "seen", "by", "on"], summary) + body


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "RELIABILITY.md"
    target.write_text(render(folder))


if __name__ == "__main__":
    main()
