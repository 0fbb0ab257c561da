// Where to go in a film, and how far a stretch reaches. Positions are indices into the film's table of frames.

import { BOX, isKey } from "./marks.js";

// The frames around a position up to the next cut or marked frame: the first, and the one after the last.
export function stretchAround(position, cuts, state) {
  const begins = new Set(cuts);
  let first = position, last = position + 1;
  while (first > 0 && !begins.has(first) && !isKey(state[first - 1])) first--;
  while (last < state.length && !begins.has(last) && !isKey(state[last])) last++;
  return [first, last];
}

// Marked frames; of a run of accepted or empty frames only the first.
export function keyFrames(state) {
  return [...state.keys()].filter((at) => isKey(state[at]) && (state[at] === BOX || state[at - 1] !== state[at]));
}

// The nearest of ascending positions after or before the present one.
export function neighbour(positions, position, forward) {
  return forward ? positions.find((at) => at > position) : positions.findLast((at) => at < position);
}

// The middle between the marked frames around a position, or the ends of the film; undefined where there is no gap.
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
