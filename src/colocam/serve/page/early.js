// The video that the address names is asked for before the other modules are there: reading its frame takes longest.

import { getBlob, getJson } from "./api.js";
import { lastFrame } from "./memory.js";

const address = new URLSearchParams(location.hash.slice(1));
let early = address.get("video") && { video: address.get("video"), answer: ask(address.get("video"), address.get("frame")) };
if (early) early.answer.catch(() => {}); // whoever opens the video sees the error

// The browser keeps the frame until the player asks for it.
function ask(video, frame) {
  getBlob(`/api/videos/${video}/stills/${frame ?? lastFrame(video) ?? 0}`).catch(() => {});
  return getJson(`/api/videos/${video}`);
}

export function askVideo(video, frame) {
  const answer = early?.video === video ? early.answer : ask(video, frame);
  early = null;
  return answer;
}
