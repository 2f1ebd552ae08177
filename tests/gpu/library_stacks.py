"""Which sets of libraries this machine has, as stacks of the service's configuration.

The agent gives a worker no LD_LIBRARY_PATH but the stack's, so a stack names every folder that
the worker needs, the driver's included.
"""
import os
import pathlib

import machine

FAMILIES = ("cudnn", "cublas", "nccl")


def joined(*parts):
    return ":".join(dict.fromkeys(part for whole in parts for part in whole.split(":") if part))


def driver_path(probe):
    """(what LD_LIBRARY_PATH must have for the worker to see a device, what it says then)."""
    for path in dict.fromkeys(("", os.environ.get("LD_LIBRARY_PATH", ""), *machine.DRIVER_FOLDERS)):
        said = probe(path)
        if said.get("devices"):
            return path, said
    return "", said


def toolkit_folder(nvcc):
    """lib64 of the toolkit that NVCC belongs to, if it has any of the libraries."""
    folder = pathlib.Path(nvcc).resolve().parent.parent / "lib64" if nvcc else None
    patterns = machine.LIBRARIES.values()
    return [str(folder)] if folder and any(any(folder.glob(p)) for p in patterns) else []


def package_folders():
    """Of NVIDIA's Python packages: one string for all that lie in one interpreter's folder."""
    roots = {}
    for pattern in machine.LIBRARIES.values():
        for path in machine.wheel_files(f"lib/{pattern}"):
            roots.setdefault(path.parents[3], []).append(str(path.parent))
    return [joined(*folders) for folders in roots.values()]


def versions(said):
    return tuple((said.get("versions") or {}).get(name) for name in FAMILIES)


def covers(other, own):
    """Whether OTHER has all that OWN has, in the same versions, and more."""
    return other != own and all(mine in (None, theirs) for mine, theirs in zip(own, other))


def name_of(found, taken):
    cudnn = found[0]
    name = f"cudnn-{cudnn.split()[0]}" if cudnn else "cuda"
    number = next(n for n in range(1, 100) if (name if n == 1 else f"{name}-{n}") not in taken)
    return name if number == 1 else f"{name}-{number}"


def find(probe, folders):
    """(the driver's path, [(name, library path, what the worker says)], the best first, what it
    says without more), of FOLDERS (strings for LD_LIBRARY_PATH) and of the system: each set of
    versions once, and none that another contains."""
    base, said = driver_path(probe)
    if not said.get("devices"):
        return "", [], said
    tried = [(path, probe(path)) for path in dict.fromkeys(
        joined(folder, base) for folder in ("", *folders))]
    tried = [(path, answer) for path, answer in tried if answer.get("devices")]
    distinct = {}
    for path, answer in tried:
        distinct.setdefault(versions(answer), (path, answer))
    kept = [found for found in distinct if not any(covers(other, found) for other in distinct)]
    kept.sort(key=lambda found: sum(version is None for version in found))
    stacks = []
    for found in kept:
        path, answer = distinct[found]
        stacks.append((name_of(found, {name for name, _, _ in stacks}), path, answer))
    return base, stacks, said


def on_this_machine(worker, nvcc, more):
    """find(), with the toolkit's libraries, those of Python packages, and the folders MORE."""
    return find(lambda path: machine.probe(worker, {"LD_LIBRARY_PATH": path}),
                [*more, *toolkit_folder(nvcc), *package_folders()])
