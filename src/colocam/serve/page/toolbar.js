// What one does to frames and objects: groups of buttons with an icon, a name and a key, and a menu for what is used rarely.

import { make } from "./dom.js";
import { icon } from "./icons.js";

// [name of the group, [[icon, name on the button, action, key as shown, key event, what it does], …]]
const GROUPS = [
  ["Frame", [
    ["accept", "Accept", "accept", "A", "a", "Accept this frame"],
    ["next", "Next", "next", "⏎", "Enter", "Accept this frame and go to the next one to check"],
    ["none", "None", "none", "N", "n", "No object in this frame"],
    ["reset", "Reset", "clear", "⌫", "Backspace", "Back to the prediction in this frame"]]],
  ["Stretch", [
    ["acceptStretch", "Accept", "acceptStretch", "⇧A", "A", "Accept the stretch up to the next cut or marked frame"],
    ["noneStretch", "None", "noneStretch", "⇧N", "N", "No object in the stretch"],
    ["enters", "Enters", "edge", "[", "[", "The object enters here: none before, in this stretch"],
    ["leaves", "Leaves", "edge", "]", "]", "The object leaves here: none from here on, in this stretch"]]],
  ["Box", [
    ["box", "Put", "box", "B", "b", "Put a box here"],
    ["copy", "Copy", "copy", "P", "p", "Copy the box of the previous frame"],
    ["carry", "Carry", "carry", "⇧P", "P", "Carry this box on to the next cut or marked frame, as the model sees the object move"]]],
  ["Object", [
    ["class", "Class…", "class", "C", "c", "Wrong class"],
    ["newObject", "New", "newObject", "I", "i", "Another object in this frame"],
    ["split", "Split", "split", "S", "s", "From this frame on it is a different object"]]],
  ["Step", [
    ["undo", "Undo", "history", "Z", "z", "Undo"],
    ["redo", "Redo", "history", "Y", "y", "Redo"]]],
];

const MENU = [
  ["Type the box…", "type", "E", "Type the sides of the box, in pixels"],
  ["Video’s class…", "videoClass", "⇧C", "Set the class that the whole video shows, and localize again"],
  ["Import…", "import", "", "Import labels of this video"],
];

// on.act(action, event) does what a button says. The menu begins with `more`, elements that the view adds.
export function toolbarOf(on, ...more) {
  const buttons = {}, groups = GROUPS.map(([group, tools]) => make("div", { class: "group", role: "group", "aria-label": group }, make("span", { class: "caption", "aria-hidden": "true" }, group),
    make("div", {}, ...tools.map(([drawing, name, action, shown, key, title]) => {
      buttons[drawing] = make("button", { type: "button", class: "tool", title: `${title} (${shown})`, "aria-label": group === "Stretch" ? `${name} stretch` : name, "aria-keyshortcuts": shown, onclick: () => on.act(action, { key }) }, icon(drawing), make("span", {}, name), make("kbd", {}, shown));
      return buttons[drawing];
    }))));
  const close = () => menu.hidePopover();
  const items = MENU.map(([name, action, key, title]) => make("button", { type: "button", class: "quiet", title, "aria-keyshortcuts": key || null, onclick: () => { close(); on.act(action, {}); } }, name, key && make("kbd", {}, key)));
  const menu = make("div", { class: "menu", popover: "auto", id: "more-menu", "aria-label": "More", role: "group" }, ...items, ...more);
  const open = make("button", { type: "button", class: "tool", title: "Less common actions", "aria-haspopup": "true", popovertarget: "more-menu" }, icon("more"), make("span", {}, "More"));
  menu.addEventListener("toggle", (event) => {
    open.setAttribute("aria-expanded", String(event.newState === "open"));
    if (event.newState !== "open") return;
    const below = open.getBoundingClientRect(), { width, height } = menu.getBoundingClientRect();
    const top = below.bottom + 4 + height > innerHeight ? Math.max(8, below.top - 4 - height) : below.bottom + 4;
    Object.assign(menu.style, { top: `${top}px`, left: `${Math.max(8, Math.min(below.left, innerWidth - width - 8))}px` });
    items[0].focus();
  });
  menu.addEventListener("keydown", (event) => {
    const inside = [...menu.querySelectorAll("button, input")], step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key !== "Escape") event.stopPropagation(); // keys of the video wait until the menu is closed
    if (!step || event.target.type === "range") return;
    event.preventDefault();
    inside.at((inside.indexOf(event.target) + step) % inside.length).focus();
  });
  const element = make("div", { class: "tools", role: "toolbar", "aria-label": "Correct" }, ...groups, make("div", { class: "group" }, make("span", { class: "caption", "aria-hidden": "true" }, " "), make("div", {}, open)), menu);
  return { element, undo: buttons.undo, redo: buttons.redo };
}
