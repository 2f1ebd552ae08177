// The form that submits a job, and the curl command that would submit the same.

import { getJson, postJson } from "./api.js";
import { commandLine, el, setNotice, setText } from "./dom.js";
import { jobTitle, shellQuote } from "./format.js";

const ALL = "*"; // of a select: no name is sent
const RUNS_MAX = 100000;
const ITERATIONS_MAX = 1000;
const LOAD_MAX = 64;

const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(16)).join("-");

/** Fills the <details> ROOT when it is opened.  SUBMITTED() is called after each job. */
export function createSubmit(root, submitted) {
  const form = root.querySelector("form");
  const field = (name) => form.elements[name];
  const problem = root.querySelector("[role=alert]");
  const answer = root.querySelector("[role=status]");
  const command = root.querySelector(".command");
  let workloads = [];
  let busy = false;
  let unanswered = null; // {text, key} of a request that may have been accepted all the same

  const offer = (select, first, names) => {
    const before = select.value;
    select.replaceChildren(...first, ...names.map((name) => el("option", { value: name, text: name })));
    if ([...select.options].some((option) => option.value === before)) select.value = before;
    select.disabled = false;
  };
  const option = (value, text) => el("option", { value, text });

  const offerVariants = () => {
    const chosen = workloads.filter((each) => each.workload === field("workload").value);
    const names = new Set(chosen.flatMap((each) => each.variants.map((variant) => variant.name)));
    offer(field("variant"), [option(ALL, "all, the control included")], [...names]);
    field("shared_import").parentNode.hidden = !chosen.some((each) => each.variants.some(({ subject }) => subject === "framework"));
  };

  const load = async () => {
    try {
      const [known, stacks] = await Promise.all([getJson("/v1/workloads"), getJson("/v1/stacks")]);
      workloads = known.items;
      offer(field("workload"), [], [...new Set(workloads.map((each) => each.workload))]);
      const usable = stacks.items.filter((stack) => !stack.cause).map((stack) => stack.name);
      const first = [option("", "the first of each device"), option("all", "all of them")];
      offer(field("stack"), first, [...new Set(usable)]);
      offerVariants();
      setNotice(problem, "");
    } catch (error) {
      setNotice(problem, `What can be submitted could not be read: ${error.message}`);
    }
    show();
  };

  const request = () => {
    const body = { workloads: [field("workload").value] };
    if (field("variant").value !== ALL) body.variants = [field("variant").value];
    const stack = field("stack").value;
    if (stack) body.stacks = stack === "all" ? stack : [stack];
    body.runs = field("runs").valueAsNumber;
    body.iterations = field("iterations").valueAsNumber;
    if (field("contention").valueAsNumber > 0) body.contention = field("contention").valueAsNumber;
    for (const name of ["memory_poison", "allocation_jitter"]) if (field(name).checked) body[name] = true;
    if (field("shared_import").checked && !field("shared_import").parentNode.hidden) body.shared_import = true;
    return body;
  };

  const show = () => {
    const text = `curl -d ${shellQuote(JSON.stringify(request()))} ${location.origin}/v1/jobs`;
    const ready = field("workload").value !== "" && form.checkValidity();
    field("submit").disabled = busy || !ready;
    command.hidden = !ready;
    if (command.dataset.text === text) return;
    command.dataset.text = text;
    command.replaceChildren(...commandLine("curl command that submits this job", text));
  };

  const submit = async (event) => {
    event.preventDefault();
    if (busy || !form.reportValidity()) return;
    busy = true;
    show();
    const text = JSON.stringify(request());
    if (unanswered?.text !== text) unanswered = { text, key: newKey() };
    try {
      const job = await postJson("/v1/jobs", request(), unanswered.key);
      unanswered = null;
      const href = `/v1/jobs/${encodeURIComponent(job.id)}`;
      answer.replaceChildren(el("a", { href, text: jobTitle(job) }), ` is ${job.state}.`);
      setNotice(problem, "");
      submitted();
    } catch (error) {
      if (error.status > 0 && error.status < 500) unanswered = null;
      setText(answer, "");
      setNotice(problem, error.message);
    }
    busy = false;
    show();
  };

  for (const [name, max] of [["runs", RUNS_MAX], ["iterations", ITERATIONS_MAX], ["contention", LOAD_MAX]])
    field(name).max = max;
  root.addEventListener("toggle", () => root.open && load());
  field("workload").addEventListener("change", offerVariants);
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  form.addEventListener("submit", submit);
}
