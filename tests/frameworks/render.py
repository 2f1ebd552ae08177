"""What a check of frameworks found, as text for a terminal and as workloads/frameworks/RESULTS.md."""

WORDS = {"varies": "varies", "reproducible": "reproducible", "inconclusive": "did not vary",
         "unsupported": "raises", "failing": "fails", "unmeasured": "not measured"}
DRIFT = {"bits_changed": "other bits", "same_bits": "same bits", "varies_now": "varies now",
         "varies": "varies in both", "cannot_be_told_yet": "cannot be told", "appeared": "new",
         "disappeared": "gone", "computed_on_neither_side": "computed in neither",
         "verdict_changed": "another verdict", "algorithm_changed": "another algorithm",
         "cost_changed": "same bits", "fails_now": "fails now"}


def is_lacking(cause):
    """The packs say so of what a version does not have; else the framework refused, in its own words."""
    return "; it came with " in (cause or "")


def word(cell, cause=None):
    """Of a cell that is inconclusive for another reason than that nothing varied, that reason."""
    if cell is None:
        return "not there"
    if cell["verdict"] == "unsupported" and is_lacking(cause):
        return "lacks"
    if cell["verdict"] == "inconclusive" and "did not vary" not in cell["reason"]:
        return "inconclusive"
    if cell["verdict"] == "inconclusive" and cell["witness"]:
        return "witnessed"
    return WORDS.get(cell["verdict"], cell["verdict"])


def variants_of(found):
    names = []
    for version in found["versions"]:
        for key in version["cells"]:
            variant = key.partition("/")[2]
            if variant not in names:
                names.append(variant)
    return sorted(names, key=lambda name: (name != "default", name))


def rows(found):
    """[operation, then for each version its variants, then the drift to it from the one before]"""
    variants = variants_of(found)
    for workload in sorted(found["titles"]):
        row = [workload]
        for index, version in enumerate(found["versions"]):
            row += [word(version["cells"].get(f"{workload}/{variant}"), version["causes"].get(f"{workload}/{variant}"))
                    for variant in variants]
            if index:
                row.append(drift_words(found["drift"][index - 1], workload, variants))
        yield row


def drift_words(drift, workload, variants):
    """One word where all variants agree; else each."""
    said = {variant: DRIFT.get(drift["kinds"].get(f"{workload}/{variant}"), "?") for variant in variants
            if f"{workload}/{variant}" in drift["kinds"]}
    if len(set(said.values())) <= 1:
        return next(iter(said.values()), "not compared")
    return ", ".join(f"{variant}: {words}" for variant, words in said.items())


def head(found):
    variants = variants_of(found)
    names = ["operation"]
    for index, version in enumerate(found["versions"]):
        short = version["stack"].rpartition("-")[2]
        names += [f"{short} {variant}" for variant in variants]
        names += ["bits"] if index else []
    return names


def text(found):
    table = [head(found), *rows(found)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip() for row in table]
    for drift in found["drift"]:
        lines += ["", drift["title"], drift["headline"]]
    for version in found["versions"]:
        if version["unmeasured"]:
            lines.append(f"{version['stack']}: documented and not measured: "
                         + ", ".join(version["unmeasured"]))
    lines += time_lines(found)
    return "\n".join(lines) + "\n"


def time_lines(found):
    """Whose processes the runs were, and how long they took."""
    how = ("One process imported the framework and forked a process for each run; no two runs of a cell are of"
           " one import." if found["shared"] else "Each run is a fresh process that imported the framework itself.")
    lines = [f"{found['runs']} runs of {found['iterations']} iterations each for every cell. {how}"]
    for version in found["versions"]:
        of = f" of {version['imports']} imports" if found["shared"] else ""
        line = f"{version['stack']}: {version['processes']} processes{of}, challenges among them, in" \
            f" {version['seconds']} s, at a load of {version['load']}."
        lines.append(line + sample_words(version["sample"]) + search_words(version["search"]))
    return lines


def sample_words(sample):
    if not sample or not sample["same"] + sample["other"]:
        return ""
    count = len(sample["same"]) + len(sample["other"])
    other = ", ".join(f"`{name}`" for name in sample["other"])
    return f" Fresh processes had the same bits in {len(sample['same'])} of {count} operations that they were asked for" \
        + (f"; other bits: {other}." if other else ".")


def search_words(search):
    """SEARCH is None, or the operations that had not varied, and what of them did when they were searched."""
    if not search or not search["operations"]:
        return ""
    count = search["under"]["contention"]
    words = f" {search['operations']} operations had not varied by themselves, and were measured with {count} load" \
        f" process{'es' * (count > 1)}, filled memory and moved allocations; of these varied: {names_of(search['varied'])}."
    if search["wide"]:
        words += f" {search['wide']} had not varied then, and were measured in the size large with {search['threads']}" \
            f" threads, filled memory and moved allocations; of these varied: {names_of(search['varied_wide'])}."
    for variant, cured in sorted(search["cured_wide"].items()):
        words += f" There `{variant}` cured {names_of(cured)}."
    return words


def names_of(names):
    return ", ".join(f"`{name}`" for name in names) or "none"


def facts_line(version):
    facts = {name: value for name, value in sorted(version["facts"].items())
             if not name.endswith("_files") and name not in (
                 "backend", "model", "architecture", "vector_isa", "libc", "threads", "worker_build",
                 "numpy_simd", "torch_config", "torch_git", "onnxruntime_commit")}
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def only_searched(search, vary):
    """What did not vary by itself, of those that VARY."""
    searched = [name for name in vary if search and name in search["varied"]]
    return f" Of these varied only under load, with filled memory and moved allocations: {names_of(searched)}." if searched else ""


def summary(found):
    """What varied, what cured it, what raised, what changed."""
    lines = []
    for version in found["versions"]:
        cells = version["cells"]
        of_default = [key.partition("/")[0] for key in sorted(cells) if key.endswith("/default")]
        vary = [w for w in of_default if cells[f"{w}/default"]["verdict"] == "varies"]
        lines.append(f"- **{version['stack']}** ({facts_line(version)}): {len(of_default)} operations,"
                     f" {len(vary)} varied" + (": " if vary else "") + ", ".join(f"`{w}`" for w in vary) + "."
                     + only_searched(version["search"], vary))
        for variant in variants_of(found)[1:]:
            cured = [w for w in vary if cells.get(f"{w}/{variant}", {}).get("verdict") == "reproducible"]
            still = [w for w in of_default if cells.get(f"{w}/{variant}", {}).get("verdict") == "varies"]
            refused = [w for w in of_default if cells.get(f"{w}/{variant}", {}).get("verdict") == "unsupported"]
            lacks = [w for w in refused if is_lacking(version["causes"].get(f"{w}/{variant}"))]
            raised = [w for w in refused if w not in lacks]
            for what, which in (("cured of these", cured), ("varied with it", still), ("raised", raised),
                                ("is not in this version, for", lacks)):
                if which:
                    lines.append(f"  - `{variant}` {what}: " + ", ".join(f"`{w}`" for w in which) + ".")
        witnesses = sorted({cell["witness"] for cell in cells.values() if cell["witness"]})
        if witnesses:
            lines.append("  - Witnesses: " + ", ".join(f"`{name}`" for name in witnesses) + ".")
        for key, cause in sorted(version["causes"].items()):
            lines.append(f"  - `{key}`{':' if is_lacking(cause) else ' said:'} “{cause}”")
        if version["unmeasured"]:
            lines.append("  - Documented and not measured: "
                         + ", ".join(f"`{name}`" for name in version["unmeasured"]) + ".")
    for drift in found["drift"]:
        changed = sorted(key for key, kind in drift["kinds"].items() if kind == "bits_changed")
        names = sorted({key.partition("/")[0] for key in changed})
        lines.append(f"- From one version to the next: {drift['headline'].rstrip('.')}. Other bits: "
                     + (", ".join(f"`{name}`" for name in names) or "none") + ".")
    return lines


def document(results):
    machine = results["machine"]
    lines = ["# What was found of frameworks", "",
             f"Measured and written by `{results['command']}`"
             + (", in parts, which GO_ON joined" if results.get("joined") else "")
             + ": nothing in it is typed by hand.", "",
             f"Measured {', '.join(sorted({found['date'] for found in results['frameworks']}))} on {machine['model']}, {machine['processors']} processors"
             f" ({machine['vector_isa']}), {machine['libc']}, kernel {machine['kernel']}.", "",
             "“reproducible” and “varies” are verdicts of the service. “did not vary” is one digest in all runs"
             " where the control did not vary either: nothing showed that a difference could have been seen, so it"
             " is inconclusive. “witnessed” is the same where a witness varied: another operation of that version, with"
             " the settings of the control and under the same circumstances; it shows that a difference could have been seen"
             " there, and not that this operation has none. “raises”: the framework refused, in its own words."
             " “lacks”: that version does not have it, as the pack says. The column “bits” compares a"
             " version with the one before it.", ""]
    for found in results["frameworks"]:
        first, *times = time_lines(found)
        lines += [f"## {found['framework']}", "", first, "", *(f"- {line}" for line in times), "",
                  *summary(found), ""]
        header = head(found)
        lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        lines += ["| " + " | ".join(row) + " |" for row in rows(found)] + [""]
    return "\n".join(lines).rstrip() + "\n"
