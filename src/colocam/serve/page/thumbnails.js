// Small images of frames, read one after the other from the proxy that the browser plays, so that the server decodes nothing.

const WAIT = 400; // milliseconds after a view was opened: its first frame comes first
const SIDE = 160; // pixels of the longer side

export class Thumbnails {
  // box(position) is drawn over a frame; null: none.
  constructor(video, box) {
    Object.assign(this, { video, box, wanted: [], images: new Map(), media: null, busy: false });
    this.timer = setTimeout(() => this.begin(), WAIT);
    const scale = SIDE / Math.max(video.width, video.height);
    [this.width, this.height] = [video.width, video.height].map((side) => Math.max(1, Math.round(side * scale)));
    this.seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) { this.seen.unobserve(target); this.wanted.push(target); }
      this.work();
    });
  }

  begin() {
    if (!this.video.proxy?.length) return;
    this.media = document.createElement("video");
    Object.assign(this.media, { muted: true, preload: "auto", src: `/api/videos/${this.video.id}/proxy` });
    this.work();
  }

  // A canvas that shows a frame, once it is in sight.
  of(position) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: this.width, height: this.height });
    canvas.dataset.at = position;
    if (this.images.has(position)) this.paint(canvas);
    else this.seen.observe(canvas);
    return canvas;
  }

  async work() {
    if (this.busy || !this.media) return;
    this.busy = true;
    while (this.wanted.length && !this.closed) {
      const canvas = this.wanted.shift(), position = Number(canvas.dataset.at);
      if (!canvas.isConnected) continue;
      if (!this.images.has(position) && !(await this.read(position))) break;
      this.paint(canvas);
    }
    this.busy = false;
  }

  async read(position) {
    const times = this.video.proxy, next = times[position + 1] ?? times[position] + 1 / this.video.fps;
    const done = new Promise((resolve) => {
      this.media.addEventListener("seeked", () => resolve(true), { once: true });
      this.media.addEventListener("error", () => resolve(false), { once: true });
    });
    this.media.currentTime = (times[position] + next) / 2; // well inside the frame
    if (!(await done)) return false;
    try { this.images.set(position, await createImageBitmap(this.media, { resizeWidth: this.width, resizeHeight: this.height })); } catch { return false; }
    return true;
  }

  paint(canvas) {
    const position = Number(canvas.dataset.at), context = canvas.getContext("2d"), box = this.box(position), scale = this.width / this.video.width;
    context.drawImage(this.images.get(position), 0, 0);
    canvas.dataset.drawn = "yes";
    if (!box) return;
    const [x1, y1, x2, y2] = box.map((side) => side * scale);
    for (const [width, color] of [[4, "rgba(0, 0, 0, 0.6)"], [2, "#fbbf24"]]) {
      Object.assign(context, { lineWidth: width, strokeStyle: color });
      context.strokeRect(x1, y1, x2 - x1, y2 - y1);
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.seen.disconnect();
    this.media?.removeAttribute("src");
    for (const image of this.images.values()) image.close();
  }
}
