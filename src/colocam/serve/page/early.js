// The video that the address names is asked for before the other modules are there: reading its frame takes longest.

import { getBlob, getJson } from "./api.js";

const address = new URLSearchParams(location.hash.slice(1));
let early = address.get("film") && { film: address.get("film"), answer: ask(address.get("film"), address.get("frame")) };
if (early) early.answer.catch(() => {}); // whoever opens the video sees the error

// The browser keeps the frame until the player asks for it.
function ask(film, frame) {
  getBlob(`/api/films/${film}/stills/${frame ?? 0}`).catch(() => {});
  return getJson(`/api/films/${film}`);
}

export function askFilm(film, frame) {
  const answer = early?.film === film ? early.answer : ask(film, frame);
  early = null;
  return answer;
}
