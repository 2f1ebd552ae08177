"""The worker of a stack that is a framework: answers --catalogue, --probe, --run and --fork as
workloads/PROTOCOL.md says, for the operations of one pack.

  python worker.py --framework numpy [--packages FOLDER] --probe
  python worker.py --pack FILE --run --workload own_sum --variant default ...

deploy/framework makes the program that a stack names as its worker, and calls this with what is
installed.  README.md is beside this file."""
import argparse
import contextlib
import fcntl
import glob
import importlib
import importlib.util
import json
import os
import platform
import site
import socket
import sys
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
RUN_NAMES = ("workload", "variant", "size", "dtype", "seed", "iterations", "threads", "device",
             "probes", "probe-names", "probe-steps", "capture")
NUMBERS = ("seed", "iterations", "threads", "contention")
CIRCUMSTANCES = ("contention", "memory-poison", "allocation-jitter")  # circumstances.NAMES


def pack_names():
    files = glob.glob(os.path.join(HERE, "pack_*.py"))
    return sorted(os.path.basename(path)[len("pack_"):-len(".py")] for path in files)


def keep_to_itself(number):
    """A copy of descriptor NUMBER that only this process has.  What a framework prints there goes
    to the log instead."""
    kept = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 100)
    for printed in {number, 3}:
        os.dup2(2, printed)
    return kept


def load_pack(path):
    """The PACK of the file PATH, which may import what lies beside it.  A framework, imported later,
    does not: it may have a module of any name."""
    folders = [os.path.dirname(os.path.realpath(path)), HERE]
    spec = importlib.util.spec_from_file_location("reprod_pack", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["reprod_pack"] = module
    sys.path[:0] = folders
    try:
        for name in ("installed", "gpus", "gpu_slices", "circumstances", "forker"):
            importlib.import_module(name)
        spec.loader.exec_module(module)
    except OSError as error:
        sys.exit("the pack cannot be read: %s" % error)
    sys.path[:] = sys.path[len(folders):]
    module.PACK.build = build_of(folders)
    return module.PACK


def build_of(folders):
    """One digest over what asks the framework: this file, the pack, what they imported that lies
    beside them, and the probes."""
    import installed
    import reprod_probe
    files = {os.path.realpath(__file__)}
    folders = [*folders, os.path.dirname(os.path.realpath(reprod_probe.__file__))]
    for module in list(sys.modules.values()):
        file = os.path.realpath(getattr(module, "__file__", None) or "/")
        if os.path.dirname(file) in folders and file.endswith(".py"):
            files.add(file)
    return installed.digest_of(files, 40)


# The framework

def import_framework(pack):
    """The facts of the loaded framework.  Refused, with the cause, where it is not usable."""
    import installed
    from pack import Refused
    try:
        pack.load()
    except Exception as error:
        traceback.print_exc()
        raise Refused("%s cannot be imported: %s: %s" % (pack.module, type(error).__name__,
                                                         first_line(error))) from None
    facts = installed.facts(pack)
    facts.update({name: str(value) for name, value in pack.versions().items() if value})
    facts[pack.module] = pack.version()
    return facts


def first_line(error):
    return (str(error).strip().splitlines() or ["no reason given"])[0][:300]


# --catalogue and --probe

def variant_line(pack, operation, variant):
    sets = ", ".join("sets %s=%s" % item for item in variant.variables.items())
    line = {"name": variant.name, "summary": variant.summary, "models": sets or "sets nothing",
            "algorithm": "as %s chooses it" % pack.subject_name, "claim": pack.promised(variant),
            "subject": "framework", "subject_name": pack.subject_name, "control": variant.control,
            "recipe": variant.recipe, "environment": variant.variables}
    if variant.kind:
        line["kind"] = operation.kind or variant.kind
    return line


def catalogue_line(pack, operation, backend):
    """The same in every version that has the operation."""
    import circumstances
    references = [{"kind": "documentation", "id": name, "title": "%s, in the lists of %s" % (
        name, pack.listed_by), "url": pack.documentation, "state": None, "solved": None}
        for name in operation.documented]
    return {"workload": "%s_%s" % (pack.name, operation.name), "version": operation.version,
            "backend": backend, "title": operation.title, "summary": operation.summary,
            "variants": [variant_line(pack, operation, variant) for variant in pack.asked()],
            "sizes": [{"name": name, "description": "n = %d" % n}
                      for name, n in operation.sizes.items()],
            "dtypes": ["float32"], "loss": operation.loss,
            "weight_sum": "sum of all weights" if operation.loss else "sum of all outputs",
            "no_control": None, "references": references, "survey": False,
            "circumstances": [circumstances.LISTED.get(name, name.replace("-", "_"))
                              for name in circumstances.offered(backend)]
            + (["shared_import"] if pack.forks else []),
            "timeout_seconds": pack.timeout_seconds}


def catalogue(pack, backend):
    return [catalogue_line(pack, operation, backend)
            for operation in pack.operations.values() if pack.has(operation)]


def device():
    import reprod_probe
    return {"id": "cpu:" + socket.gethostname(), "model": reprod_probe._cpu_model(),
            "attributes": {"architecture": platform.machine(),
                           "vector_isa": reprod_probe._vector_isa(),
                           "processors": len(os.sched_getaffinity(0)),
                           "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}}


def probe_line(pack, facts, backend):
    """Of GPUs there may be none: that is the machine's trouble, and no reason not to be installed."""
    devices, cause = [device()], None
    if backend == "cuda":
        import gpu_slices
        asked = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices, found, cause = open_gpus(pack)
        devices = devices + gpu_slices.hidden(devices, asked) if devices else devices
        facts = {**facts, **found}
    return {"v": 1, "backend": backend, "worker_build": pack.build, "nonce": True,
            "forks": pack.forks,
            "versions": {"python": platform.python_version(), **facts}, "devices": devices,
            "cause": cause, "problems": {}, "unmeasured": pack.unmeasured()}


def open_gpus(pack):
    """(devices, facts, why there are none or None).  Refused where the framework would not use them."""
    import gpus
    try:
        devices, cause = gpus.visible(os.environ.get("CUDA_VISIBLE_DEVICES")), None
    except gpus.NoGpus as error:
        devices, cause = [], str(error)
    check = pack.open_gpu if devices else pack.check_build
    facts = {**gpus.versions(), **{name: str(fact) for name, fact in (check() or {}).items() if fact}}
    return devices, facts, cause


# --run

def find_variant(pack, name):
    from pack import Refused
    variant = {v.name: v for v in pack.asked()}.get(name)
    if variant is None:
        raise Refused("the pack of %s has no variant %r" % (pack.subject_name, name))
    return variant


def find_case(pack, options):
    from pack import Refused
    name = options.workload or ""
    operation = pack.operations.get(name[len(pack.name) + 1:]) \
        if name.startswith(pack.name + "_") else None
    if operation is None:
        raise Refused("the pack of %s has no workload %r" % (pack.subject_name, name))
    variant = find_variant(pack, options.variant)
    if options.size not in operation.sizes or options.dtype != "float32":
        raise Refused("%s has no size %r of %r" % (name, options.size, options.dtype))
    return operation, variant


def set_request(options, operation, variant, result):
    """What reprod_probe reads."""
    for name in RUN_NAMES:
        value = getattr(options, name.replace("-", "_"))
        if value is not None:
            os.environ["REPROD_" + name.replace("-", "_").upper()] = str(value)
    os.environ.update(REPROD_VERSION=str(operation.version), REPROD_RESULT_FD=str(result),
                      REPROD_BACKEND=options.backend, REPROD_RECIPE=variant.recipe or "none")


def set_variables(pack, options, variant):
    """What the framework reads when it is imported.  What another variant would set is not inherited.
    (threads, why the framework is not asked at all or None)"""
    from pack import Unsupported
    threads, cause = variant.threads or options.threads, None
    os.environ.update(OMP_NUM_THREADS=str(threads),
                      CUDA_VISIBLE_DEVICES=options.device if options.backend == "cuda" else "-1")
    for name in {name for other in pack.variants for name in other.variables}:
        os.environ.pop(name, None)
    try:
        os.environ.update(pack.prepare(variant, threads))
        os.environ.update(variant.variables)
    except Unsupported as error:
        cause = str(error)
    return threads, cause


def named(outputs):
    """Outputs by name: one is "y", several are numbered unless the operation names them."""
    if hasattr(outputs, "items"):
        return outputs
    if isinstance(outputs, (list, tuple)):
        return {str(index): value for index, value in enumerate(outputs)}
    return {"y": outputs}


def attempt(pack, function, *arguments):
    """What FUNCTION returns.  Unsupported, with the framework's own words, where it refuses."""
    from pack import Unsupported
    try:
        return function(*arguments)
    except Unsupported:
        raise
    except Exception as error:
        if not pack.explains(error):
            raise
        raise Unsupported(first_line(error)) from None


def selected_gpu(pack, wanted):
    """(its id, facts, None) of the GPU that the driver shows to this process, where it is WANTED and
    nothing else is; or ("unknown" or another, facts, what is wrong)."""
    devices, facts, cause = open_gpus(pack)
    ids = [found["id"] for found in devices]
    if ids != [wanted]:
        return (ids[0] if len(ids) == 1 else "unknown"), {"model": "unknown"}, cause or (
            "the driver shows %s where %s was requested" % (", ".join(ids), wanted))
    attributes = {name: value for name, value in devices[0]["attributes"].items()
                  if name != "memory_bytes"}
    return wanted, {**facts, **attributes, "model": devices[0]["model"]}, None


def make(pack, options, case, threads, x):
    """What computes the case.  Unsupported where this version, or this variant, does not."""
    from pack import Unsupported
    operation, variant = case
    if not pack.has(operation):
        raise Unsupported("%s %s has no %s%s" % (
            pack.subject_name, pack.version(), " or no ".join(operation.needs),
            "; it came with %s" % operation.since if operation.since else ""))
    attempt(pack, pack.switch, variant, threads)
    with pack.scope():
        return attempt(pack, operation.function, x, operation.sizes[options.size])


def check_outputs(pack, outputs):
    """Unsupported where something was computed elsewhere than on the GPU that is asked for."""
    import reprod_probe
    from pack import Unsupported
    pack.wait()
    for name, value in reprod_probe.flatten(outputs):
        if not pack.is_on_gpu(value):
            raise Unsupported("%s does not compute it on the GPU: its output %s lies elsewhere"
                              % (pack.subject_name, name))


def compute(pack, options, facts, case, threads, cause, under, broken=None):
    """UNDER: its circumstances, which have begun.  BROKEN: why this process is not to compute it."""
    import installed
    import reprod_probe as probe
    from pack import Inputs, Unsupported
    operation, variant = case
    x = Inputs(pack, options.workload, options.seed)
    function = device = None
    on_gpu = options.backend == "cuda"
    if on_gpu:
        device, found, lost = selected_gpu(pack, options.device)
        facts, broken = {**facts, **found}, broken or lost
    try:
        if cause is not None:
            raise Unsupported(cause)
        if broken is None:
            function = make(pack, options, case, threads, x)
    except Unsupported as error:
        cause = str(error)
    # What a variant sets belongs to the case: a variant and its control meet in one environment.
    decided = {"env." + name: None for other in pack.variants for name in other.variables}
    probe.start(x.made, claim=pack.claim(operation, variant), build=pack.build, device=device,
                circumstances=under.said,
                facts={**facts, "threads": options.threads, **decided})
    if broken is not None:
        probe.infra(broken)
    if cause is not None:
        probe.unsupported(cause)
    for iteration in range(options.iterations):
        under.move()
        try:
            with pack.scope():
                outputs = named(attempt(pack, function))
            if on_gpu:
                check_outputs(pack, outputs)
        except Unsupported as error:
            probe.unsupported(str(error))
        broken = under.broken()
        if iteration == options.iterations - 1:
            broken = broken or installed.loaded_late(pack)
        if broken is not None:
            probe.infra(broken)
        probe.monitor(outputs, "output", inputs=x.made)
        probe.finish(outputs, getattr(outputs, "loss", None))


def run(pack, options, result):
    import circumstances
    under = circumstances.Circumstances(options, options.backend)
    case = find_case(pack, options)
    set_request(options, *case, result)
    threads, cause = set_variables(pack, options, case[1])
    import reprod_probe  # noqa: F401: its own imports are done before the framework can change them
    under.begin()
    try:
        compute(pack, options, import_framework(pack), case, threads, cause, under)
    finally:
        under.end()


# --fork

def forked_options(options, arguments):
    """Those of one run, of the process that OPTIONS are of."""
    from pack import Refused
    asked = argparse.Namespace(**vars(options))
    for name, value in arguments.items():
        if name == "shared-import":
            continue
        if name not in RUN_NAMES + CIRCUMSTANCES:
            raise Refused("--%s is not known" % name)
        setattr(asked, name.replace("-", "_"), int(value) if name in NUMBERS else value)
    if (asked.variant, asked.threads, asked.device) != (options.variant, options.threads, options.device):
        raise Refused("this process forks runs of %s with %d threads on %s" % (
            options.variant, options.threads, options.device))
    return asked


def import_later(pack):
    """What a run imports after it said what it computes with.  Refused where a GPU is open by now: what
    a driver has in a process is of no use to one that it forks."""
    from pack import Refused
    for module in pack.later:
        with contextlib.suppress(ImportError):  # of another version
            importlib.import_module(module)
    links = (os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
    if any(os.path.islink(link) and os.readlink(link).startswith("/dev/nvidia") for link in links):
        raise Refused("%s opened a GPU when it was imported: it forks no runs" % pack.subject_name)


def fork(pack, options, result):
    """One import, and a process for each run that standard input asks for."""
    import circumstances
    import forker
    import installed
    from pack import Refused
    if not pack.forks:
        raise Refused("%s cannot be imported by one process for several" % pack.subject_name)
    questions = forker.take_standard_input()
    threads, cause = set_variables(pack, options, find_variant(pack, options.variant))
    import reprod_probe  # noqa: F401: as in run
    facts = import_framework(pack)
    import_later(pack)
    late = installed.loaded_before_runs(pack)

    def compute_one(arguments, is_stale):
        changed = "files of %s changed after they were imported" % pack.subject_name if is_stale else late
        asked = forked_options(options, arguments)
        try:
            under = circumstances.Circumstances(asked, asked.backend)
            case = find_case(pack, asked)
            set_request(asked, *case, result)
            under.begin()
            try:
                compute(pack, asked, facts, case, threads, cause, under, changed)
            finally:
                under.end()
        except Refused as error:
            sys.exit(str(error))

    forker.Forker(result, compute_one, installed.loaded_files()).serve(questions)


# The command line

def parse():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--framework", choices=pack_names())
    source.add_argument("--pack", help="a file that defines PACK")
    parser.add_argument("--packages", help="folder that the framework is installed in")
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("catalogue", "probe", "run", "fork"):
        what.add_argument("--" + name, action="store_true")
    for name in RUN_NAMES + CIRCUMSTANCES:
        kind = int if name in NUMBERS else str
        parser.add_argument("--" + name, type=kind)
    options = parser.parse_args()
    wanted = RUN_NAMES[:8] if options.run else ("variant", "threads", "device") if options.fork else ()
    for name in wanted:
        if getattr(options, name) is None:
            parser.error("--%s wants --%s" % ("run" if options.run else "fork", name))
    return options


def find_probes():
    """reprod_probe.py: in the tree and where it is installed, in the folder beside this one."""
    for folder in (HERE, os.path.join(HERE, "..", "python")):
        if os.path.exists(os.path.join(folder, "reprod_probe.py")):
            sys.path.insert(0, os.path.realpath(folder))
            return
    sys.exit("there is no reprod_probe.py in %s or ../python" % HERE)


def main():
    options = parse()
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder or ".") != HERE]
    find_probes()
    path = options.pack or os.path.join(HERE, "pack_%s.py" % options.framework)
    if options.packages:
        before = list(sys.path)
        site.addsitedir(options.packages)
        sys.path[:] = [folder for folder in sys.path if folder not in before] + before
    try:
        result = keep_to_itself(int(os.environ.get("REPROD_RESULT_FD", "3")) if options.run or options.fork else 1)
    except OSError as error:
        sys.exit("events go to descriptor 3, which is not open (%s): add 3>&1" % error)
    pack = load_pack(path)
    from pack import Refused
    try:
        if options.backend not in pack.backends:
            raise Refused("%s has no backend %s" % (pack.subject_name, options.backend))
        pack.backend = options.backend
        if options.run or options.fork:
            (run if options.run else fork)(pack, options, result)
            return
        facts = import_framework(pack)
        lines = [probe_line(pack, facts, options.backend)] if options.probe \
            else catalogue(pack, options.backend)
    except Refused as error:
        sys.exit(str(error))
    with open(result, "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
