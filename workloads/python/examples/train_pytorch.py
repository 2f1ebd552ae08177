"""Small trainings in PyTorch, on a GPU or a CPU, with what PyTorch offers against their
non-determinism: losses, sums of weights and digests of fresh processes side by side.

Trainings (--training; each is small, and sums up in places that are known for it):

    resnet      convolutions, batch normalisation and residual additions
    scatter     indexing, index_put_, index_add, scatter_add and embedding
    upsample    bilinear interpolation between convolutions
    ctc         the CTC loss

Variants:

    default                    PyTorch as it comes
    cudnn_deterministic        torch.backends.cudnn.deterministic, and no benchmark
    deterministic_algorithms   torch.use_deterministic_algorithms(True), with
                               CUBLAS_WORKSPACE_CONFIG=:4096:8 in the environment

It is a workload of reprod (README.md has the configuration), or runs by hand:

    REPROD_VARIANT=default REPROD_TRACE=a python3 train_pytorch.py --training scatter
    python3 train_pytorch.py --table --json table.json

--table needs nothing but this file, reprod_probe.py and PyTorch: five fresh processes of each
variant, each of which does all trainings.
"""
import argparse
import itertools
import json
import os
import platform
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reprod_probe as probe  # noqa: E402

# What each sets in the environment; the rest is in choose_algorithms.
VARIANTS = {"default": {}, "cudnn_deterministic": {},
            "deterministic_algorithms": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}}
CONTROL = "default"
SCALES = {"small": {"batch": 8, "width": 8, "points": 400_000, "steps": 6},
          "large": {"batch": 64, "width": 64, "points": 800_000, "steps": 30}}
BATCHES, CLASSES, CELLS, KINDS, SYMBOLS, FRAMES, LABELS = 4, 10, 48, 64, 28, 64, 20
NO_DEVICE = 77  # the exit status where there is no PyTorch, or not the device


# The trainings: data on the CPU, a model, and the loss of a batch


def trainings():
    import torch
    from torch import nn
    from torch.nn import functional

    def randn(generator, *shape):
        return torch.randn(*shape, generator=generator)

    class Block(nn.Module):
        def __init__(self, wide, wider, stride):
            super().__init__()
            self.first = nn.Conv2d(wide, wider, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(wider, wider, 3, 1, 1, bias=False)
            self.skip = nn.Conv2d(wide, wider, 1, stride, bias=False)
            self.norm_first, self.norm_second = nn.BatchNorm2d(wider), nn.BatchNorm2d(wider)

        def forward(self, x):
            y = functional.relu(self.norm_first(self.first(x)))
            return functional.relu(self.norm_second(self.second(y)) + self.skip(x))

    class ResNet(nn.Module):
        def __init__(self, scale):
            super().__init__()
            width = scale["width"]
            self.stem = nn.Conv2d(3, width, 3, padding=1)
            self.blocks = nn.Sequential(Block(width, width, 1), Block(width, 2 * width, 2),
                                        Block(2 * width, 2 * width, 2))
            self.head = nn.Linear(2 * width, CLASSES)

        @staticmethod
        def data(generator, scale):
            count = BATCHES * scale["batch"]
            return {"images": randn(generator, count, 3, 32, 32),
                    "labels": torch.randint(CLASSES, (count,), generator=generator)}

        def forward(self, images):
            return self.head(self.blocks(functional.relu(self.stem(images))).mean((2, 3)))

        def loss(self, batch):
            return functional.cross_entropy(self(batch["images"]), batch["labels"])

    class Scatter(nn.Module):
        def __init__(self, scale):
            super().__init__()
            width = scale["width"]
            self.table = nn.Parameter(torch.randn(KINDS, width))
            self.embedding = nn.Embedding(KINDS, width)
            self.scale = nn.Linear(4, width)
            self.head = nn.Sequential(nn.Linear(3 * width, 16), nn.ReLU(), nn.Linear(16, 1))

        @staticmethod
        def data(generator, scale):
            # All batches at once: a step takes a quarter of the points.
            count = scale["points"]
            spread = torch.exp(3 * randn(generator, count, 1))
            return {"positions": spread * randn(generator, count, 4),
                    "kinds": torch.randint(KINDS, (count,), generator=generator),
                    "cells": torch.randint(CELLS, (count,), generator=generator)}

        def forward(self, positions, kinds, cells):
            points = (self.table[kinds] + self.embedding(kinds)) * self.scale(positions)
            empty = points.new_zeros(CELLS, points.shape[1])
            grids = (empty.clone().index_put_((cells,), points, accumulate=True),
                     empty.index_add(0, cells, points),
                     empty.scatter_add(0, cells[:, None].expand_as(points), points))
            return self.head(torch.cat(grids, 1) / len(points))

        def loss(self, batch):
            return self(**batch).square().mean()

    class Upsample(nn.Module):
        def __init__(self, scale):
            super().__init__()
            width = scale["width"]
            self.first = nn.Conv2d(3, width, 3, padding=1)
            self.second = nn.Conv2d(width, 1, 3, padding=1)

        @staticmethod
        def data(generator, scale):
            count = BATCHES * scale["batch"]
            return {"images": randn(generator, count, 3, 12, 12),
                    "masks": randn(generator, count, 1, 60, 60)}

        def forward(self, images):
            features = functional.relu(self.first(images))
            return self.second(functional.interpolate(features, size=(60, 60), mode="bilinear",
                                                      align_corners=False))

        def loss(self, batch):
            return functional.mse_loss(self(batch["images"]), batch["masks"])

    class Ctc(nn.Module):
        def __init__(self, scale):
            super().__init__()
            width = 4 * scale["width"]
            self.layers = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, SYMBOLS))

        @staticmethod
        def data(generator, scale):
            count = BATCHES * scale["batch"]
            return {"frames": randn(generator, count, FRAMES, 20),
                    "labels": torch.randint(1, SYMBOLS, (count, LABELS), generator=generator),
                    "lengths": torch.randint(LABELS // 2, LABELS + 1, (count,),
                                             generator=generator)}

        def forward(self, frames):
            return self.layers(frames)

        def loss(self, batch):
            scores = self(batch["frames"]).log_softmax(2).transpose(0, 1)
            frames = torch.full_like(batch["lengths"], FRAMES)
            return functional.ctc_loss(scores, batch["labels"], frames, batch["lengths"])

    return {"resnet": ResNet, "scatter": Scatter, "upsample": Upsample, "ctc": Ctc}


TRAININGS = ("resnet", "scatter", "upsample", "ctc")


# What PyTorch is told, and what it says it does


def choose_algorithms(variant):
    import torch
    if variant == "cudnn_deterministic":
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    elif variant == "deterministic_algorithms":
        torch.use_deterministic_algorithms(True)
    elif variant != "default":
        probe.unsupported("there is no variant '%s'" % variant)


def flags_in_force():
    import torch
    cudnn = torch.backends.cudnn
    return {"deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
            "cudnn_enabled": cudnn.enabled, "cudnn_deterministic": cudnn.deterministic,
            "cudnn_benchmark": cudnn.benchmark, "cudnn_allow_tf32": cudnn.allow_tf32,
            "matmul_precision": torch.get_float32_matmul_precision(),
            "cublas_workspace_config": os.environ.get("CUBLAS_WORKSPACE_CONFIG")}


def algorithm():
    """The flags in a line, as the run's algorithm."""
    flags = flags_in_force()
    said = [name for name in ("deterministic_algorithms", "cudnn_deterministic",
                              "cudnn_benchmark", "cudnn_allow_tf32") if flags[name]]
    workspace = flags["cublas_workspace_config"]
    return " ".join(["PyTorch:", *said, *(["CUBLAS_WORKSPACE_CONFIG=" + workspace]
                                          if workspace else [])])


def facts_of(device):
    """The versions and the device, as the libraries say them."""
    import torch
    facts = {"torch": str(torch.__version__), "python": platform.python_version(),
             "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
             "device": device, "gpu": None, "gpu_uuid": None, "capability": None, "driver": None,
             "threads": torch.get_num_threads()}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        facts.update(gpu=properties.name, gpu_uuid=str(getattr(properties, "uuid", "unknown")),
                     capability="%d.%d" % (properties.major, properties.minor),
                     driver=driver_version())
    return facts


def driver_version():
    try:
        with open("/sys/module/nvidia/version") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def choose_device(wanted):
    import torch
    if wanted == "cuda" and not torch.cuda.is_available():
        print("PyTorch %s finds no GPU here" % torch.__version__, file=sys.stderr)
        sys.exit(NO_DEVICE)
    return wanted or ("cuda" if torch.cuda.is_available() else "cpu")


# A training


def scale_of(arguments, device):
    scale = dict(SCALES[arguments.scale or ("large" if device == "cuda" else "small")])
    scale["steps"] = arguments.steps or scale["steps"]
    return scale


def make_data(kind, seed, scale):
    import torch
    return kind.data(torch.Generator().manual_seed(seed), scale)


def batch_of(data, step):
    """A quarter of the examples, another one each step."""
    step %= BATCHES
    return {name: values[step * len(values) // BATCHES:(step + 1) * len(values) // BATCHES]
            for name, values in data.items()}


def train(kind, data, scale, device):
    """(model, losses, milliseconds of all steps but the first).  Nothing here waits for the
    device between steps, unless probes are asked for."""
    import torch
    torch.manual_seed(probe.seed())
    model = probe.monitor_model(kind(scale).to(device))
    data = {name: values.to(device) for name, values in data.items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    probe.summarize_variables(model)
    losses, began = [], 0
    for step in range(scale["steps"]):
        if step == 1:
            began = now(device)
        batch = probe.monitor(batch_of(data, step), "data")
        loss = probe.monitor(model.loss(batch), "loss")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        probe.summarize_variables(model, "after")
        probe.step()
    return model, losses, now(device) - began


def now(device):
    import torch
    if device == "cuda":
        torch.cuda.synchronize()
    return 1e3 * time.perf_counter()


def is_refusal(error):
    """Whether PyTorch says that it has no deterministic algorithm for an operation."""
    import torch
    return torch.are_deterministic_algorithms_enabled() and "deterministic" in str(error)


def run_workload(arguments):
    """A run of reprod, or one by hand: the training that was asked for."""
    if "REPROD_DEVICE" not in os.environ and choose_device(arguments.device) == "cuda":
        os.environ["REPROD_DEVICE"] = "cuda"  # by hand
    request = probe.request()
    device = choose_device(arguments.device or request.backend)
    choose_algorithms(request.variant)
    kind, scale = trainings()[arguments.training], scale_of(arguments, "cpu")
    data = make_data(kind, request.seed, scale)
    claim = "deterministic" if request.variant == "deterministic_algorithms" else None
    try:
        for _ in probe.iterations(inputs=data, algorithm=algorithm(), claim=claim):
            model, losses, _ = train(kind, data, scale, device)
            probe.finish(model, losses[-1])
    except RuntimeError as error:
        if not is_refusal(error):
            raise
        probe.unsupported(str(error).split("\n")[0])


# The table: many fresh processes, without a service


def bits_of(value):
    """What a training left, as text: value and bits of a binary64."""
    bits = probe.exact_sum(value)
    return "%.17g" % struct.unpack(">d", bytes.fromhex(bits)), bits


def run_once(arguments):
    """A process of the table: waits at the start line, then does all trainings."""
    try:
        import torch
    except ImportError as error:
        print("there is no PyTorch here: %s" % error, file=sys.stderr)
        sys.exit(NO_DEVICE)
    if sys.stdin.readline() != "go\n":
        sys.exit("nobody waits for this process any more")
    device = choose_device(arguments.device)
    scale = scale_of(arguments, device)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    choose_algorithms(arguments.once)
    kinds = trainings()
    for name in arguments.trainings:
        found = {"training": name, "outcome": "completed", "cause": None}
        try:
            model, losses, ms = train(kinds[name], make_data(kinds[name], arguments.seed, scale),
                                      scale, device)
            weights = model.state_dict()
            found["weights_device"] = str(next(model.parameters()).device)
            found["digest"] = probe.digest(weights)
            found["weight_sum"], found["weight_sum_bits"] = bits_of(weights)
            found["losses_bits"] = [bits_of(loss)[1] for loss in losses]
            found["loss"], found["loss_bits"] = bits_of(losses[-1])
            found["milliseconds"] = ms
            for beyond in {"nan", "inf", "-inf"} & {found["weight_sum"], found["loss"]}:
                found.update(outcome="invalid", cause=f"the result is {beyond}")
        except RuntimeError as error:
            found.update(outcome="unsupported" if is_refusal(error) else "crashed",
                         cause=str(error).split("\n")[0])
        print(json.dumps({**found, "flags": flags_in_force(), "facts": facts_of(device)}),
              flush=True)


def start_process(arguments, variant):
    command = [sys.executable, os.path.abspath(__file__), "--once", variant,
               "--trainings", ",".join(arguments.trainings), "--scale", arguments.scale,
               "--seed", str(arguments.seed), "--threads", str(arguments.threads),
               "--steps", str(arguments.steps), "--device", arguments.device]
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("REPROD_") and name != "CUBLAS_WORKSPACE_CONFIG"}
    for name in ("REPROD_DIGEST", "REPROD_DIGEST_LIBRARY"):
        if name in os.environ:
            environment[name] = os.environ[name]
    environment.setdefault("OMP_WAIT_POLICY", "passive")  # another process is starting
    environment.update(VARIANTS[variant], PYTHONHASHSEED="0", REPROD_SEED=str(arguments.seed))
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish_process(process, timeout):
    """({training: what it left}, exit status, why it failed or None)."""
    try:
        out, log = process.communicate("go\n", timeout)
        cause = None
    except subprocess.TimeoutExpired:
        process.kill()
        out, log = process.communicate()
        cause = "no end after %g seconds" % timeout
    except BrokenPipeError:  # it ended before it was told to go
        out, log = process.stdout.read(), process.stderr.read()
        process.wait()
        cause = None
    found = {}
    for line in out.splitlines():
        try:
            run = json.loads(line)
            found[run["training"]] = run
        except (ValueError, TypeError, KeyError):  # what libraries print, or a line cut off
            continue
    if process.returncode and not cause:
        cause = "exit status %d: %s" % (process.returncode, (log.strip() or "-").split("\n")[-1])
    return found, process.returncode, cause


def collect(arguments):
    """{(training, variant): [run, ...]} and how many processes ran of how many.  Variants take
    turns; while a process computes, the next one imports PyTorch and waits."""
    end = time.monotonic() + (arguments.seconds or float("inf"))
    order = [variant for _ in range(arguments.runs) for variant in VARIANTS]
    runs = {key: [] for key in itertools.product(arguments.trainings, VARIANTS)}
    waiting = start_process(arguments, order[0])
    for at, variant in enumerate(order):
        if at and time.monotonic() >= end:
            waiting.kill()
            waiting.communicate()
            print("the deadline came after %d of %d processes" % (at, len(order)), file=sys.stderr)
            return runs, (at, len(order))
        process = waiting
        waiting = start_process(arguments, order[at + 1]) if at + 1 < len(order) else None
        found, status, cause = finish_process(process, arguments.timeout)
        if status == NO_DEVICE:
            if waiting:
                waiting.kill()
                waiting.communicate()
            print(cause.split(": ", 1)[-1], file=sys.stderr)
            sys.exit(NO_DEVICE)
        for training in arguments.trainings:
            runs[training, variant].append(found.get(training) or {
                "training": training, "outcome": "crashed",
                "cause": cause or "the process said nothing of it"})
        print("%d of %d processes%s" % (at + 1, len(order), ", failed: " + cause if cause else ""),
              file=sys.stderr)
    return runs, (len(order), len(order))


def difference_bound(runs):
    """Of the probability that a process gives another result than the first, where none of RUNS
    did (95 %): they are RUNS - 1 comparisons with the first."""
    return 1 - 0.05 ** (1 / (runs - 1)) if runs > 1 else 1


def judge(runs, control_varied, is_control):
    """(verdict, reason): never reproducible without two runs and a control that varied."""
    failed = [run for run in runs if run["outcome"] not in ("completed", "unsupported")]
    refused = [run for run in runs if run["outcome"] == "unsupported"]
    if len({run["digest"] for run in runs if run["outcome"] == "completed"}) > 1:
        return "varies", None
    if failed:
        return "failing", failed[0]["cause"]
    if refused:
        return "unsupported", refused[0]["cause"]
    if len(runs) < 2:
        return "inconclusive", "%s shows nothing" % ("one run" if runs else "no run")
    if is_control:
        return "inconclusive", "the control did not vary"
    if not control_varied:
        return "inconclusive", "the control, '%s', did not vary" % CONTROL
    return "reproducible", "per-process difference probability < %.2g %% (95 %%)" % (
        100 * difference_bound(len(runs)))


def first_difference(runs):
    """The first step whose loss is not the same in all completed runs, or None."""
    losses = [run["losses_bits"] for run in runs if run["outcome"] == "completed"]
    return next((step for step, bits in enumerate(zip(*losses)) if len(set(bits)) > 1), None)


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None


def summarize(arguments, runs):
    """{training: {variant: what its runs show}}"""
    found = {}
    for training in arguments.trainings:
        found[training] = {}
        varied = judge(runs[training, CONTROL], False, True)[0] == "varies"
        for variant in VARIANTS:
            own = runs[training, variant]
            verdict, reason = judge(own, varied, variant == CONTROL)
            completed = [run for run in own if run["outcome"] == "completed"]
            found[training][variant] = {
                "verdict": verdict, "reason": reason, "runs_completed": len(completed),
                "distinct_digests": len({run["digest"] for run in completed}),
                "first_difference_step": first_difference(own),
                "milliseconds_median": median([run["milliseconds"] for run in completed]),
                "runs": [{name: value for name, value in run.items()
                          if name not in ("facts", "training")} for run in own]}
    return found


def print_table(report):
    facts = report["facts"] or {}
    print("PyTorch %s, %s, %d steps" % (facts.get("torch"), (
        "%s (capability %s, driver %s), CUDA %s, cuDNN %s" % tuple(
            facts.get(name) for name in ("gpu", "capability", "driver", "cuda", "cudnn"))
        if facts.get("device") == "cuda" else "CPU, %s threads" % facts.get("threads")),
        report["steps"]))
    for training, variants in report["trainings"].items():
        control = variants[CONTROL]["milliseconds_median"]
        for variant, found in variants.items():
            ms = found["milliseconds_median"]
            step = found["first_difference_step"]
            print("\n%s, %s: %s%s" % (training, variant, found["verdict"],
                                      " (%s)" % found["reason"] if found["reason"] else ""))
            print("    %d digest%s in %d completed runs of %d%s%s" % (
                found["distinct_digests"], "" if found["distinct_digests"] == 1 else "s",
                found["runs_completed"], len(found["runs"]),
                "" if step is None else "; losses differ from step %d on" % step,
                "; %.3g ms, %.2f x the control" % (ms, ms / control) if ms and control else ""))
            completed = [run for run in found["runs"] if run["outcome"] == "completed"]
            if completed:
                print("    %-24s %-24s %s" % ("SUM OF WEIGHTS", "FINAL LOSS", "DIGEST"))
            for run in completed:
                print("    %-24s %-24s %s" % (run["weight_sum"], run["loss"], run["digest"]))


def make_table(arguments):
    began, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    runs, (done, wanted) = collect(arguments)
    said = [run for own in runs.values() for run in own if "facts" in run]
    report = {"schema": "reprod-pytorch-table", "version": 1, "started_at": started,
              "facts": said[0]["facts"] if said else None,
              "processes_a_variant": arguments.runs, "processes_done": done,
              "processes_wanted": wanted, "seed": arguments.seed,
              "steps": len(next((run["losses_bits"] for run in said if "losses_bits" in run), [])),
              "seconds": time.monotonic() - began, "trainings": summarize(arguments, runs)}
    if len({json.dumps(run["facts"]) for run in said}) > 1:
        print("the processes had different devices or versions", file=sys.stderr)
        sys.exit(1)
    print_table(report)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    failing = any(found["verdict"] == "failing" or any(
        run["outcome"] not in ("completed", "unsupported") for run in found["runs"])
        for variants in report["trainings"].values() for found in variants.values())
    sys.exit(1 if failing else 0)


# The command line


def list_of(names):
    chosen = [name for name in names.split(",") if name]
    wrong = [name for name in chosen if name not in TRAININGS]
    if wrong or not chosen:
        raise argparse.ArgumentTypeError("'%s' is none of %s" % (
            wrong[0] if wrong else "", ", ".join(TRAININGS)))
    return chosen


def natural(text, least=0):
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError("'%s' is no whole number from %d" % (text, least))
    return int(text)


def positive(text):
    return natural(text, 1)


def parse():
    parser = argparse.ArgumentParser(
        description="Small trainings in PyTorch: what varies, and what cures it.",
        epilog="Exit status of --table: 0 where every process ended as it should, whatever the"
               " table shows; 1 where one failed; 2 for wrong arguments; %d where there is no"
               " PyTorch, or no GPU with --device cuda." % NO_DEVICE)
    parser.add_argument("--training", choices=TRAININGS, default="resnet",
                        help="of a run of reprod or by hand (default: resnet)")
    parser.add_argument("--device", choices=("cpu", "cuda", ""), default="",
                        help="default: the request's; by hand, a GPU where there is one")
    parser.add_argument("--scale", choices=("small", "large", ""), default="",
                        help="default: small; of --table on a GPU, large")
    parser.add_argument("--steps", type=natural, default=0, help="default: 6, of large 30")
    table = parser.add_argument_group("the table")
    table.add_argument("--table", action="store_true", help="fresh processes of each variant")
    table.add_argument("--runs", type=positive, default=5, help="processes a variant (default: 5)")
    table.add_argument("--trainings", type=list_of, default=list(TRAININGS),
                       help="default: " + ",".join(TRAININGS))
    table.add_argument("--json", metavar="FILE", help="writes the table there, too")
    table.add_argument("--seed", type=natural, default=1)
    table.add_argument("--threads", type=natural, default=0, help="of a CPU (default: PyTorch's)")
    table.add_argument("--timeout", type=float, default=300, help="seconds a process (300)")
    table.add_argument("--seconds", type=float, default=0,
                       help="after them no process is begun, and the table is of what there is")
    parser.add_argument("--once", choices=VARIANTS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.table:
        make_table(arguments)
    elif arguments.once:
        run_once(arguments)
    else:
        run_workload(arguments)


if __name__ == "__main__":
    main()
