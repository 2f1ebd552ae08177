// Environments compared: which case has which bits where, what drifted between two, and
// what changed on hosts.  Read when somebody opens it, and again while it is open.

import { ApiError, coalesce, getJson, getList, withQuery } from "./api.js";
import { classesTable, createPages, emptyText, showHeadline } from "./classes.js";
import { driftKey, driftQuery, driftReports } from "./drift.js";
import { el, fillSelect, setChildren, setNotice } from "./dom.js";
import { clock } from "./format.js";

const RETRY_MS = 10000;
const AGAIN_MS = 5000;
const CHANGES_SHOWN = 5;
const COLUMNS = 24;
const CAPTION = "Digest classes by case and environment, newest environment first";

/** Fills DETAILS (<details>) while it is open.  CHOSEN(name) and CHOOSE(changes) read and
 *  write the page's address; its "drift" is what drift.js calls a key.  Returns refresh(). */
export function createEnvironments(details, chosen, choose) {
  const [differing] = details.getElementsByTagName("input");
  const [before, after] = details.getElementsByTagName("select");
  const [summary, notice, table, pager, drift, changes] = ["summary", "notice", "scroller", "pager", "drift", "changes"].map((name) =>
    details.querySelector(`:scope > .${name}`),
  );

  let shown = null;
  const read = coalesce(async () => {
    if (!details.open) return;
    if (!shown) table.replaceChildren(el("p", { class: "empty", text: "Reading what each environment showed." }));
    try {
      const query = { view: "environments", rows: differing.checked ? "differing" : "", limit: COLUMNS, cursor: pages.cursor() };
      const [view, environments, { items }] = await Promise.all([
        getJson(withQuery("/v1/matrix", query)),
        getList("/v1/environments"),
        getJson(withQuery("/v1/changes", { limit: CHANGES_SHOWN })),
      ]);
      showClasses(view);
      showChanges(items);
      showSelects(environments);
      await readDrift();
      setNotice(notice, "");
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      setNotice(notice, `The environments could not be read: ${error.message}`);
      setTimeout(() => read(), RETRY_MS);
    }
  }, AGAIN_MS);
  const pages = createPages(pager, () => read(true));

  const compare = (key) => {
    choose({ drift: key });
    read(true).then(() => drift.scrollIntoView({ block: "nearest" }));
  };
  const compareButton = (key, text) => key && el("button", { type: "button", class: "copy", text, onclick: () => compare(key) });

  const showClasses = (view) => {
    if (view === shown) return; // whoever is in it stays in it
    shown = view;
    showHeadline(summary, view);
    pages.show(view, "environment");
    const below = (column) => compareButton(driftKey(column.drift), "what changed");
    table.replaceChildren(
      view.groups.length ? classesTable(view, CAPTION, below) : el("p", { class: "empty", text: emptyText(view, differing.checked) }),
    );
  };

  const showSelects = (environments) => {
    const { from, to } = driftQuery(chosen("drift")) ?? {};
    const none = { id: "", title: "choose one" };
    const items = environments.map(({ id, title }) => ({ id, title: `${title} (${id.slice(0, 8)})` }));
    fillSelect(before, [none, ...items], from ?? "", "none yet");
    fillSelect(after, [none, ...items], to ?? "", "none yet");
  };

  const showChanges = (items) => {
    changes.hidden = items.length === 0;
    const list = items.map((change) =>
      el(
        "li",
        {},
        el("span", { text: `${clock(change.at)}: ${change.text} on ${change.host}` }),
        el("span", { class: "why", text: change.headlines.join("; ") || STATES[change.state] }),
        ...change.reports.map((report) => compareButton(driftKey(report.href), "read the drift")).filter(Boolean),
      ),
    );
    setChildren(changes, [el("h3", { text: "What changed on hosts" }), el("ul", {}, ...list)]);
  };

  // An answer that came before another was chosen is not shown.
  const readDrift = async () => {
    const key = chosen("drift");
    const query = driftQuery(key);
    drift.hidden = !query;
    if (!query) return;
    const answer = await getJson(withQuery("/v1/drift", query));
    if (chosen("drift") !== key || drift.answer === answer) return;
    drift.answer = answer;
    drift.replaceChildren(...driftReports(answer));
  };

  const choosePair = () => {
    if (before.value && after.value && before.value !== after.value) compare(`${before.value}..${after.value}`);
  };
  for (const select of [before, after]) select.addEventListener("change", choosePair);
  details.addEventListener("toggle", () => read(true));
  differing.addEventListener("change", () => {
    pages.reset();
    read(true);
  });
  details.open ||= chosen("drift") !== "";
  return (now = false) => read(now);
}

const STATES = { seen: "not measured since", measuring: "being measured", reported: "nothing to compare" };
