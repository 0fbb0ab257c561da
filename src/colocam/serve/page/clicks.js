// Clicks on an object give its box: the first one alone, the next ones add to it, with Alt they take away.

import { postJson } from "./api.js";
import { tell } from "./dom.js";

const REST = 250; // milliseconds that the mouse is over a frame until the server prepares it

export class Clicks {
  constructor(view) {
    Object.assign(this, { view, points: [], key: "", prepared: -1, order: 0 });
  }

  // Clicks count together as long as frame and object are the same, and nothing else was done to the box.
  present() {
    const { view } = this;
    return `${view.position} ${view.objects.selected} ${view.saving.history.done.length}`;
  }

  // The clicks of the frame that is shown, to be drawn.
  shown() { return this.key === this.present() ? this.points : []; }

  async at(x, y, inside) {
    this.view.flush(); // a box that arrows moved is a step of its own
    const { view } = this, { video, position } = view, before = this.shown();
    if (!video.results) { tell("The model has not finished this video yet: drag a box.", "note"); return; }
    if (!inside && !before.some((one) => one.inside)) { tell("Click on the object first; then Alt+click takes away what does not belong to it.", "note"); return; }
    Object.assign(this, { points: [...before, { x, y, inside }], key: this.present() });
    const order = ++this.order, { key } = this;
    view.player.pause();
    view.redraw();
    view.overlay.busy(true);
    try {
      const { box } = await this.ask(position, this.points);
      if (order !== this.order || key !== this.present()) return; // something else was done meanwhile
      view.setBox(box);
      this.key = this.present();
      view.redraw();
    } catch (error) {
      if (order === this.order) Object.assign(this, { points: before, key });
      tell(error.message);
      view.redraw();
    } finally {
      if (order === this.order) view.overlay.busy(false);
    }
  }

  ask(position, clicks) {
    const { video } = this.view;
    return postJson(`/api/videos/${video.id}/clicks/${video.frame[position]}?model=${video.model}`, { clicks });
  }

  // Where a segmenter finds the object, most of its time is spent on the frame, before any click.
  prepare() {
    const { view } = this, at = view.position;
    if (at === this.prepared || !view.video.results || view.player.playing) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (view.closed || view.position !== at || this.prepared === at) return;
      this.prepared = at;
      this.ask(at, []).catch(() => {}); // a click will say what is wrong
    }, REST);
  }
}
