// Corrections wait here until the server says that they are on its disk. The queue survives a reload of the page.
// Where they are stored or sent, a correction is called `change`, as earlier versions did.

import { AwayError, getJson, postJson } from "./api.js";
import { applyCorrection } from "./marks.js";

const RETRY = 1500;
const PREFIX = "colocam-waiting-";

const sending = new Map(); // by key: what waits for a video goes on after it was left, until it is opened again

const tabOf = () => {
  if (!sessionStorage.getItem("colocam-tab")) sessionStorage.setItem("colocam-tab", crypto.randomUUID());
  return sessionStorage.getItem("colocam-tab");
};

export class Saving {
  // told(status) is called with { text, kind }; changed() when the history is another; saved() after each edit
  // that is saved; conflict(theirs, mine) asks.
  constructor(video, { told, changed, saved, stored, conflict }) {
    Object.assign(this, { video, told, changed, saved, stored, conflict });
    this.key = `${PREFIX}${video}-${tabOf()}`;
    const left = sending.get(this.key);
    if (left) left.replaced = true;
    sending.set(this.key, this);
    this.waiting = this.adopt();
    this.history = { done: [], undone: [] };
    this.version = null; // not known yet: nothing is sent before
    this.busy = false;
    this.closed = false;
  }

  // The own queue of an earlier load, and queues of tabs that were closed before they could save.
  adopt() {
    const found = [];
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith(`${PREFIX}${this.video}-`))) {
      const stored = JSON.parse(localStorage.getItem(key));
      if (key !== this.key && Date.now() - stored.at < 20000) continue;
      found.push(...stored.changes);
      if (key !== this.key) localStorage.removeItem(key);
    }
    return found;
  }

  async load() {
    await this.fetchHistory();
    if (this.waiting.length) this.send();
  }

  async fetchHistory() {
    const stored = await getJson(`/api/videos/${this.video}/history`);
    if (this.version !== null && stored.version < this.version) return this.fetchHistory(); // a correction was saved while the answer was on its way
    this.version = stored.version;
    this.history = { done: stored.done, undone: stored.undone };
    for (const { change: correction } of this.waiting) applyCorrection(this.history, correction);
    return this.changed();
  }

  // Other pages may have changed the video while this one was in the background.
  async refresh() {
    if (this.waiting.length || this.busy || this.closed) return;
    const stored = await getJson(`/api/videos/${this.video}/history`);
    if (stored.version !== this.version && !this.waiting.length) await this.fetchHistory();
  }

  add(correction) {
    if (correction.kind === "undo" && !this.history.done.length) return false;
    if (correction.kind === "redo" && !this.history.undone.length) return false;
    this.waiting.push({ client: crypto.randomUUID(), change: correction });
    this.store();
    applyCorrection(this.history, correction);
    this.changed();
    this.told({ text: "saving…", kind: "busy" });
    this.send();
    return true;
  }

  store() {
    if (this.replaced) return;
    if (this.waiting.length) localStorage.setItem(this.key, JSON.stringify({ at: Date.now(), changes: this.waiting }));
    else {
      localStorage.removeItem(this.key);
      if (this.closed) sending.delete(this.key);
    }
  }

  async send() {
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.waiting.length && !this.replaced) if (!(await this.sendFirst())) break;
    } finally {
      this.busy = false;
    }
  }

  async sendFirst() {
    const first = this.waiting[0];
    try {
      if (this.version === null) await this.fetchHistory();
      const answer = await postJson(`/api/videos/${this.video}/history`, { ...first, version: this.version });
      this.version = Math.max(this.version, answer.version);
      this.waiting.shift();
      this.store();
      if (first.change.kind === "edit") this.saved();
      this.stored?.(answer); // its class may be another one now, so that the model looks again
      const at = new Date(answer.saved).toLocaleTimeString([], { hour12: false });
      if (!this.waiting.length) this.told({ text: `saved ${at}`, kind: "good" });
      return true;
    } catch (error) {
      return this.recover(error, first);
    }
  }

  async recover(error, first) {
    if (this.replaced) return false;
    const theirs = error.answer?.conflict;
    if (theirs) {
      // Corrections of other frames do not contradict each other.
      const mine = first.change;
      const useMine = !overlaps(theirs.map(({ change: correction }) => correction), mine) || (await this.conflict(theirs, mine));
      if (!useMine) { this.waiting.shift(); this.store(); }
      await this.fetchHistory();
      return true;
    }
    if (error.status === 409 || error.status === 422) { // refused for good
      this.told({ text: `not saved: ${error.message}`, kind: "bad" });
      this.waiting.shift();
      this.store();
      await this.fetchHistory();
      return true;
    }
    const away = error instanceof AwayError, many = this.waiting.length === 1 ? "1 correction waits" : `${this.waiting.length} corrections wait`;
    this.told({ text: `not saved: ${away ? "the server is not reachable" : error.message}; ${many} here`, kind: "bad" });
    this.store();
    setTimeout(() => this.send(), away ? RETRY : 2 * RETRY);
    return false;
  }

  close() {
    this.closed = true;
    this.store();
  }
}

export function overlaps(theirs, mine) {
  if (mine.kind !== "edit" || theirs.some((correction) => correction.kind !== "edit")) return true;
  const objectsOf = (one) => [one.track || 1, one.into || one.track || 1], same = (a, b) => objectsOf(a).some((number) => objectsOf(b).includes(number));
  return theirs.some((correction) => correction.actions.some((a) => mine.actions.some((b) => same(a, b) && a.start < b.stop && b.start < a.stop)));
}
