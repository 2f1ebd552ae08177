// What stands behind one cell of the matrix, and what the signs mean.

import { commandLine, el, icon } from "./dom.js";
import { agreement } from "./matrix.js";
import { bound, cellKind, CODES, counted, curl, hasCode, KINDS, ownPath, subjectTitle } from "./format.js";
import { departuresNote, digestSwatch, relationNote, verdictBadge } from "./facts.js";
import { referenceList } from "./references.js";

const HINT =
  "A code is shown only where this machine measured it; who measured it agrees with the documents, or differs. What " +
  "reprod's own workloads computed was within bound of a float64 reference; a command of the configuration has none, and " +
  "was asked with other seeds instead, unannounced. Point at a cell, focus it with Tab and the " +
  "arrow keys, or tap it for the evidence.";

// Whose runs count in a row, in a sentence.
const COUNTS = {
  model: () => "reprod's own code, which models the source and its cure.",
  library: (row) => `${subjectTitle(row)} itself.`,
  framework: (row) => `${subjectTitle(row)} itself.`,
};

function whose(row, cell) {
  if (!row.workload) return "Nothing of ours stands for it: this is what the documents say.";
  const text = COUNTS[row.subject]?.(row);
  return text ? `${cell.evidence?.runs > 0 ? "Measured" : "Not measured"}: ${text}` : "";
}

/** A panel in NODE; returns show(spot, pinned, variants, recipes), with spot null for
 *  nothing.  ON_CLOSE(): its close button was pressed. */
export function createDetail(node, onClose) {
  let text = "";
  return (spot, pinned, variants, recipes) => {
    node.hidden = !spot;
    const facts = spot?.row.workload ? variants.filter((fact) => fact.workload === spot.row.workload) : [];
    const next = spot ? JSON.stringify([spot.key, spot.row.title, spot.column, spot.cell, pinned, facts, recipes]) : "";
    if (next === text) return;
    text = next;
    const focused = document.activeElement?.dataset.hold;
    node.classList.toggle("pinned", pinned);
    node.replaceChildren(...(spot ? content(spot, pinned, facts, recipes, onClose) : []));
    // The panel is rebuilt when its facts change: whoever is in it stays in it.
    if (focused) node.querySelector(`[data-hold="${focused}"]`)?.focus();
  };
}

function content(spot, pinned, facts, recipes, onClose) {
  const { row, column } = spot;
  const { kind, word, caution } = cellKind(spot.cell);
  const cell = spot.cell ?? {};
  const path = ownPath(cell.href);
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", text: "×", onclick: onClose });
  close.dataset.hold = "close";
  return [
    el("div", { class: "detail-head" }, el("h3", { text: row.title }), pinned ? close : null),
    el("p", { class: "muted" }, ...(row.workload ? [el("code", { text: row.workload }), " · "] : []), column.title),
    el("p", { text: whose(row, cell) }),
    el("p", { class: `badge big ${kind}` }, icon(kind), hasCode(kind) ? `${word}: ${KINDS[kind]}` : KINDS[kind]),
    ...[caution, cell.reason, explanation(cell, kind, recipes), cell.evidence?.basis, cell.note].filter(Boolean).map((line) => el("p", { text: line })),
    evidence(row, cell, kind),
    facts.length ? variantList(facts, row, cell.choices ?? []) : null,
    pinned ? referenceList(row) : null,
    row.operations?.length ? el("p", {}, operationsLink(row)) : null,
    path ? el("p", {}, el("a", { href: path, "data-hold": "devices", "data-evidence": path, text: "What each device showed" })) : null,
    path ? el("p", {}, el("a", { href: path, "data-hold": "link", text: "All evidence (JSON)" })) : null,
    path ? el("div", { class: "command" }, ...held(commandLine("curl command for this cell", curl(path)))) : null,
    pinned ? null : el("p", { class: "muted hint", text: "Click or press Enter to keep this open; Esc closes it." }),
  ].filter(Boolean);
}

/** To what installed versions of a framework computed of this source themselves. */
function operationsLink(row) {
  const own = row.subject === "framework" ? row.subject_name : row.operations[0].split("_")[0];
  return el("a", { href: "#frameworks", "data-operations": own, "data-hold": "operations", text: "What installed versions of the framework compute themselves" });
}

function held(nodes) {
  nodes.forEach((node, index) => (node.dataset.hold = `command-${index}`));
  return nodes;
}

/** The recipes in a code, in words. */
function explanation(cell, kind, recipes) {
  if (!hasCode(kind)) return "";
  if (Object.hasOwn(CODES, cell.code)) return `${cell.code}: ${CODES[cell.code]}.`;
  const known = cell.code.split(" or ").filter((name) => recipes[name]);
  return known.map((name) => `${name}: ${recipes[name]}.`).join(" ");
}

function evidence(row, cell, kind) {
  const list = el("dl");
  const line = (term, text) => list.append(el("dt", { text: term }), el("dd", { text }));
  if (cell.documented) line("Documents say", cell.documented);
  const mark = agreement(row, cell, kind);
  if (mark) line("Agreement", mark);
  const proof = cell.evidence;
  if (proof?.runs > 0) {
    const counts = [counted(proof.runs, "run"), counted(proof.iterations, "iteration"), counted(proof.devices, "device")];
    line("Evidence", counts.join(", "));
    const differ = bound(proof.difference_probability_upper_bound);
    if (kind === "solved") line("A run differs", `${differ} (95 % confidence)`);
  } else if (kind !== "absent") line("Evidence", "none");
  return list;
}

/** What a green variant that is not ours was held against: a reference, or other seeds. */
function earned({ subject, verdict, reason }) {
  return subject !== "model" && verdict === "reproducible" && reason ? el("span", { class: "why", text: reason }) : null;
}

/** The variants of the workload, those that this column's recipes give with their names. */
function variantList(facts, row, choices) {
  const items = facts.map((fact) => {
    const [badge, why] = verdictBadge(fact);
    const chosen = choices.filter((choice) => fact.subject === row.subject && choice.variant === fact.variant);
    const names = chosen.map((choice) => choice.recipe);
    const by = names.length ? el("span", { class: "muted", text: ` (${names.join(", ")})` }) : null;
    const whose = el("span", { class: "muted", text: ` ${subjectTitle(fact)}` });
    const name = el("span", {}, el("code", { text: fact.variant }), whose, by ?? "");
    return el("li", {}, name, badge, why ?? earned(fact), digestSwatch(fact), departuresNote(fact), relationNote(fact));
  });
  return el("ul", { class: "variants", "aria-label": "Variants of this workload" }, ...items);
}

/** The signs and codes in NODE; returns show(recipes). */
export function createLegend(node) {
  let shown = "";
  return (recipes) => {
    const text = JSON.stringify(recipes);
    if (text !== shown) node.replaceChildren(...legend(recipes));
    shown = text;
  };
}

function legend(recipes) {
  const signs = Object.entries(KINDS).map(([kind, text]) => el("li", { class: `badge ${kind}` }, icon(kind), text));
  const codes = Object.entries({ ...recipes, ...CODES }).flatMap(([code, text]) => [
    el("dt", { text: code }),
    el("dd", { text }),
  ]);
  return [
    el("h3", { text: "How to read it" }),
    el("ul", { class: "signs" }, ...signs),
    el("dl", { class: "codes" }, ...codes),
    el("p", { class: "muted", text: HINT }),
  ];
}
