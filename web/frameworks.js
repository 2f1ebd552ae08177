// Operations of frameworks: what installed versions earned by their own switches, and what
// the documents say beside it.  Read when somebody opens it, and again while it is open.

import { ApiError, coalesce, getJson, withQuery } from "./api.js";
import { el, fillSelect, icon, setNotice, setText } from "./dom.js";
import { cellKind, counted, hasCode, ownPath, witnessedKind } from "./format.js";

const RETRY_MS = 10000;
const AGAIN_MS = 15000; // thousands of cells are read
const BITS = { same: "same bits as", other: "other bits than", new: "not there in", unknown: "bits not comparable with" };
const ORDER = new Intl.Collator("en", { numeric: true });
const WORDS_SHOWN = 60; // of what raises; more is folded

/** Fills DETAILS (<details>) while it is open.  CHOSEN(name) and CHOOSE(changes) read and
 *  write the page's address: "operations" is a framework, "sources" a table of the
 *  documents.  Returns refresh(now). */
export function createFrameworks(details, chosen, choose) {
  const [only] = details.getElementsByTagName("input");
  const [framework, sources, order] = details.getElementsByTagName("select");
  const [summary, about, notice, table] = ["summary", "about", "notice", "scroller"].map((name) => details.querySelector(`:scope > .${name}`));
  let known = null; // the frameworks that were measured
  let shown = "";

  const read = coalesce(async () => {
    if (!details.open) return;
    if (!shown) table.replaceChildren(el("p", { class: "empty", text: "Reading what each version earned." }));
    try {
      if (!known?.length) known = [...new Set((await getJson("/v1/operations")).items.map((each) => each.framework))];
      const wanted = chosen("operations");
      const own = wanted ? known.find((name) => name.toLowerCase() === wanted.toLowerCase()) ?? "" : known[0] ?? "";
      const { items: profiles } = await getJson("/v1/profiles");
      const tables = profiles.filter(({ columns }) => columns?.some(({ versions }) => versions?.framework === own));
      const source = tables.some(({ id }) => id === chosen("sources")) ? chosen("sources") : "";
      fillSelect(framework, known.map((name) => ({ id: name, title: name })), own, "none yet");
      fillSelect(sources, [{ id: "", title: "all operations of its pack" }, ...tables.map(({ id, title }) => ({ id, title: `sources of ${id}: ${title}` }))], source, "…");
      const answer = own ? await getJson(withQuery("/v1/operations", { framework: own, table: source })) : { items: [] };
      setNotice(notice, "");
      show(own || wanted, source, answer);
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      known = null; // perhaps another one was measured since
      setNotice(notice, `The operations could not be read: ${error.message}`);
      setTimeout(() => read(), RETRY_MS);
    }
  }, AGAIN_MS);

  const show = (own, source, { items, environments_left_out: left }) => {
    const next = JSON.stringify([own, source, items, only.checked, order.value]);
    if (next === shown) return; // whoever is in it stays in it
    shown = next;
    const columns = columnsOf(items);
    const rows = rowsOf(items, source).filter((row) => !only.checked || row.cells.some(stirs));
    if (order.value) rows.sort((a, b) => rank(b) - rank(a) || 0);
    setText(summary, headline(own, columns, items, left));
    setText(about, source ? OF_SOURCES : OF_OPERATIONS);
    table.replaceChildren(rows.length ? tableOf(columns, rows, source) : el("p", { class: "empty", text: emptyText(own, source, items) }));
  };

  details.addEventListener("toggle", () => {
    known = null;
    read(true);
  });
  for (const [select, name] of [[framework, "operations"], [sources, "sources"]])
    select.addEventListener("change", () => {
      choose({ [name]: select.value });
      read(true);
    });
  for (const control of [only, order]) control.addEventListener("change", () => read(true));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-operations]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    choose({ operations: link.dataset.operations, sources: document.getElementById("table-select").value });
    details.open = true;
    details.scrollIntoView({ block: "start" });
    read(true);
  });
  details.open ||= chosen("operations") !== "";
  return (now = false) => read(now);
}

const WITNESSED = "differences can be seen here, which does not show that this operation has none";
const OF_OPERATIONS =
  "A code names the framework's own switches that cured what varied without them, on the device of the column. " +
  "“witnessed”: it did not vary where another operation did, which is not a code.";
const OF_SOURCES =
  "What installed versions computed themselves, source by source of this table. The documents speak of GPUs, in a few rows of the CPU: " +
  "what was measured on the other is not green here, and neither confirms nor refutes them.";

/** Installed versions, each in one environment, older versions first. */
function columnsOf(items) {
  const columns = new Map();
  for (const each of items)
    columns.set(each.environment, { id: each.environment, version: each.version ?? "version unknown", device: deviceOf(each), model: each.model ?? "", threads: each.threads, title: each.environment_title });
  const list = [...columns.values()].sort((a, b) => ORDER.compare(a.version, b.version) || ORDER.compare(a.device, b.device));
  for (const column of list) column.is_double = list.some((other) => other !== column && other.version === column.version && other.device === column.device);
  return list;
}

const deviceOf = ({ backend }) => (backend === "cuda" ? "GPU" : backend === "cpu" ? "CPU" : "device unknown");

/** {name, group, cells}: an operation, in a table of the documents once for each source. */
function rowsOf(items, source) {
  const rows = new Map();
  for (const each of items) {
    const group = source ? each.documented[0] : null;
    const key = JSON.stringify([each.operation, group?.row]);
    if (!rows.has(key)) rows.set(key, { name: each.operation, group, cells: [] });
    rows.get(key).cells.push(each);
  }
  return [...rows.values()];
}

const raises = ({ variants }) => variants.filter(({ verdict }) => verdict === "unsupported");
const varies = ({ variants }) => variants.some(({ verdict }) => verdict === "varies");
const stirs = (cell) => varies(cell) || raises(cell).length > 0 || cell.bits === "other" || cell.bits === "new";
const rank = (row) => (row.cells.some(varies) ? 2 : 0) + (row.cells.some((cell) => raises(cell).length > 0) ? 1 : 0);

function headline(own, columns, items, left) {
  if (!items.length) return `No operation of ${own || "a framework"} was measured here.`;
  const parts = columns.map(({ id, version, device }) => {
    const cells = [...new Map(items.filter((each) => each.environment === id).map((each) => [each.operation, each])).values()];
    const some = [[cells.filter(varies).length, "vary"], [cells.filter((each) => each.state === "measured").length, "earned a code"], [cells.filter((each) => raises(each).length).length, "cannot be computed with a switch"]];
    return `${version} on the ${device}: ${counted(cells.length, "operation")}, ${some.map(([number, word]) => `${number} ${word}`).join(", ")}`;
  });
  const older = left > 0 ? ` ${counted(left, "older environment")} are not shown.` : "";
  return `${own} ${parts.join("; ")}.${older}`;
}

function emptyText(own, source, items) {
  if (items.length) return "No operation varies, raises or changed bits.";
  if (own && source) return "No operation that was measured computes a source of this table.";
  return "Nothing is installed and measured yet: deploy/framework installs a version, and a job measures its operations.";
}

function tableOf(columns, rows, source) {
  const heads = columns.map((column) =>
    el("th", { scope: "col", title: `${column.title} (${column.id})` }, el("strong", { text: column.version }),
      el("span", { class: "why", text: `on the ${column.device}${column.model ? `, ${column.model}` : ""}${column.is_double ? `, ${column.threads ? `${counted(column.threads, "thread")}, ` : ""}environment ${column.id.slice(0, 8)}` : ""}` })),
  );
  const versions = new Map(columns.map(({ id, version }) => [id, version]));
  let group = "";
  const lines = rows.flatMap((row) => {
    const first = row.group && row.group.row !== group;
    group = row.group?.row ?? "";
    const cells = columns.map(({ id }) => cellOf(row.cells.find((each) => each.environment === id), source, versions));
    const head = first ? [el("tr", {}, el("th", { scope: "rowgroup", class: "workload", colspan: columns.length + 1, text: row.group.title }))] : [];
    return [...head, el("tr", {}, el("th", { scope: "row" }, el("code", { text: row.name })), ...cells)];
  });
  return el(
    "table",
    { class: "classes operations" },
    el("caption", { class: "hidden", text: "Codes by operation and installed version" }),
    el("thead", {}, el("tr", {}, el("td"), ...heads)),
    el("tbody", {}, ...lines),
  );
}

function cellOf(cell, source, versions) {
  if (!cell) return el("td", {}, el("span", { class: "badge absent", text: "not there", title: "not measured in this version" }));
  const { documented } = cell;
  const claims = new Map(documented.map((each) => [claimWords(each), each.note]));
  const before = cell.bits && `${BITS[cell.bits] ?? cell.bits} ${versions.get(cell.before) ?? "the version before"}`;
  return el(
    "td",
    {},
    codeOf(cell, source && documented.some(({ applies }) => !applies)),
    ...[...claims].map(([text, title]) => el("span", { class: "why claim", title, text })),
    el("span", { class: "why", text: cell.seen }),
    before && el("span", { class: cell.bits === "other" ? "why changed-bits" : "why", text: before }),
    ...raises(cell).map(wordsOf),
  );
}

/** The code, or what is known instead.  ELSEWHERE: it was not measured where the documents speak of. */
function codeOf(cell, elsewhere) {
  const known = cellKind({ ...cell, evidence: { runs: cell.variants.reduce((sum, { runs }) => sum + runs, 0) } });
  const witness = varies(cell) ? null : cell.variants.find((each) => each.is_control)?.witness; // it did vary, with a switch
  const kind = witnessedKind(known.kind, witness);
  const word = kind === "witnessed" ? kind : known.word;
  const path = ownPath(cell.variants[0]?.href);
  const on = deviceOf(cell);
  const other = elsewhere && (hasCode(kind) || kind === "partial"); // a code, but not of what the documents speak of
  const text = other ? `${on} only: ${word}` : word || kind;
  const title = [elsewhere ? `Measured on the ${on}, of which the documents do not speak here` : `Measured on the ${on}`, cell.reason, kind === "witnessed" && `${witness.text}: ${WITNESSED}`].filter(Boolean).join(": ");
  return el(
    path ? "a" : "span",
    { class: `badge ${other ? "elsewhere" : kind}`, href: path, "data-evidence": path, title, "aria-label": `${cell.operation}, ${cell.version}, ${text}. ${title}` },
    other ? null : icon(kind),
    text,
  );
}

/** What documents say of that version; of which devices, where it is not this one. */
function claimWords({ code, column_title: era, applies, backend }) {
  const of = applies ? "" : backend === "cuda" ? ", of GPUs" : ", of CPUs";
  return era ? `documents: ${code ?? "no code"} (${era}${of})` : "documents: nothing of this version";
}

/** Why a switch cannot be computed, in the framework's own words. */
function wordsOf({ variant, reason }) {
  if (reason.length <= WORDS_SHOWN) return el("span", { class: "why", text: `${variant}: ${reason}` });
  return el("details", { class: "why words" }, el("summary", { text: `${variant}: ${reason.slice(0, WORDS_SHOWN)}…` }), reason);
}
