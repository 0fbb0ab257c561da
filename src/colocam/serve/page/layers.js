// What a model adds to a frame, fetched in blocks of frames: heat map, LayerCAM, outline of the object.

import { getBytes, getJson } from "./api.js";

const STOPS = [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [250, 193, 39], [252, 255, 164]];
const KEPT = 40;
const MOST = 5; // times that a faint map is brightened at most, so that noise does not look like an object

// The colors of the report.
const COLORS = new Uint8ClampedArray(256 * 4);
for (let level = 0; level < 256; level++) {
  const place = (level / 255) * (STOPS.length - 1), low = Math.min(Math.floor(place), STOPS.length - 2), part = place - low;
  for (let channel = 0; channel < 3; channel++) {
    COLORS[4 * level + channel] = STOPS[low][channel] + part * (STOPS[low + 1][channel] - STOPS[low][channel]);
  }
  COLORS[4 * level + 3] = Math.min(255, (level ** 2) / 200); // where there is little heat, the frame stays as it is
}

class Blocks {
  // get(start, count) fetches a block; arrived() is called when one is there, problem(error) when it cannot be had.
  constructor(size, count, { get, arrived, problem }) {
    Object.assign(this, { size, count, get, arrived, problem, blocks: new Map() });
  }

  // The block of a position, null while it is being fetched; the next one is fetched ahead.
  of(position) {
    const block = Math.floor(position / this.size);
    this.fetch(block);
    if (position % this.size > this.size / 2 && (block + 1) * this.size < this.count) this.fetch(block + 1);
    return this.blocks.get(block) || null;
  }

  async fetch(block) {
    if (this.blocks.has(block)) return;
    this.blocks.set(block, null);
    while (this.blocks.size > KEPT) this.blocks.delete(this.blocks.keys().next().value);
    try {
      this.blocks.set(block, await this.get(block * this.size, this.size));
      this.arrived();
    } catch (error) {
      if (error.status === 422) this.problem(error); // for good: the block stays empty
      else setTimeout(() => this.blocks.delete(block), 1000);
    }
  }
}

class Maps {
  constructor(side, blocks) {
    Object.assign(this, { side, blocks, image: new ImageData(side, side) });
  }

  // The map of a position in colors, null while it is being fetched.
  at(position) {
    const levels = this.blocks.of(position);
    if (!levels) return null;
    const start = (position % this.blocks.size) * this.side ** 2, data = new Uint32Array(this.image.data.buffer);
    const colors = new Uint32Array(COLORS.buffer), own = levels.subarray(start, start + data.length);
    const peak = own.reduce((most, one) => Math.max(most, one), 1), gain = Math.min(MOST, 255 / peak);
    for (let pixel = 0; pixel < data.length; pixel++) data[pixel] = colors[Math.round(gain * own[pixel])];
    return this.image;
  }
}

export class Layers {
  // arrived() is called when something new can be drawn, problem(error) when a layer cannot be had.
  constructor(video, told) {
    const { length } = video.frame, path = (what, start, count) => `/api/videos/${video.id}/${what}?start=${start}&count=${count}&model=${video.model}&results=${video.results_key}`;
    const maps = (what, size) => new Maps(video.map_side, new Blocks(size, length, { get: (start, count) => getBytes(path(what, start, count)), ...told }));
    this.heat = maps("maps", 64);
    this.cam = maps("cams", 16); // each takes a pass of the classifier
    this.shapes = new Blocks(32, length, { get: async (start, count) => (await getJson(path("outlines", start, count))).outlines, ...told });
  }

  map(kind, position) { return kind ? this[kind].at(position) : null; }

  outline(position) { return this.shapes.of(position)?.[position % this.shapes.size] || null; }
}
