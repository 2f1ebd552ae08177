"""Seeded fleets of eight devices, and what is true of them: which device computes wrong, in which
variants, and how."""
import dataclasses
import random

DEVICES = 8
VARIANTS = ("ordered", "patched")  # besides the control, "unordered"
CONTROL = "unordered"
WRONG = ("wrong in all", "wrong in one case", "wrong, each run another digest")
CONTROLS = ("nothing wrong", "half against half", "half against half, by host")
HOSTS = (1, 1, 1, 1, 1, 2, 2, 2, 4, 8)  # drawn from these


@dataclasses.dataclass
class Truth:
    number: int
    what: str
    hosts: dict  # name: ids of its devices
    wrong: dict = dataclasses.field(default_factory=dict)  # device: the variants
    another: bool = False  # each run of it another digest
    by: int = 1  # else which one

    @property
    def devices(self):
        return [device for devices in self.hosts.values() for device in devices]

    def wrong_in(self, variant):
        return {device for device, variants in self.wrong.items() if variant in variants}

    def named(self):
        """{device: in how many cells it is to be named}: no half is."""
        return {} if self.what in CONTROLS else {device: len(variants) for device, variants in self.wrong.items()}


def draw(seed, number, what, prefix):
    """Fleet NUMBER of WHAT; its devices are called PREFIX and their number, which no other fleet's have."""
    random_ = random.Random(f"{seed} {number} {what}")
    ids = [f"{prefix}{DEVICES * number + d}" for d in range(DEVICES)]
    hosts = 2 if what == CONTROLS[2] else random_.choice(HOSTS[:8] if what in CONTROLS else HOSTS)
    each = DEVICES // hosts
    truth = Truth(number, what, {f"fleet-{number}-host-{h}": ids[h * each:(h + 1) * each] for h in range(hosts)},
                  by=random_.randint(1, 1000))
    if what in WRONG:
        some = VARIANTS if what == WRONG[0] else [random_.choice(VARIANTS)] if what == WRONG[1] else \
            random_.choice([VARIANTS, VARIANTS[:1], VARIANTS[1:]])
        truth.wrong = {random_.choice(ids): set(some)}
        truth.another = what == WRONG[2]
    elif what == CONTROLS[1]:  # whole hosts never are one half
        truth.wrong = {device: set(VARIANTS) for devices in truth.hosts.values()
                       for device in random_.sample(devices, len(devices) // 2)}
    elif what == CONTROLS[2]:
        truth.wrong = {device: set(VARIANTS) for device in random_.choice(list(truth.hosts.values()))}
    return truth


def fleets(seed, count, prefix):
    """COUNT fleets with one wrong device, and for every six of them one control."""
    found = []
    for n in range(count):
        whats = [WRONG[n % len(WRONG)]] + ([CONTROLS[n // 6 % len(CONTROLS)]] if n % 6 == 0 else [])
        for what in whats:
            found.append(draw(seed, len(found), what, prefix))
    return found
