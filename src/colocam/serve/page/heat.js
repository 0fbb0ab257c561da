// Heat maps of a film, fetched in blocks, coloured as the report colours them.

import { getBytes } from "./api.js";

const BLOCK = 64;
const STOPS = [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [250, 193, 39], [252, 255, 164]];

const COLOURS = new Uint8ClampedArray(256 * 4);
for (let level = 0; level < 256; level++) {
  const place = (level / 255) * (STOPS.length - 1), low = Math.min(Math.floor(place), STOPS.length - 2), part = place - low;
  for (let channel = 0; channel < 3; channel++) {
    COLOURS[4 * level + channel] = STOPS[low][channel] + part * (STOPS[low + 1][channel] - STOPS[low][channel]);
  }
  COLOURS[4 * level + 3] = Math.min(255, (level ** 2) / 200); // where there is little heat, the frame stays as it is
}

export class HeatMaps {
  constructor(film, side, count, arrived) {
    Object.assign(this, { film, side, count, arrived, blocks: new Map() });
    this.canvas = document.createElement("canvas");
    this.canvas.width = this.canvas.height = side;
    this.image = new ImageData(side, side);
  }

  // A canvas with the map of a position, null while it is being fetched.
  at(position) {
    const block = Math.floor(position / BLOCK);
    this.fetch(block);
    if (position % BLOCK > BLOCK / 2 && (block + 1) * BLOCK < this.count) this.fetch(block + 1);
    const levels = this.blocks.get(block);
    if (!levels) return null;
    const start = (position % BLOCK) * this.side ** 2, data = new Uint32Array(this.image.data.buffer);
    const colours = new Uint32Array(COLOURS.buffer);
    for (let pixel = 0; pixel < data.length; pixel++) data[pixel] = colours[levels[start + pixel]];
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
    return this.canvas;
  }

  async fetch(block) {
    if (this.blocks.has(block)) return;
    this.blocks.set(block, null);
    try {
      this.blocks.set(block, await getBytes(`/api/films/${this.film}/maps?start=${block * BLOCK}&count=${BLOCK}`));
      this.arrived();
    } catch {
      this.blocks.delete(block);
    }
    while (this.blocks.size > 40) this.blocks.delete(this.blocks.keys().next().value);
  }
}
