// The documents table: rows are sources of non-determinism, columns framework versions.
// The table is built once for a set of rows and columns; after that only cells whose
// content changed are touched, so that nothing moves while a survey runs.

import { el, icon, setAttribute, setText } from "./dom.js";
import { cellKind, count, counted, hasCode, KINDS, ONE_FACT, subjectTitle, superscript } from "./format.js";

const CAPTION = "Solution codes by source of non-determinism and framework version";

/** A table in PARENT, the notes to its cells in NOTES.  A source has a row for each subject:
 *  what computed.  ON.preview(spot | null): a cell is pointed at or focused;
 *  ON.pin(spot, wanted): a cell was chosen, or chosen again.  A spot is {key, row, column,
 *  cell}, the last three as the API has them. */
export function createMatrix(parent, notes, on) {
  const spots = new Map(); // key -> {key, button, row, column, cell, text}
  let shape = "";
  let columns = [];
  let active = null; // key of the one cell that Tab reaches

  const update = (matrix) => {
    const next = JSON.stringify([matrix.columns, matrix.rows.map((row) => [keyOf(row), row.title, row.subject_title])]);
    const fresh = next === shape;
    if (!fresh) build(matrix);
    shape = next;
    for (const row of matrix.rows)
      for (const cell of row.cells) fill(spots.get(keyOf(row, cell.column)), row, cell, fresh);
    for (const spot of spots.values()) if (spot.text === null) fill(spot, spot.row, null, false);
    showNotes(notesOf(matrix));
  };

  const showNotes = (texts) => {
    if (texts.join("\n") !== [...notes.children].map((each) => each.textContent).join("\n"))
      notes.replaceChildren(...texts.map((text) => el("li", { text })));
  };

  const build = (matrix) => {
    const kept = active;
    spots.clear();
    columns = matrix.columns;
    const table = el(
      "table",
      { class: "matrix" },
      el("caption", { class: "hidden", text: CAPTION }),
      headOf(columns),
      el("tbody", {}, ...matrix.rows.map(rowOf)),
    );
    table.style.setProperty("--columns", columns.length);
    parent.replaceChildren(matrix.rows.length ? table : el("p", { class: "empty", text: "No row of this table is of this subject." }));
    move(spots.has(kept) ? kept : spots.keys().next().value, false);
  };

  const rowOf = (row) =>
    el(
      "tr",
      { class: row.is_source ? "source" : "beside" },
      el(
        "th",
        { scope: "row" },
        el("span", { class: row.is_source ? "title" : "hidden", text: row.title }),
        row.is_source && row.workload ? el("code", { text: row.workload }) : "",
        el("span", { class: `subject ${row.subject}`, text: subjectTitle(row) }),
      ),
      ...columns.map((column) => {
        const key = keyOf(row, column.id);
        const button = el("button", { type: "button", class: "cell", tabindex: "-1", "data-key": key });
        setAttribute(button, "aria-controls", "detail");
        setAttribute(button, "aria-pressed", "false");
        spots.set(key, { key, button, row, column, cell: null, text: null });
        return el("td", {}, button);
      }),
    );

  const move = (key, focus) => {
    const next = spots.get(key);
    if (!next) return;
    spots.get(active)?.button.setAttribute("tabindex", "-1");
    active = key;
    next.button.setAttribute("tabindex", "0");
    if (focus) next.button.focus();
  };

  const spotAt = (event) => spots.get(event.target.closest?.("button.cell")?.dataset.key);

  parent.addEventListener("keydown", (event) => {
    const spot = spotAt(event);
    const target = spot && neighbour(spot.button, event.key, event.ctrlKey);
    if (!target) return;
    event.preventDefault();
    move(target.dataset.key, true);
  });
  parent.addEventListener("focusin", (event) => {
    const spot = spotAt(event);
    if (!spot) return;
    move(spot.button.dataset.key, false);
    on.preview(spot);
  });
  parent.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse") on.preview(spotAt(event) ?? null);
  });
  parent.addEventListener("pointerleave", () => on.preview(spots.get(document.activeElement?.dataset.key) ?? null));
  // Focus, which may move the pin, comes between pointerdown and click.
  let pressed = false;
  const isPressed = (spot) => spot?.button.getAttribute("aria-pressed") === "true";
  parent.addEventListener("pointerdown", (event) => (pressed = isPressed(spotAt(event))));
  parent.addEventListener("click", (event) => {
    const spot = spotAt(event);
    if (spot) on.pin(spot, !(event.detail === 0 ? isPressed(spot) : pressed));
  });

  return {
    /** Shows MATRIX, as the API has it. */
    update,
    /** The spot of "workload/subject/column", or undefined. */
    spot: (key) => spots.get(key),
    /** Marks KEY (or nothing, null) as chosen. */
    mark(key) {
      for (const [each, spot] of spots) setAttribute(spot.button, "aria-pressed", each === key);
    },
  };
}

function keyOf(row, column = "") {
  return `${row.id}/${row.subject}/${column}`;
}

/** What was measured and by whom, in one sentence. */
export function matrixHeadline(matrix) {
  const text = matrix.headline ?? "";
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "";
}

/** The codes of each subject: never one number for several. */
export function matrixSummary(matrix) {
  return (matrix.counts ?? []).map((each) => {
    const whose = [subjectTitle(each), each.version].filter(Boolean).join(" ");
    if (!(each.cells > 0)) return `${whose}: no code that could be measured.`;
    const codes = counted(each.cells, "code");
    if (!(each.measured > 0)) return `${whose}: none of ${codes} measured.`;
    const differ = each.not_as_documented > 0 ? `, ${count(each.not_as_documented)} not` : "";
    return (
      `${whose}: ${count(each.measured)} of ${codes} measured, from ${counted(each.variants, "variant")}; ` +
      `${count(each.as_documented)} as the documents say${differ}.`
    );
  });
}

/** The notes in the order of their numbers, "¹ computed on the CPU", and which containers the
 *  columns are of. */
function notesOf(matrix) {
  const cells = matrix.rows.flatMap((row) => row.cells);
  const known = new Map(cells.filter((cell) => cell.footnote > 0).map((cell) => [cell.footnote, cell.note]));
  const basis = cells.find((cell) => cell.evidence?.basis)?.evidence.basis;
  const images = matrix.columns.filter((column) => column.images?.length).map((column) => {
    const names = column.images.map(({ name, framework }) => `${name} (${framework})`);
    return `${column.title}: images ${names.join(", ")}`;
  });
  return [
    ...(basis ? [`${ONE_FACT} ${basis}`] : []),
    ...[...known].sort(([a], [b]) => a - b).map(([number, note]) => `${superscript(number)} ${note}`),
    ...images,
  ];
}

function headOf(columns) {
  const titles = ["Source of non-determinism", ...columns.map((column) => column.title)];
  return el("thead", {}, el("tr", {}, ...titles.map((text) => el("th", { scope: "col", text }))));
}

function fill(spot, row, cell, announce) {
  if (!spot) return;
  const text = JSON.stringify(cell);
  spot.row = row;
  spot.cell = cell;
  if (spot.text === text) return;
  const { kind, word } = cellKind(cell);
  const { button } = spot;
  const before = button.className;
  button.className = `cell ${kind} of-${row.subject}`;
  if (announce && before !== button.className) flash(button);
  spot.text = text;
  const mark = agreementMark(row, cell, kind);
  if (button.dataset.kind !== kind)
    button.replaceChildren(icon(kind), ...["word", "mark", "note"].map((name) => el("span", { class: name })));
  button.dataset.kind = kind;
  setAttribute(button, "data-agrees", mark ? cell.agrees : null);
  setText(button.children[1], word);
  setText(button.children[2], mark);
  setText(button.children[3], (cell?.evidence?.basis ? ONE_FACT : "") + superscript(cell?.footnote));
  setAttribute(button, "aria-label", label(spot, kind, word));
}

function label(spot, kind, word) {
  const meaning = kind === word || word === "" ? KINDS[kind] : `${word}, ${KINDS[kind]}`;
  const basis = spot.cell?.evidence?.basis ? `, ${spot.cell.evidence.basis}` : "";
  const agrees = agreement(spot.row, spot.cell, kind);
  const note = basis + (spot.cell?.footnote > 0 ? `, note ${spot.cell.footnote}` : "");
  return `${spot.row.title}, ${subjectTitle(spot.row)}, ${spot.column.title}: ${meaning}${agrees ? `, ${agrees}` : ""}${note}`;
}

// Who did, or did not, what the documents say of the source: never the source itself where
// something else computed.
function agreeing(row, cell, kind) {
  if (!hasCode(kind) || typeof cell?.agrees !== "boolean") return null;
  return row.subject === "model" ? "model" : (row.subject_name ?? "unknown");
}

/** What stands under a code: "model agrees". */
export function agreementMark(row, cell, kind) {
  const who = agreeing(row, cell, kind);
  return who ? `${who} ${cell.agrees ? "agrees" : "differs"}` : "";
}

/** The same as a sentence. */
export function agreement(row, cell, kind) {
  const who = agreeing(row, cell, kind);
  const name = who === "model" ? "our model" : who;
  return who ? `${name} ${cell.agrees ? "agrees" : "does not agree"} with the documents` : "";
}

// Restarting an animation needs the class to be gone for one style pass.
function flash(button) {
  button.getAnimations?.().forEach((animation) => animation.cancel());
  button.classList.add("changed");
  button.addEventListener("animationend", () => button.classList.remove("changed"), { once: true });
}

function neighbour(button, key, far) {
  const cell = button.closest("td");
  const row = cell.parentElement;
  const inRow = (tr, index) => tr?.cells[index]?.querySelector("button.cell");
  const last = row.cells.length - 1;
  const rows = row.parentElement.rows;
  switch (key) {
    case "ArrowRight":
      return inRow(row, cell.cellIndex + 1);
    case "ArrowLeft":
      return inRow(row, cell.cellIndex - 1);
    case "ArrowDown":
      return inRow(row.nextElementSibling, cell.cellIndex);
    case "ArrowUp":
      return inRow(row.previousElementSibling, cell.cellIndex);
    case "Home":
      return inRow(far ? rows[0] : row, 1);
    case "End":
      return inRow(far ? rows[rows.length - 1] : row, last);
    default:
      return null;
  }
}
