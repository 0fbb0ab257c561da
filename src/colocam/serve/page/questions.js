// Dialogs of the video view: which frame, which class, a whole track, two pages that disagree.

import { dialog, make } from "./dom.js";

const choices = (...buttons) => make("form", { method: "dialog", class: "row" }, ...buttons);
const frames = (first, last) => (first === last ? `frame ${first}` : `frames ${first} to ${last}`);

export function askFrame(present, last, go) {
  const input = make("input", { type: "number", min: "0", max: String(last), value: String(present), id: "goto" });
  const box = dialog("Go to a frame", choices(make("label", { for: "goto" }, `Frame, 0 to ${last}`), input, make("button", { class: "primary" }, "Go"), make("button", { type: "button", onclick: () => { input.value = ""; box.close(); } }, "Cancel")));
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

// One of the classes, or a new one: add(name) stores it and gives its name as it is kept. Letters filter the classes, Enter
// takes the one that is marked; a digit takes a class while nothing is typed.
export function askClass(names, present, scope, choose, add) {
  let offered = [], marked = 0;
  const take = (name) => { box.close(); choose(name); };
  const list = make("div", { class: "classes", role: "listbox", id: "class-list", "aria-label": "Classes" });
  const input = make("input", { type: "text", id: "new-class", maxlength: "200", autocomplete: "off", role: "combobox", "aria-expanded": "true", "aria-controls": "class-list", placeholder: "filter, or a new name" });
  const problem = make("p", { class: "problem", role: "alert", hidden: true });

  async function use({ name, fresh }) {
    try { take(fresh ? await add(name) : name); } catch (error) { problem.textContent = error.message; problem.hidden = false; }
  }

  function mark(at) {
    marked = (at + offered.length) % offered.length;
    [...list.children].forEach((option, place) => {
      option.setAttribute("aria-selected", String(place === marked));
      option.classList.toggle("primary", place === marked);
    });
    list.children[marked].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[marked].id);
  }

  function filter() {
    const typed = input.value.trim();
    offered = matching(names, typed).map((name) => ({ name, fresh: false }));
    if (typed && !names.some((name) => name.toLowerCase() === typed.toLowerCase())) offered.push({ name: typed, fresh: true });
    list.replaceChildren(...offered.map((one, at) => make("button", { type: "button", role: "option", id: `class-${at}`, onclick: () => use(one) },
      !typed && at < 9 && make("kbd", {}, String(at + 1)), one.fresh ? `New class “${one.name}”` : one.name)));
    if (offered.length) mark(typed ? 0 : Math.max(0, names.indexOf(present)));
  }

  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], digit = input.value ? 0 : Number(event.key);
    if (step && offered.length) { event.preventDefault(); mark(marked + step); }
    if (digit >= 1 && digit <= Math.min(9, names.length)) { event.preventDefault(); use({ name: names[digit - 1] }); }
  };
  const submit = (event) => { event.preventDefault(); if (offered.length) use(offered[marked]); };
  const box = dialog("Which class is it?", make("p", { class: "dim" }, `The class applies to ${scope}.`),
    make("form", { class: "row", onsubmit: submit, onkeydown: keys }, make("label", { for: "new-class" }, "Class"), input, make("button", { class: "primary" }, "Use")),
    list, problem, choices(make("button", {}, "Cancel")));
  input.addEventListener("input", filter);
  filter();
  input.focus();
}

// Names that contain what was typed; those that begin with it come first.
export function matching(names, typed) {
  const words = typed.toLowerCase(), place = (name) => name.toLowerCase().indexOf(words);
  return names.filter((name) => place(name) >= 0).sort((a, b) => Math.sign(place(a)) - Math.sign(place(b)));
}

// Which object a track is united with; boxes of that one stay where both have one.
export function askObject(number, others, choose) {
  const take = (other) => { box.close(); choose(other); };
  const words = ({ number: other, tag, both }) => ` ${tag || "object"}${both ? `: in ${both === 1 ? "1 frame" : `${both} frames`} both have a box, and that of object ${other} stays` : ""}`;
  const buttons = others.map((one) => make("button", { type: "button", onclick: () => take(one.number) }, make("kbd", {}, String(one.number)), words(one)));
  const box = dialog(`Unite object ${number} with`, make("p", { class: "dim" }, "Both tracks become one, with the number and the class that you choose here."), make("div", { class: "classes whole-lines" }, ...buttons), choices(make("button", {}, "Cancel")));
  box.addEventListener("keydown", (event) => { const one = others.find((other) => String(other.number) === event.key); if (one) take(one.number); });
  buttons[0].focus();
}

export function askRemoval(number, boxes, act) {
  const box = dialog(`Remove object ${number}?`, make("p", {}, `This removes the whole track, ${boxes === 1 ? "1 box" : `${boxes} boxes`}. You can undo it.`),
    choices(make("button", { class: "danger", onclick: act }, "Remove the track"), make("button", {}, "Cancel")));
  box.querySelector("button:last-child").focus();
}

// A whole track is never deleted without a question.
export function askTrack(boxes, first, last, act) {
  const box = dialog("Delete the whole track?", make("p", {}, `This marks all ${boxes} boxes of this shot, ${frames(first, last)}, as “no object”. You can undo it.`),
    choices(make("button", { class: "danger", onclick: act }, "Delete the track"), make("button", {}, "Cancel")));
  box.querySelector("button:last-child").focus();
}

export function wordsOf(correction) {
  if (correction.kind !== "edit") return { undo: "a step was undone", redo: "a step was redone" }[correction.kind];
  const words = correction.actions.map((one) => {
    const what = { box: "box", none: "no object", accepted: "accepted", class: `class ${one.tag}`, clear: "back to the prediction", follow: "box carried on", add: "taken from the model", move: `becomes object ${one.into}` }[one.kind];
    if (one.kind === "video") return one.tag ? `the video's class is ${one.tag}` : "the model finds the video's class";
    return `${one.track || one.into ? `object ${one.track || 1}: ` : ""}${what} in ${frames(one.start, one.stop - 1)}${one.box ? ` (${one.box.map(Math.round).join(", ")})` : ""}`;
  });
  return `${words.slice(0, 5).join("; ")}${words.length > 5 ? `; and ${words.length - 5} more` : ""}`;
}

// Two pages corrected the same frames: show both; true to use mine. Escape chooses nothing, so the question is asked again.
export function askConflict(theirs, mine) {
  const box = dialog("Corrected on another page",
    make("p", {}, "Another page corrected the same frames after this page last loaded them. Which version is right?"),
    make("dl", { class: "both" }, make("dt", {}, make("i", { class: "theirs" }), "The other page"), ...theirs.map(({ change: correction }) => make("dd", {}, wordsOf(correction))), make("dt", {}, make("i", { class: "mine" }), "This page"), make("dd", {}, wordsOf(mine))),
    choices(make("button", { value: "mine", class: "primary" }, "Use mine"), make("button", { value: "theirs" }, "Keep theirs")));
  box.classList.add("aside");
  return new Promise((resolve) => box.addEventListener("close", () => resolve(box.returnValue ? box.returnValue === "mine" : askConflict(theirs, mine))));
}
