// The measured facts: one line a workload x variant, with the bits as stripes.

import { el, icon, setAttribute, setChildren, setText } from "./dom.js";
import { bound, count, digestColours, hasCode, milliseconds, ownPath, subjectTitle, verdictKind } from "./format.js";

const COLUMNS = ["Workload", "Variant", "Measured", "Verdict", "Bits"].concat(
  ["Runs", "Iterations", "Devices", "A run differs", "Mean", "Cost"], // figures
);

/** A table in PARENT; returns update(variants).  Roles are written out because the rows
 *  become cards on a narrow screen, and a table that is no table box loses its meaning. */
export function createFacts(parent) {
  const rows = new Map(); // "workload/variant" -> {tr, text}
  const body = el("tbody", { role: "rowgroup" });
  const empty = el("p", { class: "empty", text: "Nothing has been measured here yet." });
  const heads = COLUMNS.map((text) => el("th", { scope: "col", role: "columnheader", text }));
  const table = el(
    "table",
    { class: "facts", role: "table" },
    el("caption", { class: "hidden", text: "Measured facts by workload and variant" }),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)),
    body,
  );
  parent.append(empty);

  return (variants) => {
    const shown = variants.map((each) => {
      const key = `${each.workload}/${each.variant}`;
      const row = rows.get(key) ?? { tr: el("tr", { role: "row" }), text: "" };
      rows.set(key, row);
      const text = JSON.stringify(each);
      if (row.text !== text) fill(row.tr, each);
      row.text = text;
      return row.tr;
    });
    setChildren(body, shown);
    setChildren(parent, [shown.length ? table : empty]);
  };
}

/** The digest as four stripes and its first eight hex digits. */
export function digestSwatch(fact) {
  const colours = digestColours(fact.digest);
  if (!colours) return el("span", { class: "digest", text: "–" });
  const stripes = el("span", { class: "swatch", "aria-hidden": "true" }, ...colours.map(() => el("i")));
  colours.forEach((colour, index) => stripes.children[index].style.setProperty("background-color", colour));
  const varies = fact.verdict === "varies";
  const note = varies ? (fact.distinct_digests > 1 ? ` 1 of ${count(fact.distinct_digests)}` : " and others") : "";
  const title = `digest ${fact.digest}${varies ? ", the most frequent one" : ""}`;
  return el("span", { class: "digest", title }, stripes, el("code", { text: fact.digest.slice(0, 8) }), note);
}

/** What the workload expects of these bits, compared with another variant's; null: nothing. */
export function relationNote({ relation }) {
  if (!relation) return null;
  const { variant, expected, seen, case: where } = relation;
  const must = expected === "equal" ? "equal" : "differ from";
  if (!seen) return el("span", { class: "why", text: `must ${must} ${variant}: not known yet` });
  const what = seen === "equal" ? "equals" : "differs from";
  if (seen === expected) return el("span", { class: "why", text: `${what} ${variant}, as it must` });
  const place = where ? ` (${where.size}, ${where.dtype}, seed ${where.seed})` : "";
  return el("span", { class: "badge failing" }, icon("failing"), `${what} ${variant}${place}, but must ${must} it`);
}

/** [badge, why]; why is null for a verdict that needs no explanation. */
export function verdictBadge(fact) {
  const kind = verdictKind(fact.verdict);
  const why = fact.reason && !hasCode(kind) ? el("span", { class: "why", text: fact.reason }) : null;
  return [el("span", { class: `badge ${kind}` }, icon(kind), String(fact.verdict ?? "unmeasured")), why];
}

/** How many runs showed another digest than the most frequent one: "12 of 50". */
function departing({ departures }) {
  return departures ? `${count(departures.runs.departed)} of ${count(departures.runs.of)}` : "–";
}

/** The same with iterations and intervals, as the API says it; null for what does not vary. */
export function departuresNote({ departures }) {
  return departures ? el("span", { class: "why", text: departures.text }) : null;
}

/** Time of the variant over that of its control, as the API measured it: "0.63 ×". */
function costOf(fact) {
  if (fact.cost_note) return "< 1 ms";
  if (!(fact.cost?.median > 0)) return "–";
  const elsewhere = fact.cost.size && fact.size && fact.cost.size !== fact.size;
  return `${fact.cost.median.toFixed(2)} ×${elsewhere ? ` in ${fact.cost.size}` : ""}`;
}

function costTitle({ cost, cost_note: note }) {
  if (note) return note;
  return cost?.median > 0
    ? `time over that of ${cost.against}${cost.size ? `, size ${cost.size}` : ""}: quartiles ${cost.low.toFixed(2)} to ${cost.high.toFixed(2)}`
    : null;
}

function fill(tr, fact) {
  if (tr.children.length === 0) tr.append(...COLUMNS.map((name, index) => cellOf(name, index)));
  const [workload, variant, subject, verdict, bits, ...figures] = tr.children;
  setText(workload, fact.workload);
  const path = ownPath(fact.href);
  const label = `Evidence of ${fact.workload}, ${fact.variant}`;
  variant.replaceChildren(path ? el("a", { href: path, "data-evidence": path, text: fact.variant, "aria-label": label }) : fact.variant);
  setText(subject, subjectTitle(fact));
  verdict.replaceChildren(...verdictBadge(fact).filter(Boolean));
  bits.replaceChildren(...[digestSwatch(fact), relationNote(fact)].filter(Boolean));
  const words = [
    count(fact.runs),
    count(fact.iterations),
    count(fact.devices),
    fact.verdict === "reproducible" ? bound(fact.difference_probability_upper_bound) : departing(fact),
    milliseconds(fact.mean_milliseconds),
    costOf(fact),
  ];
  figures.forEach((td, index) => setText(td, words[index]));
  setAttribute(figures[3], "title", fact.departures?.text ?? null);
  setAttribute(figures.at(-1), "title", costTitle(fact));
  setAttribute(tr, "title", fact.reason || null);
}

function cellOf(name, index) {
  if (index === 0) return el("th", { scope: "row", role: "rowheader" });
  return el("td", { role: "cell", "data-name": name, class: index > 4 ? "figure" : null });
}
