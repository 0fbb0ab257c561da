// Where to go in a video, and how far a stretch reaches. Positions are indices into the video's table of frames.

import { ASKED, BOX, isKey } from "./marks.js";

// The frames around a position up to the next cut or marked frame: the first, and the one after the last. Around a frame
// that is asked about, only the neighbors that are asked about too: one answer is for all of them.
export function stretchAround(position, cuts, state) {
  const begins = new Set(cuts), asked = (at) => state[at] === ASKED;
  if (asked(position)) {
    const ends = [position, position + 1];
    while (asked(ends[0] - 1)) ends[0]--;
    while (asked(ends[1])) ends[1]++;
    return ends;
  }
  let first = position, last = position + 1;
  while (first > 0 && !begins.has(first) && !isKey(state[first - 1])) first--;
  while (last < state.length && !begins.has(last) && !isKey(state[last])) last++;
  return [first, last];
}

// Frames to check that nobody has checked: first one for each run of frames that are asked about, then those of the queue.
// Interpolated frames stay where doubt is high.
export function toCheck(queue, state, doubt, doubtful) {
  const runs = [];
  for (let at = 0; at < state.length; at++) {
    if (state[at] !== ASKED) continue;
    const [first, last] = stretchAround(at, [], state), frames = last - first;
    runs.push([(first + last - 1) >> 1, frames > 1 ? `was it there in these ${frames} frames, too?` : "was it there, too?"]);
    at = last;
  }
  return [...runs, ...queue.filter(([at]) => state[at] !== ASKED && !isKey(state[at]) && (!state[at] || doubt[at] >= doubtful))];
}

// Marked frames; of a run of accepted or empty frames only the first.
export function keyFrames(state) {
  return [...state.keys()].filter((at) => isKey(state[at]) && (state[at] === BOX || state[at - 1] !== state[at]));
}

// The nearest of ascending positions after or before the present one.
export function neighbor(positions, position, forward) {
  return forward ? positions.find((at) => at > position) : positions.findLast((at) => at < position);
}

// The middle between the marked frames around a position, or the ends of the video; undefined where there is no gap.
export function middleOfGap(state, position) {
  const keys = keyFrames(state), first = keys.findLast((at) => at <= position) ?? 0, last = keys.find((at) => at > position) ?? state.length - 1;
  return last - first < 2 ? undefined : Math.floor((first + last) / 2);
}

// The next frame to check, worst first: also where the present one is not in the queue, or was marked and has left it.
export function nextDoubtful(queue, position, forward) {
  const at = queue.findIndex(([one]) => one === position);
  return queue[at < 0 ? 0 : (at + (forward ? 1 : queue.length - 1)) % queue.length][0];
}

// The nearest box that was found or drawn, within a few seconds.
export function nearestBox(position, drawn, found = []) {
  for (let away = 1; away < 60; away++) {
    for (const at of [position - away, position + away]) if (drawn[at] || found[at]) return drawn[at] || found[at];
  }
  return null;
}
