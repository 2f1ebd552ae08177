"""Where calls were struck: functions of reprod's sources, from the frames that the library noted."""
import collections
import subprocess

from plan import BUILD

# The first of these that is among a place's functions names its phase.
PHASES = [
    ("migration", {"migrate_latest"}),
    ("backup", {"backup_main", "backup_database", "backup_make"}),
    ("fsck", {"fsck_main", "fsck_run", "service_check"}),
    ("stop", {"store_close", "stopping_advance", "api_close", "release", "fleet_free"}),
    ("start: database", {"store_open", "connection_open_writer", "connection_open_beside"}),
    ("job stored", {"jobs_insert"}),
    ("run begun", {"runs_begin"}),
    ("run finished", {"runs_finish"}),
    ("run lost", {"runs_lose", "runs_lose_all"}),
    ("other transaction", {"run_write"}),
    ("group commit", {"run_commit"}),
    ("reading", {"reader_main"}),
    ("agent: a worker starts", {"spawn", "runs_start"}),
    ("HTTP", {"api_pump", "dispatch", "run_api"}),
    ("run on its way", {"runner_kick", "link_run", "runner_next"}),
    ("agent's line", {"link_open", "link_read", "link_start"}),
    ("loop", {"run_loop", "run_store"}),
    ("agent", {"agent_main"}),
    ("start", {"serve_main", "serve"}),
]


class Symbols:
    """Functions of a program by offset, inlined ones included, innermost first."""

    program = BUILD / "reprod"

    def __init__(self):
        self.known = {}

    def learn(self, offsets, program):
        new = sorted(set(offsets) - set(self.known))
        if not new:
            return
        # A frame is where it returns to: the call is before that.
        done = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", str(program)], text=True, capture_output=True,
                              input="".join(f"{offset - 1:#x}\n" for offset in new), check=True)
        found, current = collections.defaultdict(list), None
        lines = iter(done.stdout.splitlines())
        for line in lines:
            if line.startswith("0x"):
                current = int(line, 16) + 1
            else:
                where = next(lines).split(" ")[0].rsplit(":", 1)[0]
                found[current].append((line, where))
        for offset in new:
            self.known[offset] = found[offset]

    def functions(self, frames):
        """Of reprod itself, innermost first; the libraries between are left out."""
        offsets = [int(offset, 16) for name, offset in (frame.rsplit("+", 1) for frame in frames) if name == "reprod"]
        self.learn(offsets, self.program)
        return [function for offset in offsets for function, _ in self.known[offset] if function != "??"]


def phase_of(role, call, path, functions):
    if role == "worker":
        return "worker"
    names = set(functions)
    if role == "serve" and path == "reprod.db" and call in ("write", "fsync", "truncate", "any") and \
            names & {"run_commit", "release"} and "store_open" not in names:
        return "checkpoint"
    for phase, members in PHASES:
        if names & members:
            return phase
    return f"{role}: elsewhere"
