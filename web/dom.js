// Building and updating elements.  Every text from the API goes through textContent or an
// attribute, never through markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element.  PROPS: attributes; "class", "text" and on… are what they say; null,
 *  undefined and false leave the attribute out.  CHILDREN: nodes or strings. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** The shape that goes with a kind of cell; decoration, its meaning is written next to it. */
export function icon(kind) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${kind}`);
  svg.append(use);
  return svg;
}

/** Writes only what differs: an idle page repaints nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Shows MESSAGE in a notice, or hides the notice when it is "". */
export function setNotice(node, message) {
  setText(node, message);
  node.hidden = message === "";
}

/** Makes PARENT's children exactly NODES, moving nothing that is in place already. */
export function setChildren(parent, nodes) {
  nodes.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null);
  });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}

/** Offers ITEMS ({id, title}), or NONE where there are none, and chooses VALUE; leaves a
 *  select alone that is being used. */
export function fillSelect(select, items, value, none) {
  const text = JSON.stringify([items.map((item) => [item.id, item.title]), value]);
  if (select.dataset.text === text || document.activeElement === select) return;
  select.dataset.text = text;
  const options = items.map((item) => el("option", { value: item.id, text: item.title || item.id }));
  select.replaceChildren(...(options.length ? options : [el("option", { text: none })]));
  if (options.length) select.value = value;
  select.disabled = options.length < 1;
  select.title = select.selectedOptions[0]?.textContent ?? "";
}

/** A button that copies what TEXT() returns at that moment.  LABEL names it to people who
 *  do not see what is next to it. */
export function copyButton(caption, label, text) {
  const button = el("button", { type: "button", class: "copy", "aria-label": label, text: caption });
  let timer = 0;
  button.addEventListener("click", async () => {
    setText(button, (await copyText(text())) ? "copied" : "copy failed");
    clearTimeout(timer);
    timer = setTimeout(() => setText(button, caption), 2000);
  });
  return button;
}

/** A command to read and to copy. */
export function commandLine(label, text) {
  return [el("code", { text, tabindex: "0", "aria-label": label }), copyButton("copy", `Copy: ${label}`, () => text)];
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithSelection(text);
  }
}

// The clipboard interface exists only on secure origins; a plain http host is none.
function copyWithSelection(text) {
  const area = el("textarea", { class: "hidden", readonly: true });
  const focused = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}
