// Issues, pull requests and pages of the documents about a workload.

import { ApiError, getJson } from "./api.js";
import { el } from "./dom.js";

const known = new Map(); // workload -> its references: they do not change while a daemon runs

/** Those of ROW's workload, or its own where it has none: a part of the panel, hidden until there is something in it. */
export function referenceList(row) {
  const list = el("ul", { class: "references", "aria-label": "What the documents refer to" });
  const part = el("div", { hidden: true }, el("h4", { text: "References" }), list);
  fill(part, list, row).catch((error) => {
    // Without an answer they are asked for again when the cell is opened again.
    if (!(error instanceof ApiError)) throw error;
  });
  return part;
}

async function fill(part, list, { workload, references: own }) {
  if (workload && !known.has(workload)) {
    const answer = await getJson(`/v1/workloads/${encodeURIComponent(workload)}`);
    known.set(workload, answer.items?.find((each) => each.references?.length)?.references ?? []);
  }
  const references = (workload ? known.get(workload) : own) ?? [];
  list.replaceChildren(...references.map(item));
  part.hidden = references.length === 0;
}

function item({ kind, id, title, url, state, solved }) {
  const facts = [kind, state, solved && `solved: ${solved}`].filter(Boolean).join(", ");
  // Elsewhere than over https a link may be a script.
  const name = /^https:\/\//.test(url ?? "") ? el("a", { href: url, rel: "noreferrer", text: id }) : id;
  return el("li", {}, el("strong", {}, name), facts ? ` (${facts})` : "", el("span", { class: "muted", text: ` ${title}` }));
}
