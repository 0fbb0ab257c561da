// From the actions of people to what each frame shows; the same rules as marks.py.

export const PREDICTED = 0, ACCEPTED = 1, NONE = 2, BOX = 3, FOLLOWS = 4, FOLLOWS_NONE = 5, ASKED = 6;
const CODES = { accepted: ACCEPTED, none: NONE, box: BOX, clear: PREDICTED };

// The first position whose value is at least the given one.
export function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

export function applyChange(history, change) {
  const { done, undone } = history;
  if (change.kind === "edit") { done.push(change); undone.length = 0; }
  else if (change.kind === "undo" && done.length) undone.push(done.pop());
  else if (change.kind === "redo" && undone.length) done.push(undone.pop());
}

// absent: positions where the model finds no object.
export function marksOf(edits, frames, cuts, absent = []) {
  const count = frames.length;
  const state = new Uint8Array(count), box = new Array(count).fill(null), tag = new Array(count).fill("");
  const kept = new Uint8Array(count), acceptedTag = new Array(count).fill(""); // what was accepted stays, whichever model is used
  for (const edit of edits) {
    for (const action of edit.actions) {
      const first = lowerBound(frames, action.start), last = lowerBound(frames, action.stop);
      for (let at = first; at < last; at++) {
        if (action.kind === "class") { tag[at] = action.tag; continue; }
        if (action.kind === "accepted") {
          if (state[at] !== PREDICTED) continue;
          state[at] = ACCEPTED;
          acceptedTag[at] = action.tag || "";
          if (action.boxes?.length === last - first) { kept[at] = 1; box[at] = action.boxes[at - first]; }
          continue;
        }
        state[at] = CODES[action.kind];
        box[at] = action.box || null;
        kept[at] = 0;
        acceptedTag[at] = "";
        if (action.kind === "clear") tag[at] = "";
      }
    }
  }
  follow(state, box, frames, cuts, absent);
  return { state, box, tag, kept, acceptedTag };
}

function follow(state, box, frames, cuts, absent) {
  const shot = new Int32Array(frames.length);
  for (const cut of cuts) shot[cut] = 1;
  for (let at = 1; at < shot.length; at++) shot[at] += shot[at - 1];
  const away = new Uint8Array(frames.length);
  for (const at of absent) away[at] = 1;
  let a = -1;
  for (let b = 0; b < frames.length; b++) {
    if (state[b] === PREDICTED) continue;
    if (a >= 0 && b - a > 1 && shot[a] === shot[b] && state[a] === state[b] && state[a] !== ACCEPTED) {
      const asked = state[a] === BOX && away.subarray(a + 1, b).includes(1); // it may have left and come back
      for (let at = a + 1; at < b; at++) {
        if (asked && !away[at]) continue;
        if (state[a] === NONE) { state[at] = FOLLOWS_NONE; continue; }
        const share = (frames[at] - frames[a]) / (frames[b] - frames[a]);
        state[at] = asked ? ASKED : FOLLOWS;
        box[at] = box[a].map((value, side) => value + share * (box[b][side] - value));
      }
    }
    a = b;
  }
}

export const isKey = (code) => code === BOX || code === NONE || code === ACCEPTED;
