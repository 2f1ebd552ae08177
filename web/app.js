// The page: what is chosen stands in the URL, what is known comes from the API, and each
// part is told when either changes.

import { ApiError, coalesce, getJson, getList, withQuery } from "./api.js";
import { copyButton, el, fillSelect, setAttribute, setNotice, setText } from "./dom.js";
import { createCell } from "./cell.js";
import { createDetail, createLegend } from "./detail.js";
import { createDevices } from "./devices.js";
import { createEnvironments } from "./environments.js";
import { createFacts } from "./facts.js";
import { createFrameworks } from "./frameworks.js";
import { clock, curl, recipesOf } from "./format.js";
import { watchHealth } from "./health.js";
import { createJobs } from "./jobs.js";
import { createUnattended } from "./unattended.js";
import { createMatrix, matrixHeadline, matrixSummary } from "./matrix.js";
import { openStream } from "./stream.js";
import { createSubmit } from "./submit.js";

const MATRIX_MS = 1000;
const JOBS_MS = 2000;
const LISTS_MS = 30000;
const RETRY_MS = 5000;
const JOBS_SHOWN = 10;

const byId = (id) => document.getElementById(id);
let matrix = null;
let profiles = [];
let environments = null; // null: not known yet
let preview = null; // key of the cell pointed at or focused
let connection = "connecting";
let lastAnswer = "";
const errors = { matrix: "", lists: "", jobs: "" };

// --- what is chosen -------------------------------------------------------------------

const chosen = (name) => new URLSearchParams(location.search).get(name) ?? "";

function choose(changes, replace) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  const text = query.toString();
  history[replace ? "replaceState" : "pushState"](null, "", location.pathname + (text ? `?${text}` : ""));
}

const matrixPath = (suffix = "") =>
  withQuery(`/v1/matrix${suffix}`, {
    table: chosen("table"),
    subject: chosen("subject"),
    environment: chosen("environment"),
  });

function pin(key) {
  choose({ cell: key }, true);
  showDetail();
  if (key) table.spot(key)?.button.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function unpin() {
  const inside = byId("detail").contains(document.activeElement);
  const spot = table.spot(chosen("cell"));
  preview = null;
  choose({ cell: "" }, true);
  showDetail();
  if (inside) spot?.button.focus();
}

// --- parts ------------------------------------------------------------------------------

const table = createMatrix(byId("matrix-table"), byId("matrix-notes"), {
  preview(spot) {
    preview = spot && spot.key;
    // The pin goes where the keyboard goes.
    if (spot && chosen("cell") && document.activeElement === spot.button) choose({ cell: spot.key }, true);
    showDetail();
  },
  pin(spot, wanted) {
    preview = wanted ? spot.key : null;
    pin(wanted ? spot.key : "");
  },
});
const showFacts = createFacts(byId("facts"));
const showPanel = createDetail(byId("detail"), unpin);
const showSigns = createLegend(byId("legend"));
const jobs = createJobs();
const opened = [["environments", createEnvironments], ["devices", createDevices], ["frameworks", createFrameworks], ["cell", createCell]].map(([id, create]) =>
  create(byId(id), chosen, (changes) => choose(changes, true)),
);
const showUnattended = createUnattended(byId("schedules-heading"), byId("schedules"), byId("background"), byId("peers"));

function showDetail() {
  const key = chosen("cell");
  const spot = table.spot(key) ?? table.spot(preview) ?? null;
  table.mark(key);
  const recipes = recipesOf(profiles, matrix?.table);
  showPanel(spot, spot?.key === key, matrix?.variants ?? [], recipes);
  showSigns(recipes);
}

function showMatrix(first) {
  table.update(matrix);
  setText(byId("matrix-headline"), matrixHeadline(matrix));
  byId("matrix-summary").replaceChildren(...matrixSummary(matrix).map((text) => el("li", { text })));
  showFacts(matrix.variants ?? []);
  showSelects();
  showDetail();
  showAsOf();
  showJobs();
  if (first && chosen("cell")) pin(chosen("cell"));
}

function showSelects() {
  byId("subject-select").value = chosen("subject");
  const current = matrix?.environment;
  const known = [...(environments ?? [])];
  if (current && !known.some((each) => each.id === current.id)) known.unshift(current);
  fillSelect(byId("environment-select"), known, current?.id ?? chosen("environment"), "none yet");
  const tables = profiles.length || !matrix?.table ? profiles : [{ id: matrix.table, title: matrix.title }];
  const named = tables.map(({ id, title }) => ({ id, title: title ? `${id}: ${title}` : id }));
  fillSelect(byId("table-select"), named, matrix?.table ?? chosen("table"), "…");
}

function showAsOf() {
  const at = clock(matrix?.as_of);
  const node = byId("matrix-as-of");
  const old = connection === "offline" || errors.matrix !== "";
  setText(node, !at ? "" : old ? `This is the state of ${at}; nothing newer could be read.` : `As of ${at}.`);
  node.classList.toggle("old", old);
  // Nothing is green that is not known now.
  document.body.classList.toggle("outdated", old);
}

const showJobs = () => jobs.render(environments !== null && environments.length === 0 && !matrix?.environment);

// --- reading ------------------------------------------------------------------------------

let retry = 0;

/** READ as a coalesced task that shows its error and is tried again while the stream is
 *  open (without the stream, polling does that).  Gives whether the server answered. */
function loader(part, what, read, interval) {
  const task = async () => {
    let answered = true;
    try {
      await read();
      errors[part] = "";
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      answered = error.status !== 0;
      errors[part] = `${what}: ${error.message}`;
      clearTimeout(retry);
      retry = setTimeout(() => connection === "live" && refresh(), RETRY_MS);
    }
    if (answered) lastAnswer = new Date().toISOString();
    // Where nobody answers, the header says so once.
    else if (matrix) errors[part] = "";
    setNotice(byId("matrix-error"), [errors.matrix, errors.lists].filter(Boolean).join(" "));
    setNotice(byId("jobs-error"), errors.jobs);
    showAsOf();
    return answered;
  };
  return coalesce(task, interval);
}

const loadMatrix = loader("matrix", "The matrix could not be read", async () => {
  const path = matrixPath();
  const next = await getJson(path);
  if (path !== matrixPath() || next === matrix) return;
  const first = matrix === null;
  matrix = next;
  showMatrix(first);
  if (matrix.environment && !environments?.some((each) => each.id === matrix.environment.id)) loadLists(true);
}, MATRIX_MS);

const loadLists = loader("lists", "The tables and environments could not be read", async () => {
  const answers = await Promise.all([getJson("/v1/profiles").then(({ items }) => items), getList("/v1/environments")]);
  if (answers[0] === profiles && answers[1] === environments) return;
  [profiles, environments] = answers;
  showSelects();
  showDetail();
  showJobs();
}, LISTS_MS);

const loadJobs = loader("jobs", "The jobs could not be read", async () => {
  const paths = [`/v1/jobs?background=no&limit=${JOBS_SHOWN}`, "/v1/schedules", "/v1/background", "/v1/peers"];
  const [answer, schedules, background, peers] = await Promise.all(paths.map(getJson));
  jobs.set(answer.items);
  showJobs();
  showUnattended(schedules.items, background, peers.items);
}, JOBS_MS);

const loaders = [loadMatrix, loadJobs, loadLists];
const drawJobs = coalesce(async () => showJobs(), 500);

async function refresh() {
  const answered = (await Promise.all(loaders.map((load) => load(true)))).some(Boolean);
  if (answered) document.querySelector("main").removeAttribute("aria-busy"); // every part was tried
  return answered;
}

const CONNECTION = {
  connecting: () => "connecting",
  live: () => "live",
  polling: () => "reconnecting; asking every 5 s",
  offline: () => (lastAnswer ? `offline; last answer ${clock(lastAnswer)}` : "offline; the daemon does not answer"),
  paused: () => "paused",
};

function showConnection(state) {
  connection = state;
  if (state === "paused") loaders.forEach((load) => load.stop());
  setAttribute(byId("connection"), "data-state", state);
  setText(byId("connection-text"), CONNECTION[state]());
  showAsOf();
}

// --- start ----------------------------------------------------------------------------------
for (const name of ["table", "subject", "environment"])
  byId(`${name}-select`).addEventListener("change", (event) => {
    choose({ [name]: event.target.value, cell: "" });
    loadMatrix(true);
    for (const refreshIt of opened) refreshIt(true);
  });
addEventListener("popstate", () => {
  showDetail();
  loadMatrix(true);
});
addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && !byId("cell").open && unpin());

showSigns({});
byId("matrix-copy").append(copyButton("copy curl", "Copy the curl command for this table", () => curl(matrixPath(".txt"))));
for (const name of ["environments", "devices", "frameworks"]) byId(`compare-${name}`).addEventListener("click", () => (byId(name).open = true));
watchHealth(byId("health"));
createSubmit(byId("submit"), () => loadJobs(true));
openStream("/v1/events", ["job", "run", "cell", "dissent", "change", "drift"], {
  state: showConnection,
  refresh,
  event(kind, data) {
    if (kind === "job") {
      jobs.apply(data);
      drawJobs();
      loadJobs();
    } else {
      loadMatrix();
      loadLists();
      for (const refreshIt of opened) refreshIt();
    }
  },
});
if (!document.hidden) refresh();
