// What keys and buttons do to the objects in the frames of a video. The view, which extends this, shows them.

import { postJson } from "./api.js";
import { tell } from "./dom.js";
import { ASKED, FIRST, FOLLOWS, FOLLOWS_NONE, PREDICTED, carried, guideOf, lowerBound, predictedBox } from "./marks.js";
import { clipped, moved } from "./overlay.js";
import { nearestBox } from "./places.js";
import { askBox, askClass, askTrack, wordsOf } from "./questions.js";

const PATIENCE = 450; // milliseconds after the last arrow key until the box is saved
const STEPS = 640; // an arrow key moves a box by the longer side of the video divided by this, at least a pixel

export class VideoEdits {
  span(first, last) {
    const { frame } = this.video;
    return { start: frame[first], stop: frame[last - 1] + 1 };
  }

  // One step about the selected object.
  edit(...actions) { this.send(this.objects.numbered(this.objects.selected, actions)); }

  send(actions) {
    this.player.pause();
    this.saving.add({ kind: "edit", actions });
  }

  here(kind, more = {}) { this.edit({ kind, ...this.span(this.position, this.position + 1), ...more }); }

  // What these frames show is right, of all objects on the screen.
  accept(first, last) {
    let actions = [];
    for (const [number, marks] of this.objects.shown()) {
      const own = this.accepted(marks, first, last);
      if (own.length) actions = [...actions, ...this.renumbered(number, own, actions)];
    }
    if (actions.length) this.send(actions);
  }

  // The numbers of several objects that only the model has found follow each other.
  renumbered(number, own, before) {
    const { selected } = this.objects, actions = this.objects.numbered(number, own), taken = before.filter((one) => one.kind === "add").length;
    if (actions[0].kind !== "add" || !taken) return actions;
    if (selected === number) this.objects.selected += taken;
    return actions.map((one) => ({ ...one, track: one.track + taken }));
  }

  // A box that follows or is asked about becomes a drawn one, so that those around it still follow.
  accepted(marks, first, last) {
    const { frame } = this.video, results = this.shownResults(), { state, box, main, base } = marks, actions = [];
    for (let at = first; at < last; at++) {
      if (!main[at] && !base[at] && state[at] === PREDICTED) continue; // it is elsewhere
      const follows = { [FOLLOWS]: "box", [FOLLOWS_NONE]: "none", [ASKED]: "box" }[state[at]], name = marks.tag[at] || results?.tag[at];
      if (follows) {
        actions.push({ kind: follows, ...this.span(at, at + 1), ...(box[at] && { box: box[at] }) });
        continue;
      }
      const before = actions.at(-1), shown = predictedBox(marks, results, at);
      if (before?.kind === "accepted" && before.stop === frame[at] && before.tag === name && results) {
        before.stop = frame[at] + 1;
        before.boxes.push(shown);
      } else actions.push({ kind: "accepted", ...this.span(at, at + 1), ...(results && { boxes: [shown] }), ...(name && { tag: name }) });
    }
    return actions;
  }

  noneIn(first, last) {
    const { frame, cuts } = this.video, whole = (first === 0 || cuts.includes(first)) && (last === frame.length || cuts.includes(last));
    let boxes = 0;
    for (let at = first; at < last; at++) if (this.boxAt(at)) boxes++;
    const act = () => { this.draft = null; this.edit({ kind: "none", ...this.span(first, last) }); };
    if (whole && boxes > 1) askTrack(boxes, frame[first], frame[last - 1], act);
    else act();
  }

  setBox(box) {
    this.draft = null;
    this.here("box", { box: clipped(box, this.video.width, this.video.height) });
  }

  // Save the box that arrow keys have moved.
  flush() {
    clearTimeout(this.patience);
    if (!this.draft) return;
    const box = this.draft;
    this.draft = null;
    this.setBox(box);
  }

  nudge(event) {
    const { width, height } = this.video, by = Math.max(1, Math.round(Math.max(width, height) / STEPS)) * (event.shiftKey ? 10 : 1), [dx, dy] = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[event.key];
    const { box } = this.seen();
    if (!box) { tell("This frame has no box. Press B to put one here.", "note"); return; }
    this.player.stop();
    const within = (value, least, most) => Math.min(most, Math.max(least, value)), [x1, y1, x2, y2] = box;
    if (event.altKey) this.draft = [x1, y1, within(x2 + dx, x1 + 1, width), within(y2 + dy, y1 + 1, height)];
    else if (event.ctrlKey || event.metaKey) this.draft = [within(x1 + dx, 0, x2 - 1), within(y1 + dy, 0, y2 - 1), x2, y2];
    else this.draft = moved(box, dx, dy, width, height);
    this.redraw();
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.flush(), PATIENCE);
  }

  newBox() {
    const { width, height, results } = this.video, near = nearestBox(this.position, this.marks.box, this.objects.selected === FIRST ? results?.box : this.marks.base);
    this.setBox(this.seen().box || near || [width * 0.3, height * 0.3, width * 0.7, height * 0.7]);
  }

  copyBox() {
    const box = this.position > 0 && this.boxAt(this.position - 1);
    if (box) this.setBox(box);
    else tell("The frame before this one has no box to copy.", "note");
  }

  // Carry the box on up to the end of the stretch, as the model's boxes move: those frames follow, and nobody has checked them.
  carry(last) {
    const { box } = this.seen(), { width, height } = this.video, at = this.position;
    if (!box || last - 1 <= at) { tell(box ? "The next frame is marked, or starts another shot." : "This frame has no box to carry on.", "note"); return; }
    const guides = this.video.frame.slice(at, last).map((_, place) => guideOf(this.marks, this.video.results, at + place));
    this.draft = null;
    this.edit({ kind: "box", ...this.span(at, at + 1), box }, { kind: "follow", ...this.span(at + 1, last), boxes: carried(box, guides, width, height) });
  }

  typeBox() {
    const { width, height } = this.video;
    askBox(this.seen().box || [0, 0, width, height], width, height, (box) => {
      const [x1, y1, x2, y2] = clipped(box, width, height);
      if (x2 - x1 >= 1 && y2 - y1 >= 1) this.setBox([x1, y1, x2, y2]);
      else tell("A box must be at least one pixel wide and high.");
    });
  }

  // The class of the object that the model finds counts for the stretch, that of another one for its whole track.
  chooseClass(first, last) {
    const names = this.parts.classes(), { frame } = this.video, track = this.objects.selected !== FIRST, [from, to] = track ? [0, frame.length] : [first, last];
    const scope = track ? `the whole track of object ${this.objects.selected}` : from === to - 1 ? `frame ${frame[from]}` : `frames ${frame[from]} to ${frame[to - 1]}`;
    askClass(names, this.seen().tag, scope, (tag) => this.edit({ kind: "class", tag, ...this.span(from, to) }), async (name) => {
      const added = await postJson("/api/classes", { name });
      this.video.classes = added.classes;
      this.parts.fillClasses(added.classes);
      return added.name;
    });
  }

  // Undo and redo say what they did, and show where.
  undo(event) {
    this.flush();
    const redo = event.key === "y" || event.key === "Z" || (event.shiftKey && event.ctrlKey), { done, undone } = this.saving.history;
    const edit = (redo ? undone : done).at(-1);
    if (!this.saving.add({ kind: redo ? "redo" : "undo" })) { tell(redo ? "There is nothing to redo." : "There is nothing to undo: these are the predictions.", "note"); return; }
    tell(`${redo ? "Redone" : "Undone"}: ${wordsOf(edit)}.`, "note", { instead: "undo" });
    const now = this.video.frame[this.position], [first] = edit.actions, number = [...new Set(edit.actions.flatMap((one) => (redo && one.into) || one.track || FIRST))];
    if (!number.includes(this.objects.selected) && this.objects.all.has(number[0])) this.objects.select(number[0]);
    if (!edit.actions.some((one) => one.start <= now && now < one.stop)) this.go(Math.min(lowerBound(this.video.frame, first.start), this.video.frame.length - 1));
  }
}
