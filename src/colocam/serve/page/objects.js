// Several objects in a video: which one the keys mean, new ones, tracks that are split, united and removed.

import { make, tell } from "./dom.js";
import { FIRST, boxOf, predictedBox, tagOf } from "./marks.js";
import { askObject, askRemoval } from "./questions.js";

export const nameOf = (number) => (typeof number === "number" ? `object ${number}` : `object ${number} of the model`);

export class Objects {
  constructor(view) {
    Object.assign(this, { view, all: new Map(), selected: FIRST, alone: false });
  }

  // After each change: the object that was selected may be gone.
  use(objects) {
    this.all = objects;
    if (!objects.has(this.selected)) this.selected = objects.keys().next().value;
    if (objects.size === 1) this.alone = false;
    this.view.marks = objects.get(this.selected);
  }

  get several() { return this.all.size > 1; }

  // The objects on the screen: all, or the selected one alone.
  shown() { return this.alone ? [[this.selected, this.view.marks]] : [...this.all]; }

  box(number, at) { return boxOf(this.all.get(number), this.view.video.results, at); }

  numbersIn(at) { return [...this.all.keys()].filter((number) => this.box(number, at)); }

  // The others of a frame, as they are drawn.
  others(at, wordsOf) {
    if (this.alone) return [];
    return this.numbersIn(at).filter((number) => number !== this.selected).map((number) => ({ number, box: this.box(number, at), ...wordsOf(number) }));
  }

  select(number) {
    if (!this.all.has(number)) { tell(`There is no ${nameOf(number)}. Press I for a new one.`, "note"); return; }
    this.view.flush();
    this.selected = number;
    this.view.changed();
  }

  // The next one in this frame; where there is no other, of the whole video.
  step(back) {
    const here = this.numbersIn(this.view.position), numbers = here.some((one) => one !== this.selected) ? here : [...this.all.keys()];
    if (!this.several) { tell("There is only one object. Press I to add another.", "note"); return; }
    const at = numbers.indexOf(this.selected), next = back ? at - 1 + (at < 0 ? 1 : 0) : at + 1;
    this.select(numbers[(next + numbers.length) % numbers.length]);
  }

  // Numbers are never used twice, also not after undo.
  nextNumber() {
    const { done, undone } = this.view.saving.history;
    return 1 + Math.max(FIRST, ...[...done, ...undone].flatMap((edit) => edit.actions.flatMap((one) => [one.track || FIRST, one.into || FIRST])));
  }

  whole() { return this.view.span(0, this.view.video.frame.length); }

  // Actions with the number of their object. What the model alone has found becomes an object of its own first.
  numbered(number, actions) {
    const { offered } = this.all.get(number) || {};
    if (!offered) return actions.map((one) => (number === FIRST ? one : { ...one, track: number }));
    const own = this.nextNumber(), last = offered.at + offered.boxes.length;
    if (number === this.selected) this.selected = own;
    const taken = { kind: "add", ...this.view.span(offered.at, last), track: own, tag: offered.tag, boxes: offered.boxes };
    return [taken, ...actions.map((one) => ({ ...one, track: own, ...(one.into && one.into <= own && { into: own + 1 }) }))];
  }

  // A box beside that of the selected object, in its class: arrows and the mouse put it where it belongs.
  add() {
    this.view.flush();
    const { view } = this, { width, height } = view.video, here = view.seen().box, number = this.nextNumber(), tag = view.seen().tag || view.parts.classes()[0];
    const [x1, y1, x2, y2] = here || [width * 0.3, height * 0.3, width * 0.7, height * 0.7], by = here ? (x1 + x2 < width ? 1 : -1) * Math.min(width / 4, x1 + x2 < width ? width - x2 : x1) : 0;
    const actions = [{ kind: "box", ...view.span(view.position, view.position + 1), box: [x1 + by, y1, x2 + by, y2] }, ...(tag ? [{ kind: "class", ...this.whole(), tag }] : [])];
    this.selected = number;
    view.send(actions.map((one) => ({ ...one, track: number })));
  }

  // From this frame on it is a different object.
  split() {
    this.view.flush();
    const { view } = this, { position, video } = view, there = (from, to) => { for (let at = from; at < to; at++) if (this.box(this.selected, at)) return true; return false; };
    if (!there(0, position) || !there(position, video.frame.length)) { tell("There is nothing to split: this object is only on one side of this frame.", "note"); return; }
    const into = this.nextNumber(), actions = this.numbered(this.selected, [{ kind: "move", ...view.span(position, video.frame.length), into }]);
    this.selected = actions.at(-1).into;
    view.send(actions);
  }

  unite() {
    this.view.flush();
    const others = [...this.all.keys()].filter((number) => number !== this.selected && typeof number === "number");
    if (!others.length) { tell("There is no other object to unite this one with.", "note"); return; }
    const { video, position } = this.view, both = (number) => video.frame.filter((_, at) => this.box(number, at) && this.box(this.selected, at)).length;
    askObject(this.selected, others.map((number) => ({ number, tag: tagOf(this.all.get(number), video.results, position), both: both(number) })), (number) => this.uniteWith(number));
  }

  uniteWith(into) {
    const { view } = this, { results, frame } = view.video, mine = view.marks, its = this.all.get(into);
    const there = [...frame.keys()].filter((at) => this.box(this.selected, at)), tag = tagOf(its, results, there[0] ?? 0);
    const renamed = there.filter((at) => tagOf(mine, results, at) !== tag);
    const actions = this.numbered(this.selected, [{ kind: "move", ...this.whole() }]);
    actions.at(-1).into = into;
    if (renamed.length) actions.push({ kind: "class", ...view.span(renamed[0], renamed.at(-1) + 1), tag, ...(into !== FIRST && { track: into }) });
    this.selected = into;
    view.send(actions);
  }

  // Boxes of people go; where the model has found one, it is said that none is there.
  remove() {
    const { view } = this, { frame, results } = view.video, mine = view.marks, runs = [];
    const boxes = frame.filter((_, at) => this.box(this.selected, at)).length;
    for (let at = 0; at < frame.length; at++) {
      if (!predictedBox(mine, results, at)) continue;
      if (runs.at(-1)?.[1] === at) runs.at(-1)[1]++;
      else runs.push([at, at + 1]);
    }
    askRemoval(this.selected, boxes, () => {
      view.draft = null;
      view.edit({ kind: "clear", ...this.whole() }, ...runs.map(([first, last]) => ({ kind: "none", ...view.span(first, last) })));
    });
  }

  toggleAlone() {
    if (!this.several) { tell("There is only one object, so there is nothing to hide.", "note"); return; }
    this.alone = !this.alone;
    this.view.changed();
  }

  // A button for each object: its number, its class, and what is known of it in this frame.
  list(stateOf) {
    const { video, position } = this.view;
    return [...this.all].map(([number, marks]) => ({ number, tag: tagOf(marks, video.results, position), here: stateOf(number), pressed: number === this.selected }));
  }
}

// The list of objects in the video view.
export function objectsList(on) {
  const list = make("div", { class: "object-list", role: "group", "aria-label": "Objects" });
  const only = make("button", { type: "button", "aria-pressed": "false", title: "Show only this object, or all (Q)", "aria-keyshortcuts": "Q", onclick: () => on.act("alone") }, "Only this one", make("kbd", {}, "Q"));
  const button = (text, action, key, title) => make("button", { type: "button", title: `${title} (${key})`, "aria-keyshortcuts": key, onclick: () => on.act(action) }, text, make("kbd", {}, key));
  const element = make("section", { class: "objects", hidden: true, "aria-label": "Several objects" }, list,
    make("div", { class: "actions" }, only, button("Next object", "object", "T", "Select the next object in this frame"), button("Unite…", "unite", "U", "Unite this track with another one"), button("Remove track", "removeTrack", "R", "Remove the whole track of this object")));
  return {
    element,
    show(objects, alone) {
      element.hidden = objects.length < 2;
      only.setAttribute("aria-pressed", String(alone));
      const key = JSON.stringify(objects);
      if (list.dataset.key === key) return;
      list.dataset.key = key;
      const focused = list.contains(document.activeElement) && document.activeElement.dataset.number;
      list.replaceChildren(...objects.map((one) => make("button", { type: "button", "data-number": String(one.number), "aria-pressed": String(one.pressed), title: `Select ${nameOf(one.number)}`, onclick: () => on.objects.select(one.number) },
        make("b", {}, `#${one.number}`), make("span", {}, one.tag || "object"), make("span", { class: "dim" }, one.here))));
      if (focused) list.querySelector(`[data-number="${focused}"]`)?.focus();
    },
  };
}
