// The video view: what the parts show of one frame, and where keys and buttons lead.

import { AwayError, getJson } from "./api.js";
import { make, percent, tell } from "./dom.js";
import { askVideo } from "./early.js";
import { labelOf } from "./facts.js";
import { importDialog } from "./exchange.js";
import { Clicks } from "./clicks.js";
import { Comparison } from "./comparison.js";
import { actionOf, showKeys } from "./keys.js";
import { Layers } from "./layers.js";
import { ACCEPTED, ASKED, BOX, FOLLOWS, FOLLOWS_NONE, NONE, PREDICTED, boxOf, frameStates, isKey, lowerBound, objectsOf, tagOf } from "./marks.js";
import { chosenLayers, rememberFrame, rememberLayers, rememberPace } from "./memory.js";
import { Objects } from "./objects.js";
import { Overlay } from "./overlay.js";
import { keyFrames, middleOfGap, neighbor, nextDoubtful, stretchAround, toCheck } from "./places.js";
import { askTags } from "./options.js";
import { Player } from "./player.js";
import { askConflict, askFrame } from "./questions.js";
import { Saving } from "./saving.js";
import { corrected } from "./teach.js";
import { VideoEdits } from "./edits.js";
import { layoutOf } from "./video_layout.js";
import { Timeline } from "./timeline.js";

const STATES = { [PREDICTED]: "predicted", [ACCEPTED]: "accepted", [NONE]: "no object", [BOX]: "corrected", [FOLLOWS]: "between corrected frames", [FOLLOWS_NONE]: "no object, as around", [ASKED]: "still here? A: yes, N: no" };
const KINDS = { [PREDICTED]: "predicted", [ACCEPTED]: "accepted", [NONE]: "none", [BOX]: "box", [FOLLOWS]: "follows", [FOLLOWS_NONE]: "none", [ASKED]: "asked" };

export class VideoView extends VideoEdits {
  constructor(view, video, frame, told) {
    super();
    this.video = video;
    this.closed = false;
    this.position = frame === null ? 0 : Math.min(lowerBound(video.frame, frame), video.frame.length - 1);
    this.draft = null; // a box that arrow keys move, not yet saved
    this.other = null; // the box of another page, while a conflict is shown
    this.skip = true;
    Object.assign(this, chosenLayers()); // map: "heat", "cam" (LayerCAM) or "" (none); opacity; outline
    this.objects = new Objects(this); // this.marks are those of the selected one
    this.parts = layoutOf(view, video, this);
    this.parts.showLayers(this);
    this.clicks = new Clicks(this);
    this.saving = new Saving(video.id, { told, changed: () => this.changed(), saved: () => corrected(this), stored: (answer) => { if (answer.results_key !== this.video.results_key) this.renew().catch(() => {}); }, conflict: (theirs, mine) => this.ask(theirs, mine) });
    this.objects.use(objectsOf([], video.frame, video.cuts));
    this.states = frameStates(this.objects.all, video.frame.length);
    this.comparison = new Comparison(this);
    this.timeline = new Timeline(this.parts.timeline, video, { marks: () => this.marks, states: () => this.states, go: (at) => this.go(at) });
    this.overlay = new Overlay(this.parts.pane, video, { seen: () => this.seen(), edited: (box) => this.setBox(box), chosen: (number) => this.objects.select(number), clicked: (x, y, inside) => this.clicks.at(x, y, inside), near: () => this.clicks.prepare(), zoomed: (...to) => this.zoom(...to) });
    this.player = new Player(video, {
      media: this.parts.media, still: this.parts.still,
      shown: (at) => this.shown(at), state: () => { this.parts.setPlaying(this.player.playing); if (this.player.position >= 0) this.redraw(); }, problem: (error) => tell(error.message),
    });
    this.useResults();
    this.changed();
    this.refocused = () => { this.saving.refresh().catch(() => {}); this.renew().catch(() => {}); };
    window.addEventListener("focus", this.refocused);
    this.player.go(this.position);
    this.comparison.refresh();
    this.saving.load().catch((error) => tell(error.message));
    if (video.state !== "ready") this.poll();
  }

  // Another model or other settings may be in use now: its results replace those that are shown, once they are there.
  async renew() {
    const before = this.video.results_key, now = await getJson(`/api/videos/${this.video.id}`);
    if (this.closed || now.results_key === before) return;
    Object.assign(this.video, now);
    this.parts.showState(this.video);
    if (this.comparison.mode !== "off") this.comparison.use(this.comparison.key, this.comparison.mode);
    await this.poll();
    this.comparison.refresh();
  }

  // The model may still be looking at the video.
  async poll() {
    if (this.polling) return;
    this.polling = true;
    while (!this.closed && this.video.state !== "ready" && this.video.state !== "failed") {
      await new Promise((done) => setTimeout(done, 500));
      try {
        Object.assign(this.video, await getJson(`/api/videos/${this.video.id}`));
      } catch { continue; }
      this.parts.showState(this.video);
    }
    this.polling = false;
    if (this.closed) return;
    this.useResults();
    this.changed();
  }

  useResults() {
    const found = this.video.results;
    this.parts.showState(this.video);
    if (!found) return;
    this.layers = new Layers(this.video, { arrived: () => this.overlay.draw(), problem: (error) => this.withoutLayer(error) });
    this.parts.fillClasses(this.video.classes.length ? this.video.classes : [...new Set(found.tag)]);
  }

  // What the frame on the screen shows: the selected object, and the others.
  seen() {
    const at = this.position;
    if (this.comparison.flipped && !this.draft) return this.comparison.seen(at);
    const { selected } = this.objects, one = this.seenOf(selected), beside = this.other ? { other: this.other } : this.comparison.beside(at);
    return { ...one, others: this.objects.others(at, (number) => this.seenOf(number)), ...this.layersAt(this.layers, at), clicks: this.clicks.shown(), ...beside };
  }

  // One object in this frame: box, label, kind, state and class.
  seenOf(number) {
    const at = this.position, found = this.video.results, marks = this.objects.all.get(number), draft = number === this.objects.selected && this.draft;
    const code = draft ? BOX : marks.state[at], box = draft || boxOf(marks, found, at), name = tagOf(marks, found, at);
    const predicted = found && !draft && this.isPrediction(at, marks) && name === found.tag[at];
    const words = predicted ? labelOf(found, at, this.unsure) : `${name || "object"}${code === ASKED ? ", still here?" : ""}`, prefix = this.objects.several ? `#${number} ` : "";
    const elsewhere = code === PREDICTED && !marks.main[at], nothing = elsewhere ? "not here" : found || code ? "no object" : "not localized yet";
    return { box, label: `${prefix}${box ? words : nothing}`, kind: KINDS[code], code, tag: name };
  }

  // The box of the selected object that a frame shows; null: none.
  boxAt(at) { return boxOf(this.marks, this.video.results, at); }

  // Whether a frame shows the box of the model in use, so that its numbers belong to it.
  isPrediction(at, marks = this.marks) {
    const { state, kept, main } = marks, found = this.video.results;
    if (!main[at] || (this.draft && marks === this.marks) || (state[at] !== PREDICTED && state[at] !== ACCEPTED)) return false;
    return boxOf(marks, found, at)?.join() === found?.box[at]?.join() || (!kept[at] && !marks.base[at]);
  }

  // The results on the screen: those of the other model, while both are shown in turn and it is its turn.
  shownResults() { return this.comparison.flipped ? this.comparison.other.results : this.video.results; }

  layersAt(layers, at) {
    return { heat: this.opacity > 0 ? layers?.map(this.map, at) : null, opacity: this.opacity, outline: this.outline ? layers?.outline(at) : null };
  }

  withoutLayer(error) {
    tell(error.message);
    if (this.map === "cam") this.setLayer("map", "heat");
  }

  shown(position) {
    this.position = position;
    this.redraw();
    const frame = this.video.frame[position];
    // The address may lead to another view already.
    if (this.player.playing || !location.hash.includes(this.video.id)) return;
    history.replaceState(null, "", `#video=${this.video.id}&frame=${frame}`);
    rememberFrame(this.video.id, frame);
  }

  redraw() {
    const seen = this.seen(), at = this.position, found = this.shownResults();
    this.overlay.draw();
    this.comparison.overlay?.draw();
    this.timeline.show(at, this.player?.playing);
    const own = this.comparison.flipped || this.isPrediction(at);
    this.parts.showFrame({
      frame: this.video.frame[at], pts: this.video.pts[at], state: found || seen.code ? this.stateOf(seen.code, seen.box, this.marks) : "not localized yet", kind: seen.kind, tag: seen.tag, box: seen.box,
      probability: seen.tag === found?.tag[at] && (this.comparison.flipped || this.marks.main[at]) ? found?.probability[at] : null, score: own && seen.box ? found?.score[at] : null,
      presence: found?.presence[at], doubt: found?.doubt[at], reason: this.reasons?.get(at),
    });
    this.parts.showObjects(this.objects.list((number) => this.stateOf(this.objects.all.get(number).state[at], this.objects.box(number, at), this.objects.all.get(number))), this.objects.alone);
    this.parts.showQueue(this.queue || [], at, this.unsure ? this.video.found : "");
  }

  // What is known of an object in this frame, in words. Objects that the model does not find are not everywhere.
  stateOf(code, box, marks) { return code === PREDICTED && !box && !marks.main[this.position] ? "not here" : STATES[code]; }

  changed() {
    const found = this.video.results;
    this.objects.use(objectsOf(this.saving.history.done, this.video.frame, this.video.cuts, found?.absent, found?.others));
    this.states = frameStates(this.objects.all, this.video.frame.length);
    const [first] = this.objects.all.values();
    const said = first.tag.some(Boolean) || this.states.includes(ACCEPTED) || this.states.every(isKey); // a drawn box names no class
    this.unsure = this.video.class_in_doubt && !said;
    this.queue = this.skip && found ? toCheck(found.queue, this.states, found.doubt, this.video.doubtful_from) : found?.queue || [];
    this.reasons = new Map([...(found?.queue || []), ...this.queue]);
    this.parts.showHistory(this.saving.history);
    this.timeline.draw();
    if (this.player.position >= 0) this.redraw();
  }

  go(position) {
    this.flush();
    this.player.go(position);
  }

  // What is shown is right: on to the next frame to check.
  acceptAndGo() {
    const now = performance.now();
    if (this.checked) rememberPace((now - this.checked) / 1000);
    this.checked = now;
    if (this.draft) this.flush();
    else if (!isKey(this.states[this.position])) this.accept(this.position, this.position + 1);
    this.doubtful(true);
  }

  // Go to a position; where there is none, say why.
  goOr(position, none) {
    if (position === undefined) tell(none, "note");
    else this.go(position);
  }

  goQueued(position) {
    this.queued = position;
    this.go(position);
  }

  doubtful(forward) {
    if (this.queue?.length) this.goQueued(nextDoubtful(this.queue, this.queued === this.position ? this.position : null, forward));
    else tell(this.video.results ? "No frame is left to check. L leads back to the library." : "The model has not finished this video yet.", "note");
  }

  askFrame() {
    const { frame } = this.video;
    askFrame(frame[this.position], frame.at(-1), (number) => this.go(Math.min(lowerBound(frame, number), frame.length - 1)));
  }

  // Two pages corrected the same frames: the box of the other page is drawn beside ours while the user chooses.
  async ask(theirs, mine) {
    const drawn = theirs.flatMap(({ change: correction }) => correction.actions || []).filter((a) => a.box && a.start === this.video.frame[this.position]).at(-1);
    this.other = drawn?.box || null;
    this.redraw();
    const useMine = await askConflict(theirs, mine);
    this.other = null;
    this.redraw();
    return useMine;
  }

  // One action by its name; the same for keys and buttons.
  act(action, event = {}) {
    const back = [",", "k", "X", "F", "[", "T"].includes(event.key), { length } = this.video.frame;
    const { cuts } = this.video, { state } = this.marks, [first, last] = stretchAround(this.position, cuts, state);
    const where = back ? "before" : "after";
    const acts = {
      play: () => (this.player.playing ? this.player.pause() : (this.flush(), this.player.play())),
      step: () => this.go(this.player.target + (back ? -1 : 1)),
      doubtful: () => this.doubtful(!back),
      cut: () => this.goOr(neighbor(cuts, this.position, !back), `There is no cut ${where} this frame.`),
      key: () => this.goOr(neighbor(keyFrames(state), this.position, !back), `There is no marked frame ${where} this one.`),
      middle: () => this.goOr(middleOfGap(state, this.position), "There is no gap here: the marked frames around are neighbors."),
      goto: () => this.askFrame(),
      accept: () => { this.flush(); this.accept(this.position, this.position + 1); },
      next: () => this.acceptAndGo(),
      acceptStretch: () => { this.flush(); this.accept(first, last); },
      none: () => { this.draft = null; this.here("none"); },
      noneStretch: () => this.noneIn(first, last),
      edge: () => (back ? this.position > first && this.noneIn(first, this.position) : this.noneIn(this.position, last)),
      class: () => this.chooseClass(first, last),
      box: () => this.newBox(),
      copy: () => this.copyBox(),
      carry: () => this.carry(last),
      type: () => this.typeBox(),
      nudge: () => this.nudge(event),
      clear: () => { this.draft = null; this.here("clear"); },
      object: () => (/^[1-9]$/.test(event.key) ? this.objects.select(Number(event.key)) : this.objects.step(back)),
      newObject: () => this.objects.add(),
      split: () => this.objects.split(),
      unite: () => this.objects.unite(),
      removeTrack: () => this.objects.remove(),
      alone: () => this.objects.toggleAlone(),
      history: () => this.undo(event),
      heat: () => this.setLayer("map", this.map === "heat" ? "" : "heat"),
      cam: () => this.setLayer("map", this.map === "cam" ? "" : "cam"),
      outline: () => this.setLayer("outline", !this.outline),
      compare: () => this.comparison.next(),
      zoom: () => this.zoom(event.key === "0" ? 1 : this.overlay.zoom * (event.key === "-" ? 0.8 : 1.25), this.centerOfBox()),
      library: () => { location.hash = ""; },
      help: () => showKeys(),
      import: () => importDialog(this.video, this.saving),
      videoClass: () => askTags([this.video], this.video.tags || [], () => Promise.all([this.saving.refresh(), this.renew()]).catch((error) => tell(error.message))),
      first: () => this.go(0),
      last: () => this.go(length - 1),
    };
    acts[action]();
  }

  zoom(zoom, center) {
    for (const one of [this.overlay, this.comparison.overlay]) one?.setZoom(zoom, center);
  }

  centerOfBox() {
    const { box } = this.seen();
    return box ? [(box[0] + box[2]) / 2 / this.video.width, (box[1] + box[3]) / 2 / this.video.height] : [0.5, 0.5];
  }

  setLayer(name, value) {
    this[name] = value;
    rememberLayers(this);
    this.parts.showLayers(this);
    this.overlay.draw();
    this.comparison.overlay?.draw();
  }

  setSkip(skip) { this.skip = skip; this.changed(); }

  setRate(rate) { this.parts.media.playbackRate = rate; this.parts.media.defaultPlaybackRate = rate; }

  key(event) {
    const action = actionOf(event);
    if (!action) return false;
    event.preventDefault();
    this.act(action, event);
    return true;
  }

  close() {
    this.flush();
    this.closed = true;
    window.removeEventListener("focus", this.refocused);
    this.comparison.close();
    this.parts.close();
    this.player.close();
    this.overlay.close();
    this.timeline.close();
    this.saving.close();
  }
}

export async function openVideo(view, id, frame, told) {
  const here = () => location.hash.includes(id);
  let asked = askVideo(id, frame);
  for (let words = "Opening the video…"; here(); await new Promise((done) => setTimeout(done, 500)), asked = getJson(`/api/videos/${id}`)) {
    view.replaceChildren(make("p", { class: "empty" }, words));
    try {
      const video = await asked;
      if (video.state === "failed") throw new Error(video.problem);
      if (video.frame) return here() ? new VideoView(view, video, frame, told) : null;
      words = `Reading the frames of ${video.name}: ${percent(video.done)}`;
    } catch (error) {
      if (!(error instanceof AwayError)) throw error;
      words = `${error.message} The video opens when the server is back.`;
    }
  }
  return null;
}
