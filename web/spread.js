// How much a cell varies: its sums over its runs, and single elements where two runs were compared.

import { el } from "./dom.js";
import { count, counted, ownPath } from "./format.js";

const COLUMNS = ["Number", "Least", "Greatest", "Range", "Standard deviation", "Apart, in float64 ulp", "Runs"];
const NUMBER = new Intl.NumberFormat("en");

/** What SPREAD, member of /v1/cells/{id}, says; [] where it is null: the cell does not vary. */
export function spreadOf(spread) {
  if (!spread) return [];
  const rows = [["sum", spread.weight_sum], ["loss", spread.loss]].filter(([, values]) => values);
  const left = spread.runs_left_out > 0 ? ` ${counted(spread.runs_left_out, "run")} are left out.` : "";
  return [
    el("h3", { text: "How much it varies" }),
    el("p", { class: "why", text: `Sums of all outputs in the last iteration of each of ${counted(spread.runs, "run")}; those of other iterations, of ${count(spread.iterations)} in all, are not stored.${left} Equal sums are not equal bits.` }),
    rows.length ? tableOf(rows) : null,
    ...rows.filter(([, values]) => values.not_finite > 0).map(([name, values]) => el("p", { class: "why", text: `The ${name} of ${counted(values.not_finite, "run")} is NaN or infinite, and is in none of these.` })),
    elementsOf(spread.elements),
  ].filter(Boolean);
}

function tableOf(rows) {
  const heads = COLUMNS.map((text) => el("th", { scope: "col", role: "columnheader", text }));
  return el(
    "div",
    { class: "scroller", role: "region", tabindex: "0", "aria-label": "How much it varies" },
    el(
      "table",
      { class: "devices spread", role: "table" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)),
      el("tbody", { role: "rowgroup" }, ...rows.map(lineOf)),
    ),
  );
}

function lineOf([name, values]) {
  const texts = [values.least ?? "–", values.greatest ?? "–", real(values.range), real(values.standard_deviation), whole(values.float64_ulp), count(values.runs)];
  return el(
    "tr",
    { role: "row" },
    el("th", { scope: "row", role: "rowheader", text: name }),
    ...texts.map((text, at) => el("td", { role: "cell", "data-name": COLUMNS[at + 1], text })),
  );
}

function elementsOf(elements) {
  if (!elements) return el("p", { class: "why", text: "Of single elements nothing is known: no localisation of this case compared any." });
  const path = ownPath(elements.localisation);
  const name = elements.name ? ` (${elements.name})` : "";
  const text = `Single elements, of two runs at ${elements.place ?? "one place"}, output ${elements.output}${name}: ` +
    `${count(elements.differ)} of ${count(elements.elements)} differ, by at most ${whole(elements.element_ulp)} ulp of ${elements.dtype}. `;
  return el("p", {}, text, path ? el("a", { href: `${path}.txt`, text: "the localisation" }) : "");
}

function real(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "–";
}

/** Of digits, as many as there are: a Number would lose some. */
function whole(text) {
  return /^\d+$/.test(text ?? "") ? NUMBER.format(BigInt(text)) : "–";
}
