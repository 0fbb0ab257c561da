// Dialogs of the video view: which frame, which class, a whole track, two pages that disagree.

import { dialog, make } from "./dom.js";

const choices = (...buttons) => make("form", { method: "dialog", class: "row" }, ...buttons);
const frames = (first, last) => (first === last ? `frame ${first}` : `frames ${first} to ${last}`);

export function askFrame(present, last, go) {
  const input = make("input", { type: "number", min: "0", max: String(last), value: String(present), id: "goto" });
  const box = dialog("Go to a frame", choices(make("label", { for: "goto" }, `Frame, 0 to ${last}`), input, make("button", { class: "primary" }, "Go")));
  input.select();
  box.addEventListener("cancel", () => { input.value = ""; });
  box.addEventListener("close", () => { if (input.value !== "") go(Number(input.value)); });
}

// The sides of a box as numbers, in pixels of the video.
export function askBox(box, width, height, set) {
  const sides = [["left", width], ["top", height], ["right", width], ["bottom", height]];
  const inputs = sides.map(([name, most], at) => make("input", { type: "number", id: `side-${name}`, min: "0", max: String(most), step: "any", required: true, value: String(Math.round(box[at] * 100) / 100) }));
  const fields = sides.flatMap(([name], at) => [make("label", { for: `side-${name}` }, `${name.charAt(0).toUpperCase()}${name.slice(1)}, in pixels`), inputs[at]]);
  const given = dialog("The sides of the box", make("form", { method: "dialog" }, make("div", { class: "fields" }, ...fields), make("div", { class: "row" }, make("button", { class: "primary", value: "set" }, "Set the box"), make("button", { type: "button", onclick: () => given.close() }, "Cancel"))));
  inputs[0].select();
  given.addEventListener("close", () => { if (given.returnValue === "set") set(inputs.map((one) => Number(one.value))); });
}

export function askClass(names, present, first, last, choose) {
  const take = (name) => { box.close(); choose(name); };
  const buttons = names.map((name, at) => make("button", { type: "button", class: name === present ? "primary" : "", onclick: () => take(name) }, at < 9 ? make("kbd", {}, String(at + 1)) : "", ` ${name}`));
  const box = dialog("Which class is it?", make("p", { class: "dim" }, `The class counts for ${frames(first, last)}.`), make("div", { class: "classes" }, ...buttons), choices(make("button", {}, "Cancel")));
  box.addEventListener("keydown", (event) => { const at = Number(event.key) - 1; if (at >= 0 && at < Math.min(9, names.length)) take(names[at]); });
  buttons[Math.max(0, names.indexOf(present))]?.focus();
}

// A whole track is never deleted without a question.
export function askTrack(boxes, first, last, act) {
  const box = dialog("Delete the whole track?", make("p", {}, `This marks all ${boxes} boxes of this shot, ${frames(first, last)}, as “no object”. You can undo it.`),
    choices(make("button", { class: "danger", onclick: act }, "Delete the track"), make("button", {}, "Cancel")));
  box.querySelector("button:last-child").focus();
}

function wordsOf(change) {
  if (change.kind !== "edit") return { undo: "a step was undone", redo: "a step was redone" }[change.kind];
  const words = change.actions.map((one) => {
    const what = { box: "box", none: "no object", accepted: "accepted", class: `class ${one.tag}`, clear: "back to the prediction" }[one.kind];
    return `${what} in ${frames(one.start, one.stop - 1)}${one.box ? ` (${one.box.map(Math.round).join(", ")})` : ""}`;
  });
  return `${words.slice(0, 5).join("; ")}${words.length > 5 ? `; and ${words.length - 5} more` : ""}`;
}

// Two pages changed the same frames: show both; true to use mine. Escape chooses nothing, so the question is asked again.
export function askConflict(theirs, mine) {
  const box = dialog("Changed on another page",
    make("p", {}, "Another page changed the same frames after this page last saw them. Which version is right?"),
    make("dl", { class: "both" }, make("dt", {}, make("i", { class: "theirs" }), "The other page"), ...theirs.map((one) => make("dd", {}, wordsOf(one.change))), make("dt", {}, make("i", { class: "mine" }), "This page"), make("dd", {}, wordsOf(mine))),
    choices(make("button", { value: "mine", class: "primary" }, "Use mine"), make("button", { value: "theirs" }, "Keep theirs")));
  box.classList.add("aside");
  return new Promise((resolve) => box.addEventListener("close", () => resolve(box.returnValue ? box.returnValue === "mine" : askConflict(theirs, mine))));
}
