"""A worker that says always the same whenever the same jobs run again: what differs between runs
follows from how many there were, which it counts in the folder STATE.

Its workloads are told apart by what they show: a verdict, a place where runs diverge, an event that
breaks the protocol."""
import base64
import json
import os
import pathlib
import struct
import sys
import zlib

NOTHING = "0" * 32
DEVICE = "cpu:planned"
START, PROBES, ITERATION, TENSOR, END = "start", "probes", "iteration", "tensor", "end"
# Which event is changed in what, a variant each; None takes a member away.
WRONG = [
    (START, {"v": None}), (START, {"seed": "x"}), (START, {"claim": "perhaps"}),
    (START, {"libraries": {}}), (START, {"libraries": [{"path": 1}]}), (START, {"pid": "1"}),
    (START, {"environment": {"backend": "cpu", "model": "m"}}), (START, {"threads": 7}),
    (START, {"environment": {"backend": "cpu", "model": "m", "worker_build": "b", "x": 1.5}}),
    (START, {"input_digest": "x"}), (START, {"algorithm": "a" * 300}), (START, {"size": "other"}),
    (START, {"circumstances": {"contention": 1}}), (START, {"circumstances": []}),
    (PROBES, {"i": None}), (PROBES, {"i": -1}), (PROBES, {"step": -1}), (PROBES, {"records": {}}),
    (PROBES, {"records": [["a", NOTHING]]}), (PROBES, {"records": [["", NOTHING, NOTHING]]}),
    (PROBES, {"records": [["a" * 129, NOTHING, NOTHING]]}),
    (PROBES, {"records": [["a\n", NOTHING, NOTHING]]}), (PROBES, {"event": "probe", "name": 7}),
    (ITERATION, {"i": 1}), (ITERATION, {"digest": NOTHING[1:]}), (ITERATION, {"ms": -1}),
    (ITERATION, {"ms": "1"}), (ITERATION, {"weight_sum": None}), (ITERATION, {"loss": 1}),
    (ITERATION, {"algorithm": "another"}), (TENSOR, {}),
    (END, {"outcome": "finished"}), (END, {"outcome": "unsupported", "cause": None}),
    (END, {"iterations": "1"}), (END, {"elements": -1}), (END, {"bytes_hashed": 0}),
    (END, {"probes_dropped": -1}), (END, {"device": None}), (END, {"libraries": []}),
    (END, {"outcome": "infra", "cause": "a\x07bell", "elements": 0, "bytes_hashed": 0}),
]
PLACES = ("tensor", "again", "apart", "outside", "silent", "unprobed", "uncaptured", "calm",
          "shapes", "cut", "long")
VERDICTS = ("pair", "still", "sometimes", "heals", "late")


def digest(*parts):
    return "".join(f"{zlib.crc32(repr(parts).encode(), n):08x}" for n in range(4))


def count(name):
    """How many runs this was asked for, with this one."""
    path = pathlib.Path(os.environ["STATE"], name)
    number = 1 + (int(path.read_text()) if path.exists() else 0)
    path.write_text(str(number))
    return number


def catalogue():
    def entry(name, variants, **more):
        return {"workload": name, "version": 1, "backend": "cpu", "title": name, "summary": "s",
                "variants": variants, "sizes": [{"name": "small", "description": "d"}],
                "dtypes": ["float32"], "weight_sum": "sum", "loss": "loss", "no_control": None,
                "references": [], **more}

    def variant(name, control=False, **more):
        return {"name": name, "summary": "s", "models": "m", "algorithm": "planned", "claim": None,
                "control": control, **more}
    for name in VERDICTS:
        yield entry(name, [variant("unordered", True), variant("ordered"),
                           variant("copied", equals="ordered")])
    for name, variants in (("places", PLACES), ("malformed", [f"w{i}" for i in range(len(WRONG))])):
        yield entry(name, [variant(each) for each in variants], no_control="nothing races")


def tensor(place, role, index, dtype, shape, content):
    yield {"event": TENSOR, "i": 0, "step": 1, "place": place, "role": role, "index": index,
           "name": role, "dtype": dtype, "shape": shape, "bytes_total": len(content),
           "captured_bytes": len(content), "offset": 0,
           "data": base64.b64encode(content).decode()}


def captured(plan, number):
    """What the place "mix" read and wrote: every eighth number differs, one changes its sign."""
    numbers = [float(i) + (number if plan != "calm" and i % 8 == 3 else 0) for i in range(64)]
    numbers[11] *= -1 if number % 2 else 1
    shape = [8, 8] if plan == "shapes" and number % 2 else [64]
    yield from tensor("mix", "in", 0, "float32", [64], struct.pack("<64f", *range(64)))
    yield from tensor("mix", "out", 0, "float32", shape, struct.pack("<64f", *numbers))
    yield from tensor("mix", "out", 1, "int32", [4], struct.pack("<4i", 1, -2, number, 4))
    yield from tensor("mix", "out", 2, "opaque", [3], bytes([1, number % 256, 3]))


def records(plan, number):
    """Of two steps, each with the places scale, mix and loss."""
    for step in range(2):
        moved = number if step == 1 else 0
        place = "mix" if plan != "long" else "m" * 128
        scaled = digest("scale", step, moved if plan == "outside" else 0)
        agrees = plan in ("unprobed", "apart", "outside", "again")
        mixed = digest("mix", step, 0 if agrees else moved)
        yield step, "scale", NOTHING if step == 0 else digest("mixed", step), digest("scale", step)
        yield step, place, scaled, mixed
        if plan == "again":
            yield step, place, scaled, digest("again", step, moved)
        if plan == "apart" and moved % 2:
            yield step, "detour", mixed, mixed
        yield step, "loss", digest(mixed), digest("loss", mixed, moved if plan == "again" else 0)


def result(workload, variant, number, i):
    """The digest of an iteration, and how the run ends."""
    if workload == "places":
        return digest(variant, number if variant not in ("calm", "apart") else 0), "completed", None
    if workload == "sometimes" and variant == "ordered" and number == 2:
        return None, "unsupported", "not the second time"
    if workload == "heals" and variant == "ordered" and number == 1:
        return None, "out_of_memory", "no room the first time"
    varies = variant == "unordered" and workload in ("pair", "sometimes", "heals")
    varies |= workload == "late" and i == number
    departs = workload == "still" and variant == "copied"
    return digest(workload, departs, number if varies else 0), "completed", None


def run(asked, emit):
    workload, variant, wanted = asked["workload"], asked["variant"], int(asked["iterations"])
    number = count(f"{workload}-{variant}")
    event, change = WRONG[int(variant[1:])] if workload == "malformed" else (None, {})

    def say(kind, **members):
        members = {"event": kind, **members, **(change if kind == event else {})}
        emit({name: value for name, value in members.items()
              if value is not None or name not in change})

    given = {name: asked[option] for option, name in (
        ("memory-poison", "memory_poison"), ("allocation-jitter", "allocation_jitter"))
        if option in asked}
    if "contention" in asked:
        given["contention"] = int(asked["contention"])
    say(START, v=1, pid=1, workload=workload, version=1, variant=variant, size=asked["size"],
        dtype=asked["dtype"], seed=asked["seed"], iterations=wanted, threads=1, backend="cpu",
        device=DEVICE, algorithm="planned", claim=None, input_digest=digest("inputs"),
        environment={"backend": "cpu", "model": "planned", "worker_build": "1", "threads": 1},
        libraries=[{"path": "/lib/planned.so", "build_id": None}],
        **({"circumstances": given} if given else {}))
    outcome, cause = result(workload, variant, number, 0)[1:]
    captures = "capture" in asked and variant not in ("uncaptured", "cut")
    for step, *record in records(variant, number if not captures or variant != "calm" else 0):
        if workload == "malformed" or "probes" in asked and variant != "silent" or (
                captures and asked["capture"] == f"0:{step}:{record[0]}"):
            say(PROBES, i=0, step=step, records=[record])
    if captures or event == TENSOR:
        for each in captured(variant, number):
            say(**{"kind": each.pop("event"), **each})
    done = wanted if outcome == "completed" else 0
    for i in range(done):
        say(ITERATION, i=i, digest=result(workload, variant, number, i)[0],
            weight_sum=struct.pack(">d", number / 8).hex(), loss=struct.pack(">d", i / 4).hex(),
            ms=0.25 * (number + i), algorithm="planned")
    if variant == "cut" and number % 2:
        sys.exit(3)
    say(END, outcome=outcome, cause=cause, iterations=done, elements=8 * bool(done),
        bytes_hashed=32 * done, device=DEVICE, input_digest=digest("inputs"),
        **({"probes_dropped": 3} if variant == "apart" else {}))


def main(command, *options):
    asked = {name[2:]: value for name, value in zip(options[::2], options[1::2])}
    if command == "--catalogue":
        for entry in catalogue():
            print(json.dumps(entry))
    elif command == "--probe":
        print(json.dumps({"v": 1, "backend": "cpu", "worker_build": "1", "versions": {},
                          "devices": [{"id": DEVICE, "model": "planned", "attributes": {}}],
                          "cause": None, "problems": {}}))
    else:
        with open(int(os.environ["REPROD_RESULT_FD"]), "w", encoding="utf-8") as events:
            run(asked, lambda event: print(json.dumps(event), file=events))


if __name__ == "__main__":
    main(*sys.argv[1:])
