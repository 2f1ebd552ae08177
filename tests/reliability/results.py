"""Results of campaigns: what RELIABILITY.md is made of (results/*.json)."""
import datetime
import json
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(__file__).resolve().parent / "results"


def commit():
    """Of the sources, and whether they were changed since."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/reliability/results")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


def machine(command):
    """What every result begins with."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"date": datetime.date.today().isoformat(), "commit": commit(), "command": command,
            "machine": f"{os.cpu_count()} processors, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}, "
                       f"{platform.machine()}"}


def write_result(path, result):
    pathlib.Path(path).write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
