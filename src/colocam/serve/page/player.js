// Which frame is on the screen. The position that is told is always that of the image that is shown:
// while playing, the time that the browser states for the frame that is drawn, looked up in the table of the proxy's times;
// while paused, the exact frame that the server read with the model's own reader.

import { getBlob } from "./api.js";
import { lowerBound } from "./marks.js";

const KEEP = 48;

export class Player {
  // shown(position) is called when another frame is on the screen; state() when playing begins or ends.
  constructor(video, { media, still, shown, state, problem }) {
    Object.assign(this, { video, media, still, onShown: shown, onState: state, onProblem: problem });
    this.count = video.frame.length;
    this.target = 0;
    this.position = -1;
    this.bitmaps = new Map();
    this.playing = false;
    this.hasProxy = false;
    this.closed = false;
    this.copy = null;
    this.setProxy(video.proxy);
    const each = (_now, frame) => {
      if (this.closed) return;
      if (!this.playing || !this.drawPlayed()) this.presented(this.nearest(frame.mediaTime));
      media.requestVideoFrameCallback(each);
    };
    media.requestVideoFrameCallback(each);
    media.addEventListener("ended", () => this.pause());
    media.addEventListener("error", () => { this.hasProxy = false; });
  }

  setProxy(times) {
    if (!times?.length || this.hasProxy) return;
    this.times = times;
    this.hasProxy = true;
    this.media.src = `/api/videos/${this.video.id}/proxy`;
    this.media.currentTime = this.middle(this.target);
  }

  // The frame whose time in the proxy is nearest to the one that the browser states.
  nearest(time) {
    const after = lowerBound(this.times, time);
    if (after === 0) return 0;
    if (after === this.times.length) return after - 1;
    return time - this.times[after - 1] <= this.times[after] - time ? after - 1 : after;
  }

  // A time well inside a frame, so that rounding cannot reach its neighbor.
  middle(position) {
    const start = this.times[position];
    const next = position + 1 < this.count ? this.times[position + 1] : start + 1 / this.video.fps;
    return start + (next - start) / 2;
  }

  // Show an image in place of the video.
  paint(image, width, height) {
    drawInto(this.still, image, width, height);
    this.still.hidden = false;
    this.drawCopy();
  }

  uncoverVideo() {
    this.still.hidden = true;
    this.drawCopy();
  }

  // A canvas that shows what is on the screen, from now on; null: none.
  setCopy(canvas) {
    this.copy = canvas;
    if (this.position >= 0) this.drawCopy();
  }

  drawCopy() {
    if (!this.copy) return;
    if (this.still.hidden) drawInto(this.copy, this.media, this.media.videoWidth, this.media.videoHeight);
    else drawInto(this.copy, this.still, this.still.width, this.still.height);
  }

  // Copy the frame of the video together with its time: on a busy machine the video is ahead of what the callback states.
  drawPlayed() {
    if (!("VideoFrame" in window)) return false;
    let frame;
    try { frame = new VideoFrame(this.media); } catch { return false; }
    this.paint(frame, frame.displayWidth, frame.displayHeight);
    this.target = this.nearest(frame.timestamp / 1e6);
    frame.close();
    this.tell(this.target);
    return true;
  }

  presented(position) {
    if (this.playing) {
      this.uncoverVideo();
      this.target = position;
      this.tell(position);
    } else if (this.still.hidden || (position === this.target && this.position !== position)) {
      this.uncoverVideo();
      this.tell(position);
    }
  }

  tell(position) {
    if (this.position === position) return;
    this.position = position;
    this.onShown(position);
  }

  async go(position) {
    this.stop();
    this.target = Math.max(0, Math.min(this.count - 1, position));
    if (this.hasProxy) this.media.currentTime = this.middle(this.target);
    await this.exact(this.target);
  }

  async exact(position) {
    let bitmap = this.bitmaps.get(position);
    if (!bitmap) {
      this.abort?.abort();
      this.abort = new AbortController();
      try {
        bitmap = await this.load(position, this.abort.signal);
      } catch (error) {
        if (error.name !== "AbortError" && position === this.target) this.onProblem(error);
        return;
      }
    }
    if (position !== this.target || this.playing || this.closed) return;
    this.paint(bitmap, bitmap.width, bitmap.height);
    this.tell(position);
    this.prefetch(position);
  }

  async load(position, signal) {
    const blob = await getBlob(`/api/videos/${this.video.id}/stills/${this.video.frame[position]}`, signal);
    const bitmap = await createImageBitmap(blob);
    this.bitmaps.set(position, bitmap);
    while (this.bitmaps.size > KEEP) {
      const [oldest, old] = this.bitmaps.entries().next().value;
      this.bitmaps.delete(oldest);
      old.close();
    }
    return bitmap;
  }

  async prefetch(position) {
    for (const other of [position + 1, position - 1, position + 2]) {
      if (other < 0 || other >= this.count || this.bitmaps.has(other) || position !== this.target) continue;
      try { await this.load(other); } catch { return; }
    }
  }

  async play() {
    if (this.playing) return;
    if (this.target >= this.count - 1) await this.go(0);
    this.playing = true;
    this.onState();
    if (!this.hasProxy) return this.playStills();
    this.media.currentTime = this.middle(this.target);
    try { await this.media.play(); } catch { this.stop(); }
  }

  // Without a proxy, frame by frame, as fast as they come.
  async playStills() {
    while (this.playing && this.target < this.count - 1) {
      const begun = performance.now(), next = this.target + 1;
      try {
        const bitmap = this.bitmaps.get(next) || (await this.load(next));
        if (!this.playing) return;
        this.target = next;
        this.paint(bitmap, bitmap.width, bitmap.height);
        this.tell(next);
      } catch { break; }
      await new Promise((done) => setTimeout(done, Math.max(0, 1000 / this.video.fps - (performance.now() - begun))));
    }
    this.stop();
  }

  stop() {
    if (!this.playing) return;
    this.playing = false;
    this.media.pause();
    this.onState();
  }

  async pause() {
    if (!this.playing) return;
    this.stop();
    await this.go(Math.max(0, this.position));
  }

  close() {
    this.closed = true;
    this.stop();
    this.media.removeAttribute("src");
    this.media.load();
    for (const bitmap of this.bitmaps.values()) bitmap.close();
  }
}

// The canvas is opaque, so that the browser need not compose the video beneath it.
function drawInto(canvas, image, width, height) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext("2d", { alpha: false }).drawImage(image, 0, 0, width, height);
}
