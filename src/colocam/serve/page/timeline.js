// The video from left to right: presence, score, doubt, cuts, marked frames. Wheel zooms, dragging scrubs.

import { ACCEPTED, ASKED, BOX, FOLLOWS, FOLLOWS_NONE, NONE, isKey } from "./marks.js";
import { clock } from "./dom.js";

const LEAST = 24;
const ROWS = { ruler: [0, 16], curves: [18, 66], doubt: [70, 84], marks: [88, 106] };

export class Timeline {
  // go(position) is called when the user chooses a frame.
  constructor(canvas, video, { marks, states, go }) {
    Object.assign(this, { canvas, video, marks, states, onGo: go });
    this.count = video.frame.length;
    this.first = 0;
    this.span = this.count;
    this.position = 0;
    this.waiting = false;
    this.stale = true;
    this.base = document.createElement("canvas"); // everything but the cursor, so that playing moves the cursor alone
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(canvas);
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.scrubbing = true; this.scrub(event); });
    canvas.addEventListener("pointermove", (event) => this.scrubbing && this.scrub(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { this.scrubbing = false; });
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.at(event)); }, { passive: false });
  }

  at(event) {
    const area = this.canvas.getBoundingClientRect();
    const place = this.first + ((event.clientX - area.left) / area.width) * this.span;
    return Math.min(this.count - 1, Math.max(0, Math.floor(place)));
  }

  scrub(event) { this.onGo(this.at(event)); }

  zoom(factor, around = this.position) {
    const span = Math.min(this.count, Math.max(Math.min(LEAST, this.count), this.span * factor));
    const share = (around - this.first) / this.span;
    this.span = span;
    this.first = Math.min(Math.max(0, around - share * span), this.count - span);
    this.draw();
  }

  // While the video plays, the position is not told to screen readers.
  show(position, playing = false) {
    this.position = position;
    if (position < this.first || position >= this.first + this.span) {
      this.first = Math.min(Math.max(0, position - this.span / 2), this.count - this.span);
      this.stale = true;
    }
    if (!playing) {
      const { frame, pts } = this.video;
      this.canvas.setAttribute("aria-valuenow", position);
      this.canvas.setAttribute("aria-valuemax", this.count - 1);
      this.canvas.setAttribute("aria-valuetext", `frame ${frame[position]}, ${clock(pts[position])}`);
    }
    this.later();
  }

  draw() {
    this.stale = true;
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  x(position) { return ((position - this.first) / this.span) * this.width; }

  paint() {
    if (this.stale) this.paintBase();
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.base, 0, 0);
    context.scale(this.sharp, this.sharp);
    this.cursor(context, this.accent);
  }

  paintBase() {
    this.stale = false;
    this.sharp = window.devicePixelRatio || 1;
    const area = this.canvas.getBoundingClientRect(), style = getComputedStyle(this.canvas), colors = {};
    for (const canvas of [this.canvas, this.base]) Object.assign(canvas, { width: Math.max(1, Math.round(area.width * this.sharp)), height: Math.max(1, Math.round(area.height * this.sharp)) });
    this.width = area.width;
    const context = this.base.getContext("2d"), color = (name) => (colors[name] ??= style.getPropertyValue(`--${name}`).trim());
    this.accent = color("accent");
    context.scale(this.sharp, this.sharp);
    const last = Math.min(this.count, Math.ceil(this.first + this.span) + 1), first = Math.max(0, Math.floor(this.first) - 1);
    this.ruler(context, color("dim"));
    for (const cut of this.video.cuts) if (cut >= first && cut <= last) this.line(context, cut, color("cut"), 18, 108);
    const found = this.video.results;
    if (found) {
      this.curve(context, found.presence, first, last, color("presence"), true);
      this.curve(context, found.score, first, last, color("score"), false);
      this.bars(context, found.doubt, first, last, color("doubt"));
    }
    this.markRow(context, first, last, color);
  }

  ruler(context, color) {
    const { pts } = this.video, from = pts[Math.floor(this.first)], to = pts[Math.min(this.count - 1, Math.floor(this.first + this.span))];
    const seconds = Math.max(1e-3, to - from), steps = [0.04, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
    const step = steps.find((one) => (one / seconds) * this.width > 80) || 7200;
    context.fillStyle = color;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = ((time - from) / seconds) * this.width;
      context.fillRect(x, 0, 1, 5);
      if (x < this.width - 40) context.fillText(clock(time), x + 3, 2);
    }
  }

  line(context, position, color, top, bottom) {
    context.fillStyle = color;
    context.fillRect(Math.round(this.x(position)), top, 1, bottom - top);
  }

  // With more frames than pixels, the extreme value of each pixel is drawn.
  curve(context, values, first, last, color, filled) {
    const [top, bottom] = ROWS.curves, step = Math.max(1, Math.floor(this.span / this.width / 2));
    context.beginPath();
    if (filled) context.moveTo(this.x(first), bottom);
    for (let at = first; at < last; at += step) {
      const value = values[at] ?? 0, y = bottom - value * (bottom - top);
      context.lineTo(this.x(at), y);
      context.lineTo(this.x(at + step), y);
    }
    if (filled) {
      context.lineTo(this.x(last), bottom);
      context.globalAlpha = 0.35;
      context.fillStyle = color;
      context.fill();
      context.globalAlpha = 1;
    } else {
      context.strokeStyle = color;
      context.lineWidth = 1.5;
      context.stroke();
    }
  }

  bars(context, values, first, last, color) {
    const [top, bottom] = ROWS.doubt, pixels = Math.max(1, Math.ceil(this.span / this.width));
    context.fillStyle = color;
    const state = this.states();
    for (let at = first; at < last; at += pixels) {
      let most = 0;
      for (let one = at; one < Math.min(last, at + pixels); one++) if (!isKey(state[one])) most = Math.max(most, values[one] ?? 0);
      context.globalAlpha = Math.max(0.05, most ** 1.5);
      context.fillRect(this.x(at), top, Math.max(1, this.x(at + pixels) - this.x(at)), bottom - top);
    }
    context.globalAlpha = 1;
  }

  markRow(context, first, last, color) {
    const [top, bottom] = ROWS.marks, { state, tag, main } = this.marks(), middle = (top + bottom) / 2;
    const names = { [ACCEPTED]: "accepted", [NONE]: "none", [BOX]: "box", [FOLLOWS]: "box", [FOLLOWS_NONE]: "none", [ASKED]: "doubt" };
    const size = Math.max(1, this.x(1) - this.x(0));
    for (let at = first; at < last; at++) {
      if (tag[at] && tag[at] !== this.video.results?.tag[at] && (state[at] || main[at])) { context.fillStyle = color("class"); context.fillRect(this.x(at), bottom - 2, size + 0.5, 2); }
      if (!state[at]) continue;
      const follows = !isKey(state[at]);
      context.fillStyle = color(names[state[at]]);
      context.globalAlpha = follows ? 0.45 : 0.8;
      context.fillRect(this.x(at), middle - 4, size + 0.5, 8);
      context.globalAlpha = 1;
      const alone = state[at - 1] !== state[at] || state[at + 1] !== state[at]; // of a long run, only its ends
      if ((state[at] === BOX || state[at] === NONE) && alone) {
        const x = this.x(at) + size / 2;
        context.beginPath();
        context.moveTo(x, middle - 7); context.lineTo(x + 5, middle); context.lineTo(x, middle + 7); context.lineTo(x - 5, middle);
        context.fill();
      }
    }
  }

  cursor(context, color) {
    const x = this.x(this.position), width = Math.max(2, this.x(this.position + 1) - x);
    context.globalAlpha = 0.25;
    context.fillStyle = color;
    context.fillRect(x, 0, width, 110);
    context.globalAlpha = 1;
    context.fillRect(x + width / 2 - 1, 0, 2, 110);
  }

  close() { this.resized.disconnect(); }
}
