// One view of the frame: the image, the heat map over it, and the canvas with box and outline. A name above it, if wanted.

import { make } from "./dom.js";

export function paneOf(label, ...images) {
  const name = make("figcaption", { hidden: true });
  const heat = make("canvas", { class: "heat", hidden: true });
  const overlay = make("canvas", { class: "overlay", role: "img", "aria-label": label });
  const stage = make("div", { class: "stage" }, ...images, heat, overlay);
  const show = (text) => { name.hidden = !text; name.textContent = name.title = text; };
  return { element: make("figure", { class: "pane" }, name, make("div", { class: "room" }, stage)), show, stage, heat, overlay };
}
