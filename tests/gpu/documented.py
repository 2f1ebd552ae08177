"""What the documents' tables lead one to expect of each variant (pure, but for reading them)."""
import json

import machine

PROFILES = ("documents-2020", "documents-2023", "pytorch")
SUBJECTS = ("framework", "library", "model")


def read_tables():
    folder = machine.ROOT / "workloads" / "profiles"
    return [json.loads((folder / f"{name}.json").read_text()) for name in PROFILES]


def expected_of(cell, subject):
    """{variant: whether it is reproducible}, as the cell's documented code has it, of the variants that
    stand for it in SUBJECT."""
    code, variants = cell.get("documented"), dict(cell.get(subject, {}))
    plain = variants.pop("none", None)
    if code is None or code.endswith("?") or plain is None:
        return {}
    if code == "DET":
        return {plain: True}
    worked = code.split(" or ")
    found = {plain: False, **{variant: False for recipe, variant in variants.items()
                              if recipe not in worked}}
    found.update({variant: True for recipe, variant in variants.items() if recipe in worked})
    return {variant: good for variant, good in found.items() if variant not in (None, "raises")}


def rows(tables):
    """{workload: {"titles", "codes": [(table, column, code)], "expected": {subject: {variant: set}}}}"""
    found = {}
    for table in tables:
        columns = {column["id"]: column["title"] for column in table["columns"]}
        for row in (row for row in table["rows"] if "workload" in row):
            one = found.setdefault(row["workload"], {"title": row["title"], "codes": [], "expected": {}})
            for column, cell in row["cells"].items():
                code = (table["table"], columns[column], cell.get("documented") or "–")
                one["codes"] += [code] if code not in one["codes"] else []
                for subject in SUBJECTS:
                    for variant, good in expected_of(cell, subject).items():
                        one["expected"].setdefault(subject, {}).setdefault(variant, set()).add(good)
    return found


def codes_text(codes):
    """Columns of a table with one code together."""
    parts = []
    for table in dict.fromkeys(table for table, _, _ in codes):
        groups = {}
        for _, column, code in (one for one in codes if one[0] == table):
            groups.setdefault(code, []).append(column)
        parts.append(f"- {table}: " + "; ".join(f"**{code}** ({', '.join(columns)})"
                                                for code, columns in groups.items()))
    return "Documented:\n\n" + "\n".join(parts)


WORDS = {"varies": "varies", "reproducible": "is reproducible",
         "depends on the table": "depends on the table", "–": "is not said"}


def expectation(goods):
    if goods is None:
        return "–"
    return {(False,): "varies", (True,): "reproducible"}.get(tuple(sorted(goods)), "depends on the table")
