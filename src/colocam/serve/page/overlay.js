// Box, label, heat map and outline over the frame; drawing, moving and resizing the box; zoom.

const HANDLE = { mouse: 9, touch: 22 }; // pixels around a handle that count as the handle
export const OTHER = "#ff4fd8"; // another page, another model
const SIDES = { nw: [1, 1, 0, 0], n: [0, 1, 0, 0], ne: [0, 1, 1, 0], e: [0, 0, 1, 0], se: [0, 0, 1, 1], s: [0, 0, 0, 1], sw: [1, 0, 0, 1], w: [1, 0, 0, 0] };
const DASHES = { follows: [10, 5], asked: [3, 6] };
const CURSORS = { nw: "nwse-resize", se: "nwse-resize", ne: "nesw-resize", sw: "nesw-resize", n: "ns-resize", s: "ns-resize", e: "ew-resize", w: "ew-resize", move: "move", draw: "crosshair", other: "pointer" };

export function clipped(box, width, height) {
  const [x1, x2] = [box[0], box[2]].sort((a, b) => a - b), [y1, y2] = [box[1], box[3]].sort((a, b) => a - b);
  const inside = (value, limit) => Math.min(Math.max(value, 0), limit);
  return [inside(x1, width), inside(y1, height), inside(x2, width), inside(y2, height)];
}

export function moved(box, dx, dy, width, height) {
  const x = Math.min(Math.max(dx, -box[0]), width - box[2]), y = Math.min(Math.max(dy, -box[1]), height - box[3]);
  return [box[0] + x, box[1] + y, box[2] + x, box[3] + y];
}

export class Overlay {
  // seen() gives { box, label, kind, others, heat, opacity, outline, other, otherLabel }; edited(box) is called when a box was
  // drawn, without it boxes cannot be changed; chosen(number) when one of the others is pressed; clicked(x, y, inside) when a
  // point is clicked, inside: not with Alt; near() when the mouse is over the frame; zoomed(zoom, center) when the wheel asks
  // for another zoom.
  constructor({ stage, heat, overlay }, video, { seen, edited, chosen, clicked, near, zoomed }) {
    const canvas = overlay;
    Object.assign(this, { stage, canvas, video, seen, edited, chosen, clicked, near, zoomed, heat: heat.getContext("2d") });
    this.zoom = 1;
    this.center = [0.5, 0.5];
    this.drag = null;
    this.resized = new ResizeObserver(() => this.layout());
    this.resized.observe(stage.parentElement);
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.layout();
    if (!edited) return;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", () => { this.drag = null; this.draw(); });
  }

  // The stage is as large as the frame fits into its parent, times the zoom.
  layout() {
    const room = this.stage.parentElement.getBoundingClientRect();
    const fit = Math.min(room.width / this.video.width, room.height / this.video.height);
    const width = Math.max(1, this.video.width * fit * this.zoom), height = Math.max(1, this.video.height * fit * this.zoom);
    const place = (size, space, at) => (size <= space ? (space - size) / 2 : Math.min(0, Math.max(space - size, space / 2 - at * size)));
    Object.assign(this.stage.style, {
      width: `${width}px`, height: `${height}px`,
      left: `${place(width, room.width, this.center[0])}px`, top: `${place(height, room.height, this.center[1])}px`,
    });
    const sharp = Math.min(window.devicePixelRatio || 1, 4096 / Math.max(width, height));
    this.canvas.width = Math.round(width * sharp);
    this.canvas.height = Math.round(height * sharp);
    this.scale = this.canvas.width / this.video.width;
    this.sharp = sharp;
    this.draw();
  }

  setZoom(zoom, center = this.center) {
    this.zoom = Math.min(16, Math.max(1, zoom));
    this.center = this.zoom === 1 ? [0.5, 0.5] : center;
    this.layout();
  }

  wheel(event) {
    event.preventDefault();
    const [x, y] = this.point(event);
    const at = [x / this.video.width, y / this.video.height];
    this.zoomed(this.zoom * (event.deltaY < 0 ? 1.25 : 0.8), at);
  }

  draw() {
    const context = this.canvas.getContext("2d"), { width, height } = this.canvas;
    context.clearRect(0, 0, width, height);
    const { box, label, kind, heat, opacity, outline, other, otherLabel, others = [], clicks = [] } = this.seen();
    this.drawHeat(heat, opacity);
    if (outline) this.shape(context, outline);
    if (other) {
      this.outline(context, other, OTHER, [8, 6]);
      if (otherLabel) this.label(context, other, otherLabel, OTHER, true);
    }
    const shown = this.drag?.box || box;
    for (const one of others) {
      const near = Boolean(shown) && Math.abs(one.box[1] - shown[1]) * this.scale < 20 * this.sharp; // two labels would cover each other
      this.outline(context, one.box, colorOf(one.kind), DASHES[one.kind] || [], 1.2);
      this.label(context, one.box, one.label, colorOf(one.kind), near);
    }
    if (shown) {
      this.outline(context, shown, colorOf(kind), DASHES[kind] || []);
      if (this.edited) this.handles(context, shown, colorOf(kind));
      this.label(context, shown, label, colorOf(kind));
    } else this.note(context, label, kind);
    for (const click of clicks) this.dot(context, click);
  }

  // A click on the object is a disc with a plus, one beside it a disc with a minus.
  dot(context, { x, y, inside: on }) {
    const radius = 7 * this.sharp, [left, top] = [x * this.scale, y * this.scale], arm = 0.55 * radius;
    context.beginPath();
    context.arc(left, top, radius, 0, 2 * Math.PI);
    context.fillStyle = on ? "#4ade80" : "#fb7185";
    context.fill();
    Object.assign(context, { lineWidth: 2 * this.sharp, strokeStyle: "#10141d" });
    context.stroke();
    context.beginPath();
    context.moveTo(left - arm, top); context.lineTo(left + arm, top);
    if (on) { context.moveTo(left, top - arm); context.lineTo(left, top + arm); }
    context.stroke();
  }

  // Whether the box of a click is being looked for.
  busy(on) { this.canvas.classList.toggle("busy", on); }

  // The browser enlarges the small canvas while it composes the page, which costs less than drawing it enlarged.
  drawHeat(image, opacity) {
    const { canvas } = this.heat;
    canvas.hidden = !image;
    if (!image) return;
    if (canvas.width !== image.width) canvas.width = canvas.height = image.width;
    canvas.style.opacity = opacity;
    this.heat.putImageData(image, 0, 0);
  }

  outline(context, box, color, dash, width = 2) {
    const [x1, y1, x2, y2] = box.map((value) => value * this.scale), line = width * this.sharp;
    context.lineWidth = line + 2 * this.sharp;
    context.strokeStyle = "rgba(0, 0, 0, 0.65)";
    context.setLineDash([]);
    context.strokeRect(x1, y1, x2 - x1, y2 - y1);
    context.lineWidth = line;
    context.strokeStyle = color;
    context.setLineDash(dash.map((length) => length * this.sharp));
    context.strokeRect(x1, y1, x2 - x1, y2 - y1);
    context.setLineDash([]);
  }

  shape(context, polygons) {
    context.beginPath();
    for (const points of polygons) {
      for (let at = 0; at < points.length; at += 2) context[at ? "lineTo" : "moveTo"]((points[at] + 0.5) * this.scale, (points[at + 1] + 0.5) * this.scale);
      context.closePath();
    }
    for (const [width, color] of [[4, "rgba(0, 0, 0, 0.6)"], [2, "#5eead4"]]) {
      context.lineWidth = width * this.sharp;
      context.strokeStyle = color;
      context.stroke();
    }
  }

  handles(context, box, color) {
    const half = 3.5 * this.sharp;
    context.fillStyle = color;
    context.strokeStyle = "rgba(0, 0, 0, 0.7)";
    context.lineWidth = this.sharp;
    for (const [x, y] of Object.values(handlePoints(box))) {
      context.fillRect(x * this.scale - half, y * this.scale - half, 2 * half, 2 * half);
      context.strokeRect(x * this.scale - half, y * this.scale - half, 2 * half, 2 * half);
    }
  }

  label(context, box, text, color, under = false) {
    const size = 13 * this.sharp, pad = 5 * this.sharp;
    context.font = `600 ${size}px system-ui, sans-serif`;
    const width = context.measureText(text).width + 2 * pad, height = size + 1.4 * pad;
    const x = Math.max(0, Math.min(box[0] * this.scale, this.canvas.width - width));
    const above = box[1] * this.scale - height - 2 * this.sharp, below = box[3] * this.scale + 2 * this.sharp;
    const y = above >= 0 && !under ? above : below + height <= this.canvas.height ? below : 0;
    context.fillStyle = color;
    context.fillRect(x, y, width, height);
    context.fillStyle = "#10141d";
    context.textBaseline = "middle";
    context.fillText(text, x + pad, y + height / 2);
  }

  note(context, text, kind) {
    const size = 14 * this.sharp, pad = 8 * this.sharp;
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.fillStyle = "rgba(16, 20, 29, 0.75)";
    context.fillRect(pad, pad, context.measureText(text).width + 2 * pad, size + 1.5 * pad);
    context.fillStyle = kind === "predicted" ? "#e8ecf4" : colorOf(kind);
    context.textBaseline = "middle";
    context.fillText(text, 2 * pad, pad + (size + 1.5 * pad) / 2);
  }

  point(event) {
    const area = this.canvas.getBoundingClientRect();
    return [((event.clientX - area.left) / area.width) * this.video.width, ((event.clientY - area.top) / area.height) * this.video.height];
  }

  // What a press at a point would do: a handle's name, "move", "other" or "draw".
  hit(x, y, pointer) {
    const { box } = this.seen(), elsewhere = this.otherAt(x, y) ? "other" : "draw";
    if (!box) return elsewhere;
    const reach = ((pointer === "touch" ? HANDLE.touch : HANDLE.mouse) * this.video.width) / this.canvas.getBoundingClientRect().width;
    for (const [name, [hx, hy]] of Object.entries(handlePoints(box))) {
      if (Math.abs(x - hx) <= reach && Math.abs(y - hy) <= reach) return name;
    }
    return inside(box, x, y) ? "move" : elsewhere;
  }

  // The smallest box of another object at a point.
  otherAt(x, y) {
    const area = ({ box }) => (box[2] - box[0]) * (box[3] - box[1]);
    return this.seen().others?.filter(({ box }) => inside(box, x, y)).sort((a, b) => area(a) - area(b))[0];
  }

  down(event) {
    if (event.button !== 0) return;
    const [x, y] = this.point(event), pressed = event.shiftKey ? "draw" : this.hit(x, y, event.pointerType), what = pressed === "other" ? "move" : pressed;
    if (pressed === "other") this.chosen(this.otherAt(x, y).number);
    this.canvas.setPointerCapture(event.pointerId);
    const click = ["draw", "move"].includes(pressed) && !event.shiftKey; // a handle is held, another object is selected
    this.drag = { what, x, y, start: this.seen().box, box: null, click, inside: !event.altKey };
  }

  move(event) {
    const [x, y] = this.point(event);
    if (!this.drag) {
      this.near?.();
      this.canvas.style.cursor = CURSORS[event.shiftKey ? "draw" : this.hit(x, y, event.pointerType)];
      return;
    }
    const { what, start } = this.drag, dx = x - this.drag.x, dy = y - this.drag.y;
    const far = (3 * this.video.width) / this.canvas.getBoundingClientRect().width;
    if (!this.drag.box && Math.hypot(dx, dy) < far) return;
    const { width, height } = this.video;
    if (what === "draw") this.drag.box = clipped([this.drag.x, this.drag.y, x, y], width, height);
    else if (what === "move") this.drag.box = moved(start, dx, dy, width, height);
    else {
      const by = [dx, dy, dx, dy];
      this.drag.box = clipped(start.map((value, side) => value + SIDES[what][side] * by[side]), width, height);
    }
    this.draw();
  }

  up() {
    const { box, click, x, y, inside: on } = this.drag || {};
    this.drag = null;
    if (box && box[2] - box[0] >= 1 && box[3] - box[1] >= 1) this.edited(box.map((value) => Math.round(value * 100) / 100));
    else if (click && !box) this.clicked(...clipped([x, y, x, y], this.video.width, this.video.height).slice(0, 2), on);
    else this.draw();
  }

  close() { this.resized.disconnect(); }
}

const inside = ([x1, y1, x2, y2], x, y) => x > x1 && x < x2 && y > y1 && y < y2;

function handlePoints([x1, y1, x2, y2]) {
  const x = (x1 + x2) / 2, y = (y1 + y2) / 2;
  return { nw: [x1, y1], ne: [x2, y1], se: [x2, y2], sw: [x1, y2], n: [x, y1], e: [x2, y], s: [x, y2], w: [x1, y] };
}

export function colorOf(kind) {
  return { predicted: "#6ea8fe", accepted: "#4ade80", box: "#fbbf24", follows: "#fcd34d", asked: "#fb7185", none: "#c4b5fd", doubtful: "#fb7185", beside: OTHER }[kind] || "#6ea8fe";
}
