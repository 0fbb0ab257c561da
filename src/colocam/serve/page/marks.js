// From the actions of people to what each object is in each frame; the same rules as marks.py.
// Both run the cases of tests/serve/marks.json, and random corrections: tests/serve/test_one_rule.py.

import { moved } from "./overlay.js";

export const PREDICTED = 0, ACCEPTED = 1, NONE = 2, BOX = 3, FOLLOWS = 4, FOLLOWS_NONE = 5, ASKED = 6;
export const FIRST = 1; // number of the object that the model finds
const CODES = { accepted: ACCEPTED, none: NONE, box: BOX, clear: PREDICTED };
const SURENESS = { [PREDICTED]: 0, [ASKED]: 1, [FOLLOWS]: 2, [FOLLOWS_NONE]: 3, [ACCEPTED]: 4, [NONE]: 5, [BOX]: 6 };
const SAME_OBJECT = 0.5; // IoU from which a further object of the model is one that people have spoken of

// The first position whose value is at least the given one.
export function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

export function applyCorrection(history, correction) {
  const { done, undone } = history;
  if (correction.kind === "edit") { done.push(correction); undone.length = 0; }
  else if (correction.kind === "undo" && done.length) undone.push(done.pop());
  else if (correction.kind === "redo" && undone.length) done.push(undone.pop());
}

// What is said of one object. main: the model's object of the frame is this one; base: the box of a further object of the
// model that became this one; kept: what was accepted stays, whichever model is used; loose: followed from marked frames
// before a track was split or joined, and shows the same until it lies between two marked frames again.
function unmarked(count, main) {
  const empty = (value) => new Array(count).fill(value);
  return { state: new Uint8Array(count), box: empty(null), tag: empty(""), kept: new Uint8Array(count), acceptedTag: empty(""), main: new Uint8Array(count).fill(main ? 1 : 0), base: empty(null), loose: new Uint8Array(count) };
}

const counts = (marks, at) => marks.main[at] || marks.base[at] || marks.state[at] !== PREDICTED;

// The objects by their numbers, from 1. absent: positions where the model finds no object. others: further objects of the
// model; those that nobody has spoken of come last, as "?1", "?2", ….
export function objectsOf(edits, frames, cuts, absent = [], others = []) {
  const objects = new Map([[FIRST, unmarked(frames.length, true)]]);
  const objectOf = (number) => { if (!objects.has(number)) objects.set(number, unmarked(frames.length, false)); return objects.get(number); };
  for (const edit of edits) {
    for (const action of edit.actions) {
      if (action.kind === "video") { objects.forEach(forgetClasses); continue; }
      const first = lowerBound(frames, action.start), last = lowerBound(frames, action.stop), own = objectOf(action.track || FIRST);
      if (action.into) {
        const target = objectOf(action.into);
        for (const marks of [own, target]) settle(marks, frames, cuts, absent);
        move(own, target, first, last);
      } else apply(own, action, first, last);
    }
  }
  const left = new Map([...objects].sort(([a], [b]) => a - b).filter(([, marks]) => frames.some((_, at) => counts(marks, at))));
  for (const marks of left.values()) follow(marks, frames, cuts, absent);
  const known = [...left.values()];
  others.forEach((one, at) => {
    const offered = offeredBy(one, frames.length, known);
    if (offered) left.set(`?${at + 1}`, offered);
  });
  return left;
}

// The class of the whole video was set: what was said of single frames of the model's object before counts no more.
function forgetClasses({ tag, acceptedTag, main }) {
  for (let at = 0; at < tag.length; at++) if (main[at]) tag[at] = acceptedTag[at] = "";
}

function apply(marks, action, first, last) {
  const { state, box, tag, kept, acceptedTag, main, base, loose } = marks, stated = action.boxes?.length === last - first && action.boxes;
  for (let at = first; at < last; at++) {
    if (action.kind === "class" || action.kind === "add") {
      tag[at] = action.tag;
      if (stated) base[at] = stated[at - first];
      continue;
    }
    if (action.kind === "follow") {
      if (stated && !isKey(state[at])) { state[at] = FOLLOWS; box[at] = stated[at - first]; loose[at] = 0; }
      continue;
    }
    if (action.kind === "accepted") {
      if (isKey(state[at])) continue;
      state[at] = ACCEPTED;
      acceptedTag[at] = action.tag || "";
      box[at] = null;
      loose[at] = 0;
      if (stated) { kept[at] = 1; box[at] = stated[at - first]; }
      continue;
    }
    state[at] = CODES[action.kind];
    box[at] = action.box || null;
    kept[at] = loose[at] = 0;
    acceptedTag[at] = "";
    if (action.kind === "clear" && main[at]) tag[at] = "";
  }
}

// Frames of an object become those of another one; where both are marked, that one stays, unless it says "none" or nobody
// has checked it.
function move(source, target, first, last) {
  for (let at = first; at < last; at++) {
    const mine = source.state[at], its = target.state[at];
    const taken = (its === PREDICTED && mine !== PREDICTED) || ([NONE, FOLLOWS, FOLLOWS_NONE].includes(its) && (mine === ACCEPTED || mine === BOX)) || (its === FOLLOWS_NONE && mine === FOLLOWS);
    if (taken) for (const name of ["state", "box", "kept", "acceptedTag", "loose"]) target[name][at] = source[name][at];
    target.tag[at] = (taken && source.tag[at]) || target.tag[at] || source.tag[at];
    target.main[at] ||= source.main[at];
    target.base[at] ||= source.base[at];
    Object.entries({ state: PREDICTED, box: null, tag: "", kept: 0, acceptedTag: "", main: 0, base: null, loose: 0 }).forEach(([name, empty]) => { source[name][at] = empty; });
  }
}

// The boxes of a further object of the model that overlap no object of people; null where none is left.
function offeredBy(one, count, known) {
  const marks = unmarked(count, false);
  one.boxes.forEach((box, place) => {
    const at = one.at + place, spoken = (other) => other && overlap(box, other) >= SAME_OBJECT;
    if (box && !known.some((own) => spoken(own.box[at]) || spoken(own.base[at]))) marks.base[at] = box;
  });
  return marks.base.some(Boolean) ? { ...marks, tag: new Array(count).fill(one.tag), offered: one } : null;
}

function overlap(a, b) {
  const side = (low, high) => Math.max(0, Math.min(a[high], b[high]) - Math.max(a[low], b[low]));
  const common = side(0, 2) * side(1, 3), area = (box) => (box[2] - box[0]) * (box[3] - box[1]), whole = area(a) + area(b) - common;
  return whole > 0 ? common / whole : 0;
}

// Keep what follows from marked frames, before a move parts them or puts others between them.
function settle(marks, frames, cuts, absent) {
  const { state, loose } = marks, stated = state.map((code, at) => code === FOLLOWS && !loose[at]);
  follow(marks, frames, cuts, absent);
  for (let at = 0; at < state.length; at++) {
    if (state[at] === ASKED) state[at] = FOLLOWS;
    loose[at] = (state[at] === FOLLOWS || state[at] === FOLLOWS_NONE) && !stated[at] ? 1 : 0;
  }
}

function follow({ state, box, main, base, loose }, frames, cuts, absent) {
  const shot = new Int32Array(frames.length);
  for (const cut of cuts) shot[cut] = 1;
  for (let at = 1; at < shot.length; at++) shot[at] += shot[at - 1];
  const away = new Uint8Array(frames.length);
  for (const at of absent) away[at] = 1;
  let a = -1;
  for (let b = 0; b < frames.length; b++) {
    if (!isKey(state[b])) continue;
    if (a >= 0 && b - a > 1 && shot[a] === shot[b] && state[a] === state[b] && state[a] !== ACCEPTED) {
      const asked = state[a] === BOX && away.subarray(a + 1, b).includes(1); // it may have left and come back
      for (let at = a + 1; at < b; at++) {
        if (state[at] !== PREDICTED && !loose[at]) continue; // a box was carried on to there
        state[at] = PREDICTED;
        box[at] = null;
        if (asked && !away[at] && (main[at] || base[at])) continue; // the prediction stays
        if (state[a] === NONE) { state[at] = FOLLOWS_NONE; continue; }
        const share = (frames[at] - frames[a]) / (frames[b] - frames[a]);
        state[at] = FOLLOWS;
        box[at] = box[a].map((value, side) => value + share * (box[b][side] - value));
      }
    }
    a = b;
  }
  for (const at of absent) if (state[at] === FOLLOWS) state[at] = ASKED;
}

// A box carried on along the model's boxes of its object, one { box, track } or null for each frame from that of the box: it
// moves as their centers do. Where the model has lost the track, and where it looks at something else, the box stays.
export function carried(box, guides, width, height) {
  const center = ([x1, y1, x2, y2]) => [(x1 + x2) / 2, (y1 + y2) / 2], [from] = guides, guided = from && overlap(box, from.box) > 0;
  let [dx, dy] = [0, 0];
  return guides.slice(1).map((guide) => {
    if (guided && guide?.track === from.track) [dx, dy] = center(guide.box).map((at, axis) => at - center(from.box)[axis]);
    return moved(box, dx, dy, width, height).map((side) => Math.round(side * 100) / 100);
  });
}

// What is known of whole frames: of the states of the objects in a frame, the one that is least sure.
export function frameStates(objects, count) {
  const found = new Uint8Array(count).fill(BOX), known = new Uint8Array(count);
  for (const marks of objects.values()) {
    for (let at = 0; at < count; at++) {
      if (!counts(marks, at)) continue;
      if (!known[at] || SURENESS[marks.state[at]] < SURENESS[found[at]]) found[at] = marks.state[at];
      known[at] = 1;
    }
  }
  return found;
}

// The box of an object that is predicted in a frame, and the box that the frame shows of it; null: none.
export const predictedBox = (marks, results, at) => (marks.main[at] && results?.box[at]) || marks.base[at] || null;

// The model's box of an object in a frame, and its track; null: none.
export function guideOf(marks, results, at) {
  const box = predictedBox(marks, results, at), own = marks.main[at] && results?.box[at];
  return box && { box, track: own ? results.track[at] : "base" };
}

export function boxOf(marks, results, at) {
  const code = marks.state[at];
  if (code === NONE || code === FOLLOWS_NONE) return null;
  return code === BOX || code === FOLLOWS || code === ASKED || marks.kept[at] ? marks.box[at] : predictedBox(marks, results, at);
}

export const tagOf = (marks, results, at) => marks.tag[at] || marks.acceptedTag[at] || results?.tag[at] || "";

export const isKey = (code) => code === BOX || code === NONE || code === ACCEPTED;
