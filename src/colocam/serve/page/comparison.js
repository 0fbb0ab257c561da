// Another model on the same video: its boxes beside those of the model in use, both in panes of their own, or both in turn.

import { getJson } from "./api.js";
import { make, tell } from "./dom.js";
import { labelOf } from "./facts.js";
import { Layers } from "./layers.js";
import { Overlay } from "./overlay.js";
import { paneOf } from "./pane.js";

const FLICKER = 600; // milliseconds for each model
const MODES = ["off", "both", "panes", "flicker"];

export class Comparison {
  constructor(view) {
    Object.assign(this, { view, models: [], own: "", key: "", mode: "off", other: null, flipped: false, pane: null });
  }

  // Which models there are; those of lessons come while the page is open.
  refresh() {
    this.known = this.load();
    return this.known;
  }

  async load() {
    try {
      const { models, active } = await getJson("/api/models");
      this.models = models.filter((one) => one.key !== active);
      this.own = models.find((one) => one.key === active).title;
    } catch { return; }
    if (!this.models.some((one) => one.key === this.key)) this.use(this.models.at(0)?.key || "", "off");
    else this.show();
  }

  title() { return this.models.find((one) => one.key === this.key)?.title || ""; }

  async next() {
    await this.known; // the key may be pressed before the models are known
    if (!this.models.length) { tell("There is no other model. Start the server with --beside RUN, or learn.", "note"); return; }
    this.use(this.key || this.models[0].key, MODES[(MODES.indexOf(this.mode) + 1) % MODES.length]);
  }

  async use(key, mode) {
    clearInterval(this.timer);
    Object.assign(this, { key, mode, flipped: false });
    const settings = (one) => one?.results_key.slice(16); // after the key of the model
    if (this.other?.model !== key || settings(this.other) !== settings(this.view.video)) this.other = null;
    this.show();
    this.changed();
    if (mode === "off" || !key) return;
    while (!this.closed && this.key === key && !this.other?.results) {
      try { this.other = await getJson(`/api/videos/${this.view.video.id}?model=${key}`); } catch (error) { tell(error.message); return; }
      if (!this.other.results) await new Promise((done) => setTimeout(done, 1000));
    }
    if (this.closed || this.key !== key || this.mode !== mode) return;
    this.layers = new Layers(this.other, { arrived: () => this.changed(), problem: () => {} });
    this.show();
    if (mode === "flicker") this.timer = setInterval(() => { this.flipped = !this.flipped; this.changed(); }, FLICKER);
    this.changed();
  }

  changed() {
    if (this.view.player.position >= 0) this.view.redraw();
  }

  // The button, the note and the second pane follow the mode.
  show() {
    const waiting = this.mode !== "off" && !this.other?.results;
    this.view.parts.showComparison({ models: this.models, key: this.key, mode: this.mode, note: waiting ? "Localizing with the other model…" : "" });
    if (this.mode === "panes") this.openPane();
    else this.closePane();
  }

  openPane() {
    const { parts, player, video, overlay } = this.view;
    if (!this.pane) {
      const image = make("canvas", { class: "copy" });
      this.pane = paneOf("The same frame with box and heat map of the other model", image);
      parts.screen.append(this.pane.element);
      this.overlay = new Overlay(this.pane, video, { seen: () => this.seen(this.view.position), zoomed: (...to) => this.view.zoom(...to) });
      this.overlay.setZoom(overlay.zoom, overlay.center);
      player.setCopy(image);
    }
    parts.pane.show(this.own);
    this.pane.show(this.title());
  }

  closePane() {
    if (!this.pane) return;
    const { parts, player } = this.view;
    player.setCopy(null);
    this.overlay.close();
    this.pane.element.remove();
    parts.pane.show("");
    this.pane = this.overlay = null;
  }

  // The box of the other model, to be drawn beside ours.
  beside(at) {
    if (this.mode !== "both" || !this.other?.results) return {};
    return { other: this.other.results.box[at], otherLabel: `${this.title()}: ${this.label(at)}` };
  }

  label(at) { return labelOf(this.other.results, at); }

  // The frame as the other model sees it.
  seen(at) {
    const found = this.other?.results;
    if (!found) return { box: null, label: "not localized yet", kind: "predicted" };
    const label = this.pane ? this.label(at) : `${this.title()}: ${this.label(at)}`;
    return { box: found.box[at], label, kind: "beside", code: 0, tag: found.tag[at], ...this.view.layersAt(this.layers, at) };
  }

  close() {
    this.closed = true;
    clearInterval(this.timer);
    this.closePane();
  }
}
