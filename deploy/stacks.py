"""What the scripts that install stacks share: the configuration, the disk, refusals."""
import json
import os
import shutil
import tempfile

SPARE = 64 << 20  # bytes that stay free


class Refused(Exception):
    """What the person who asked is told; nothing was installed."""


def check_room(folder, needed):
    free = shutil.disk_usage(folder).free
    if needed + SPARE > free:
        raise Refused(f"{folder}: {(needed + SPARE) >> 20} MiB are needed, {free >> 20} MiB are free")


def load_config(path):
    """The configuration, checked: PATH's, or an empty one where there is none."""
    try:
        config = json.loads(path.read_text()) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    stacks = config.get("stacks", []) if isinstance(config, dict) else None
    if not isinstance(stacks, list) or not all(isinstance(s, dict) for s in stacks):
        raise Refused(f"{path}: not a configuration of reprod")
    return config


def read_config(path, name):
    """Likewise; it may have no stack NAME."""
    config = load_config(path)
    if any(stack.get("name") == name for stack in config.get("stacks", [])):
        raise Refused(f"{path}: has a stack '{name}' already")
    return config


def write_config(config, path):
    """Whole or not at all."""
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "w") as out:
        json.dump(config, out, indent=2)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())
    os.chmod(draft, path.stat().st_mode & 0o777 if path.exists() else 0o644)
    os.rename(draft, path)


def add_to_config(config, path, entry, cuda_worker):
    """CUDA_WORKER: that of the stack that a configuration without stacks means; None: it means none."""
    # A configuration without stacks means these, which must not go away.
    own = [{"name": "cpu"}] + ([{"name": "cuda", "worker": str(cuda_worker)}] if cuda_worker else [])
    config.setdefault("stacks", own).append(entry)
    write_config(config, path)
