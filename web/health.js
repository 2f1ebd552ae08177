// What is wrong with the service: asked while the page is seen, shown above everything else.

import { getJson } from "./api.js";
import { setNotice } from "./dom.js";

const ASK_MS = 500; // with half a second to notice a fault, it shows within two seconds

/** Keeps what is wrong in NODE, a notice. */
export function watchHealth(node) {
  let timer = 0;

  const ask = async () => {
    clearTimeout(timer);
    try {
      const { conditions = [] } = await getJson("/readyz");
      setNotice(node, conditions.map(({ name, cause }) => `${name}: ${cause}`).join(" "));
    } catch (error) {
      // Where nobody answers, the header says so.
      setNotice(node, error.status === 503 ? `Not ready: ${error.message.replace(/^503 [^:]*: /, "")}` : "");
    }
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, ASK_MS);
  };

  document.addEventListener("visibilitychange", () => document.hidden || ask());
  if (!document.hidden) ask();
}
