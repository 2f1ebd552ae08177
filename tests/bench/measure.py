"""What benchmarks are made of: things measured in turns, and the ratio of each pair.

Two things are compared by running them alternately, so that what else the machine does meets
both.  The ratio is the median over the pairs, its spread the quartiles over the pairs."""
import statistics
import time


def alternate(pairs, first, second):
    """PAIRS values of each, measured in turns."""
    values = [(first(), second()) for _ in range(pairs)]
    return [a for a, _ in values], [b for _, b in values]


def milliseconds(action):
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def row(name, what, unit, values, peer=None, peer_what=None, target=None):
    """One line of the table.  VALUES are compared with PEER's, pair by pair, if there is one.
    TARGET is (sign, bound) of the ratio, or of the value where there is no peer; None: none."""
    result = {"benchmark": name, "what": what, "unit": unit, "median": statistics.median(values),
              "quartiles": quartiles(values), "count": len(values), "peer": None, "ratio": None,
              "target": None, "met": None}
    judged = result["median"]
    if peer is not None:
        ratios = [a / b for a, b in zip(values, peer)]
        judged = statistics.median(ratios)
        result["peer"] = {"what": peer_what, "median": statistics.median(peer),
                          "quartiles": quartiles(peer)}
        result["ratio"] = {"median": judged, "quartiles": quartiles(ratios)}
    if target is not None:
        sign, bound = target
        result["target"] = f"{'≤' if sign == '<=' else '≥'} {bound:g}"
        result["met"] = judged <= bound if sign == "<=" else judged >= bound
    return result


def not_measured(name, what, why, target=None):
    """A line that says why there is no figure."""
    return {"benchmark": name, "what": what, "not_measured": why, "target": target, "met": None}


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def line(result):
    if "not_measured" in result:
        return [result["benchmark"], result["what"], "", "", "", result["target"] or "",
                f"not measured: {result['not_measured']}"]
    low, high = result["quartiles"]
    peer, ratio = result["peer"], result["ratio"]
    return [result["benchmark"], result["what"],
            f"{number(result['median'])} {result['unit']} ({number(low)} … {number(high)})",
            f"{peer['what']}: {number(peer['median'])}" if peer else "",
            f"{ratio['median']:.3g} ({ratio['quartiles'][0]:.3g} … {ratio['quartiles'][1]:.3g})"
            if ratio else "",
            result["target"] or "", {True: "met", False: "NOT MET", None: ""}[result["met"]]]


HEADS = ["benchmark", "what", "median (quartiles)", "peer", "ratio (quartiles)", "target", ""]


def table(results):
    lines = [HEADS] + [line(result) for result in results]
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(HEADS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
                     for cells in lines)
