"""deploy/prometheus/dashboard.json against the types that Grafana's own schemas generate; no Grafana runs here."""
import copy
import enum
import importlib
import json
import sys
import typing

import pytest

from prometheus import CACHE, FOLDER

TYPES = CACHE / "grafana"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
# What Grafana writes, and these types do not know.
LEFT_OUT = {"$.templating.list[1].definition"}

pytestmark = [pytest.mark.long, pytest.mark.skipif(not TYPES.is_dir() or sys.version_info < (3, 11),
                                                   reason="no types of Grafana's here: make get-prometheus gets them")]


@pytest.fixture(scope="module")
def grafana():
    """Its module NAME."""
    sys.path.insert(0, str(TYPES))
    importlib.import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()
    yield lambda name: importlib.import_module(f"grafana_foundation_sdk.{name}")
    sys.path.remove(str(TYPES))


def lost(before, after, where="$"):
    """What is in BEFORE and not in AFTER."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {name for key, each in before.items()
                for name in (lost(each, after[key], f"{where}.{key}") if key in after else {f"{where}.{key}"})}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return {name for index, each in enumerate(before) for name in lost(each, after[index], f"{where}[{index}]")}
    return set() if before == after else {where}


def choices(hint):
    """The enumerations that a value of this type may be of."""
    found = [hint] if isinstance(hint, type) and issubclass(hint, enum.Enum) else []
    return found + [each for part in typing.get_args(hint) for each in choices(part)]


def unknown_choices(value, where="$"):
    """Values that are none of their enumeration."""
    if isinstance(value, (list, tuple)):
        return [name for index, each in enumerate(value) for name in unknown_choices(each, f"{where}[{index}]")]
    if not type(value).__module__.startswith("grafana_foundation_sdk") or isinstance(value, enum.Enum):
        return []
    found = []
    for name, hint in typing.get_type_hints(type(value).__init__).items():
        each = getattr(value, name, None)
        known = [one.value for kind in choices(hint) for one in kind]
        if known and each is not None and not isinstance(each, (list, dict)) and each not in known:
            found.append(f"{where}.{name}: {each!r} is none of {known}")
        found += unknown_choices(each, f"{where}.{name}")
    return found


def faults(grafana, board):
    read = grafana("models.dashboard").Dashboard.from_json(copy.deepcopy(board))
    written = json.loads(grafana("cog.encoder").JSONEncoder().encode(read))
    units = {value for name, value in vars(grafana("models.units")).items() if isinstance(value, str) and name[0] != "_"}
    used = [panel["fieldConfig"]["defaults"].get("unit", "short") for panel in board["panels"]]
    return sorted(lost(board, written) - LEFT_OUT) + unknown_choices(read) + [unit for unit in used if unit not in units]


def test_the_dashboard_has_grafanas_types(grafana):
    assert faults(grafana, DASHBOARD) == []
    kinds = {type(target).__module__.rsplit(".", 1)[1]
             for panel in grafana("models.dashboard").Dashboard.from_json(copy.deepcopy(DASHBOARD)).panels for target in panel.targets}
    assert kinds == {"prometheus"}


@pytest.mark.parametrize("path, value, said", [
    (("panels", 0, "descripton"), "?", "$.panels[0].descripton"),
    (("panels", 0, "options", "colorMod"), "value", "$.panels[0].options.colorMod"),
    (("panels", 0, "options", "colorMode"), "rainbow", "'rainbow' is none of"),
    (("panels", 0, "targets", 0, "expression"), "up", "$.panels[0].targets[0].expression"),
    (("panels", 0, "fieldConfig", "defaults", "unit"), "furlongs", "furlongs"),
    (("templating", "list", 0, "type"), "database", "'database' is none of"),
])
def test_what_is_wrong_is_found(grafana, path, value, said):
    board = copy.deepcopy(DASHBOARD)
    place = board
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert any(said in fault for fault in faults(grafana, board)), faults(grafana, board)
