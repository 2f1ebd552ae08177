"""Plausible answers of the REST interface, made up for tests of the page."""

import hashlib

NOW = "2026-01-05T10:11:12Z"
COLUMNS = [
    ("tf-1.14", "TF 1.14, 1.15, 2.0"),
    ("tf-2.1", "NGC 19.06+ / TF 2.1"),
    ("tf-2.2", "TF 2.2"),
    ("tf-2.3", "TF 2.3"),
    ("ngc-20.03", "NGC 20.03+"),
]
ROWS = [
    ("conv_autotune", "TF auto-tuning of cuDNN convolution algorithms", "TCD or TDP|TDO|TDO|TDO|"),
    ("conv_wgrad", "cuDNN convolution backprop to weight gradients", "TCD or TDP|TDO|TDO|TDO|"),
    ("conv_dgrad", "cuDNN convolution backprop to data gradients", "TCD or TDP|TDO|TDO|TDO|"),
    ("maxpool_bwd", "cuDNN max-pooling backprop", "TCD or TDP|TDO|TDO|TDO|"),
    ("ctc_loss", "cuDNN CTC loss", "NS|NS|NS|TDO|"),
    ("bias_add_bwd", "tf.nn.bias_add backprop", "TDP|TDO|TDO|TDO|"),
    ("xla_reduction", "XLA reductions on GPU", "NS|NS|TDO|TDO|"),
    ("softmax_xent", "Fused softmax/cross-entropy ops backprop", "NS|NS|NS|NS|"),
    ("resize_bilinear_bwd", "tf.image.resize_bilinear backprop", "|NS||TDO|TDO"),
]
MEASURED = ["conv_wgrad", "maxpool_bwd", "bias_add_bwd", "ctc_loss", "reduce_sum"]
VARIANTS = {"bias_add_bwd": ["unordered", "ordered", "patched"], "reduce_sum": ["unordered", "ordered", "matmul"]}
REFERENCES = {"maxpool_bwd": [
    {"kind": "pull request", "id": "tensorflow PR 25269", "title": "deterministic <max-pooling>",
     "url": "https://github.com/tensorflow/tensorflow/pull/25269", "state": "merged 2020-06", "solved": "TF 1.14"},
    {"kind": "slides", "id": "GTC S9911 slides 41-42", "title": "root cause and solution",
     "url": "javascript:window.pwned=2", "state": None, "solved": None}]}
RECIPES = [
    ("none", "no action"),
    ("TCD", "set TF_CUDNN_DETERMINISTIC to 1"),
    ("TDP", "apply tfdeterminism.patch"),
    ("TDO", "set TF_DETERMINISTIC_OPS to 1"),
]
ENVIRONMENT = {"id": "e1" * 16, "title": "cpu · AMD EPYC 7B13 · 2 threads · worker 1f6c9a"}
OTHER = {"id": "e2" * 16, "title": "cuda · NVIDIA H200 · driver 580.65 · CUDA 13.0 · cuDNN 9.12"}
TABLES = [("documents-2020", "Documents of 2020"), ("documents-2023", "Documents of 2023")]


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()


def documents_cell(workload, column, documented, measured):
    cell = {"column": column, "code": None, "state": "unmeasured", "reason": "no run has completed",
            "documented": documented or None, "agrees": None, "href": None, "note": None, "footnote": None,
            "evidence": {"runs": 0, "iterations": 0, "devices": 0, "difference_probability_upper_bound": 1}}
    if not documented:
        cell.update(state="absent", reason=None)
    elif measured:
        cell["choices"] = [{"recipe": "none", "variant": "unordered"}, {"recipe": "TDO", "variant": "ordered"}]
        cell.update(code=documented, state="measured", reason=None, agrees=True, href="/v1/cells/7",
                    evidence={"runs": 50, "iterations": 1000, "devices": 3,
                              "difference_probability_upper_bound": 0.0581})
    return cell


def variant(workload, name, index):
    ordered = name != "unordered"
    return {"workload": workload, "variant": name, "subject": "model", "subject_name": None, "verdict": "reproducible" if ordered else "varies",
            "reason": "1 digest in 50 runs, 1,000 iterations, 3 devices; the control varied" if ordered
            else "3 digests in 50 runs", "runs": 50, "iterations": 1000, "devices": 3,
            "difference_probability_upper_bound": 0.0581 if ordered else 1,
            "mean_milliseconds": 1.6 * (index + 1) * (1.06 if ordered else 1),
            "cost": {"against": "unordered", "median": 1.06, "low": 1.01, "high": 1.12, "size": "small"} if ordered else None,
            "digest": digest(f"{workload}{name if not ordered else ''}"), "href": "/v1/cells/7"}


def source_of(title):
    """Whom the row of the documents speaks of."""
    return ("library", "cuDNN") if title.startswith("cuDNN") else ("framework", "TensorFlow")


def row_of(workload, title, codes, subject, name, measured):
    cells = [documents_cell(workload, column, documented, measured)
             for (column, _), documented in zip(COLUMNS, codes.split("|"))]
    return {"id": workload, "workload": workload, "title": title, "references": [], "subject": subject, "subject_name": name,
            "subject_title": name or "our models", "is_source": name is not None, "cells": cells}


def counts(rows):
    found = {}
    for row in rows:
        one = found.setdefault((row["subject"], row["subject_name"]), {
            "subject": row["subject"], "subject_name": row["subject_name"], "version": None, "cells": 0, "measured": 0,
            "as_documented": 0, "not_as_documented": 0, "variants": 4})
        for cell in row["cells"]:
            one["cells"] += cell["state"] != "absent"
            one["measured"] += cell["state"] == "measured"
            one["as_documented"] += cell["agrees"] is True
    return list(found.values())


def matrix(table="documents-2020", environment=ENVIRONMENT, measured=MEASURED):
    rows = [row for workload, title, codes in ROWS
            for row in (row_of(workload, title, codes, *source_of(title), False),
                        row_of(workload, title, codes, "model", None, workload in measured))]
    variants = [variant(workload, name, index) for index, workload in enumerate(measured)
                for name in VARIANTS.get(workload, ["unordered", "ordered"])]
    return {"view": "documents", "table": table, "as_of": NOW, "environment": environment, "counts": counts(rows),
            "headline": "15 codes of reprod's own models; neither TensorFlow nor cuDNN took part",
            "columns": [{"id": key, "title": title} for key, title in COLUMNS],
            "rows": rows, "variants": variants}


def set_cell(answer, workload, column, **changes):
    """Of the row of our model."""
    for row in answer["rows"]:
        for cell in row["cells"]:
            if (row["workload"], row["subject"], cell["column"]) == (workload, "model", column):
                cell.update(changes)


def job(number, state="finished", done=220, total=220, failed=0, eta=None, request=None):
    return {"id": f"01JGV{number:021d}", "state": state, "created_at": NOW,
            "finished_at": NOW if state in ("finished", "cancelled") else None,
            "progress": {"runs_total": total, "runs_done": done, "runs_failed": failed, "eta_seconds": eta},
            "request": request or {"survey": True}}


def profiles():
    recipes = [{"name": name, "title": title} for name, title in RECIPES]
    return [{"id": key, "title": title, "recipes": recipes} for key, title in TABLES]


def workloads():
    return [{"workload": row["workload"], "backend": backend, "references": REFERENCES.get(row["workload"], []),
             "variants": [{"name": name} for name in VARIANTS.get(row["workload"], ["unordered", "ordered"])]}
            for row in matrix()["rows"] for backend in ("cpu", "cuda")]


def stacks():
    return [{"name": "cpu", "cause": None}, {"name": "cudnn-9.12", "cause": None},
            {"name": "cudnn-8.9", "cause": "libcudnn.so.8 is cut off"}]


def filled():
    return {"matrix": matrix(), "jobs": [job(1)], "environments": [ENVIRONMENT, OTHER], "profiles": profiles(),
            "workloads": workloads(), "stacks": stacks()}


def empty():
    return {"matrix": matrix(environment=None, measured=[]), "jobs": [], "environments": [], "profiles": profiles()}


def survey():
    wgrad = {"workloads": ["conv_wgrad"], "variants": ["unordered", "ordered"], "runs": 5}
    return dict(filled(), matrix=matrix(measured=MEASURED[:2]),
                jobs=[job(3, "queued", 0, 10, request=wgrad), job(2, "running", 97, 220, 2, 31),
                      job(1, "cancelled", 3, 10, request=wgrad)])


def troubled():
    """Every state that a cell can have, and departures from the documents."""
    answer = filled()
    cells = answer["matrix"]
    none = {"code": None, "agrees": None}
    set_cell(cells, "conv_wgrad", "tf-2.2", state="stale", reason="the last run is 9 days old", **none)
    set_cell(cells, "conv_wgrad", "tf-2.3", state="failing", reason="ordered: 3 of 5 runs crashed (SIGSEGV)", **none)
    set_cell(cells, "maxpool_bwd", "tf-1.14", state="inconclusive", reason="the control did not vary in 50 runs", **none)
    set_cell(cells, "maxpool_bwd", "tf-2.2", code="NS", agrees=False)
    set_cell(cells, "bias_add_bwd", "tf-1.14", code="DET", agrees=False)
    set_cell(cells, "ctc_loss", "tf-2.1", state="declared", code="NS!", agrees=None)
    set_cell(cells, "xla_reduction", "tf-2.1", state="unsupported", reason="no XLA on this backend")
    for index, verdict in enumerate(["stale", "failing", "inconclusive", "unsupported", "unmeasured"]):
        cells["variants"][index].update(verdict=verdict, reason=f"it is {verdict}")
    cells["variants"][4].update(digest=None, mean_milliseconds=None)
    answer["jobs"] = [job(4, "finished", 220, 220, 31), job(1)]
    return answer


SCENARIOS = {"filled": filled, "empty": empty, "survey": survey, "troubled": troubled}
