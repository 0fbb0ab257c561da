// Another model on the same film: its boxes beside those of the model in use, or both in turn.

import { getJson } from "./api.js";
import { percent, tell } from "./dom.js";
import { Layers } from "./layers.js";

const FLICKER = 600; // milliseconds for each model
const MODES = ["off", "both", "flicker"];

export class Comparison {
  // changed() is called when the frame must be drawn again, shown({ models, key, mode, note }) when the choice is another.
  constructor(film, { changed, shown }) {
    Object.assign(this, { film, changed, onShown: shown, models: [], key: "", mode: "off", other: null, flipped: false });
  }

  // Which models there are; those of lessons come while the page is open.
  async refresh() {
    try {
      const { models, active } = await getJson("/api/models");
      this.models = models.filter((one) => one.key !== active);
    } catch { return; }
    if (!this.models.some((one) => one.key === this.key)) this.use(this.models.at(0)?.key || "", "off");
    else this.tell();
  }

  title() { return this.models.find((one) => one.key === this.key)?.title || ""; }

  next() {
    if (!this.models.length) { tell("There is no other model. Start the server with --beside RUN, or learn.", "note"); return; }
    this.use(this.key || this.models[0].key, MODES[(MODES.indexOf(this.mode) + 1) % MODES.length]);
  }

  async use(key, mode) {
    clearInterval(this.timer);
    Object.assign(this, { key, mode, flipped: false });
    if (this.other?.model !== key) this.other = null;
    this.tell();
    this.changed();
    if (mode === "off" || !key) return;
    while (!this.closed && this.key === key && !this.other?.results) {
      try { this.other = await getJson(`/api/films/${this.film.id}?model=${key}`); } catch (error) { tell(error.message); return; }
      if (!this.other.results) await new Promise((done) => setTimeout(done, 1000));
    }
    if (this.closed || this.key !== key || this.mode !== mode) return;
    this.layers = new Layers(this.other, { arrived: () => this.changed(), problem: () => {} });
    this.tell();
    if (mode === "flicker") this.timer = setInterval(() => { this.flipped = !this.flipped; this.changed(); }, FLICKER);
    this.changed();
  }

  tell() {
    const waiting = this.mode !== "off" && !this.other?.results;
    this.onShown({ models: this.models, key: this.key, mode: this.mode, note: waiting ? "Localising with the other model…" : "" });
  }

  label(at) {
    const { box, tag, score } = this.other.results;
    return `${this.title()}: ${box[at] ? `${tag[at]} ${percent(score[at])}` : "no object"}`;
  }

  // The box of the other model, to be drawn beside ours.
  beside(at) {
    if (this.mode !== "both" || !this.other?.results) return {};
    return { other: this.other.results.box[at], otherLabel: this.label(at) };
  }

  // The frame as the other model sees it.
  seen(at, view) {
    const { box, tag } = this.other.results;
    return { box: box[at], label: this.label(at), kind: "beside", code: 0, tag: tag[at], ...view.layersAt(this.layers, at) };
  }

  close() {
    this.closed = true;
    clearInterval(this.timer);
  }
}
