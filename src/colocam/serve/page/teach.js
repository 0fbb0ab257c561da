// Teaching: learn from corrections, see what they changed, and choose the model in use.

import { getBlob, getJson, postJson, remove } from "./api.js";
import { capital, dialog, make, percent, tell } from "./dom.js";
import { OTHER } from "./overlay.js";

const EVERY = 10; // corrections from one lesson to the next
const OPTION = "colocam-learn-often", COUNT = "colocam-unlearned", WATCHED = "colocam-lesson";
const STATES = { never: "Nothing has been learned yet.", learning: "Learning… You can close this and go on correcting.", done: "", failed: "The lesson failed. Its output says why.", cancelled: "The lesson was cancelled: nothing has changed." };
const STAGES = { classes: "new classes", head: "classes", threshold: "threshold", presence: "presence", decoder: "decoder" };
const BEFORE = "#6ea8fe";

// Called after each correction that is saved: every ten of them, thresholds follow at once and a lesson begins.
export async function corrected(view) {
  const count = 1 + Number(localStorage.getItem(COUNT) || 0);
  localStorage.setItem(COUNT, String(count));
  if (count < EVERY || localStorage.getItem(OPTION) !== "yes") return;
  localStorage.setItem(COUNT, "0");
  try {
    const quick = await postJson("/api/lessons/quick", {});
    tell(`Thresholds and presence were updated from your corrections (${quick.seconds.toFixed(1)} s). The video is being localized again.`, "note");
    await view.renew();
  } catch (error) { tell(error.message); return; }
  try { await postJson("/api/lessons", {}); watchLesson(); } catch { /* the last lesson is still running: the next one has these corrections too */ }
}

// Say when a lesson that this tab began has ended, also after a reload.
export async function watchLesson(begun = true) {
  if (begun) sessionStorage.setItem(WATCHED, "yes");
  if (sessionStorage.getItem(WATCHED) !== "yes") return;
  let lesson = { state: "learning" };
  while (lesson.state === "learning") {
    await new Promise((done) => setTimeout(done, 1500));
    try { lesson = await getJson("/api/lessons"); } catch { /* the server is not reachable: ask again */ }
  }
  if (sessionStorage.getItem(WATCHED) !== "yes") return; // told already
  sessionStorage.removeItem(WATCHED);
  if (document.querySelector("dialog.learn")) return;
  if (lesson.state === "done") tell("The lesson is done. “Learn…” shows what your corrections changed.", "note", { stays: true });
  else if (lesson.state === "failed") tell("The lesson failed. “Learn…” shows its output.", "error", { stays: true });
}

export async function learnDialog(view) {
  const state = make("p", { "aria-live": "polite" }), output = make("pre", { class: "output", tabindex: "0", "aria-label": "Output" });
  const agreement = make("div"), changes = make("div", { class: "changes" }), use = make("div", { class: "row use" });
  const often = make("input", { type: "checkbox", id: "often", checked: localStorage.getItem(OPTION) === "yes", onchange: (event) => localStorage.setItem(OPTION, event.target.checked ? "yes" : "no") });
  const start = make("button", { type: "button", class: "primary" }, "Learn from all corrections"), source = make("p", { class: "dim" });
  const bar = make("progress", { max: "1", "aria-label": "Progress of the lesson" }), left = make("span", { class: "dim small" });
  const cancel = make("button", { type: "button" }, "Cancel the lesson"), running = make("div", { class: "row running", hidden: true }, bar, left, cancel);
  const box = dialog("Learn", make("p", {}, "Your corrections train a new model, in the background. A fifth of the corrected videos is held out; an update is kept only if the model agrees with them as well as before."),
    source, make("div", { class: "row" }, often, make("label", { for: "often" }, `After every ${EVERY} corrections, update thresholds right away and learn in the background`)),
    make("div", { class: "row" }, start, state), running, agreement, use, changes,
    make("details", { class: "told", hidden: true }, make("summary", {}, "Output"), output),
    make("form", { method: "dialog", class: "row" }, make("button", {}, "Close")));
  const details = box.querySelector(".told");
  box.classList.add("wide", "learn");
  let shownModels = "", shownChanges = "";

  async function choose(key) {
    try { await postJson("/api/models", { key }); await show(); await view?.renew?.(); } catch (error) { tell(error.message); }
  }

  function showModels({ models, active, first, videos }, { model, proof }) {
    const text = JSON.stringify([models, active, proof]);
    if (text === shownModels) return;
    shownModels = text;
    const select = make("select", { id: "in-use", onchange: (event) => choose(event.target.value) }, ...models.map((one) =>
      make("option", { value: one.key, selected: one.key === active }, `${one.title}${one.seen < videos ? ` (${one.seen} of ${videos} videos done)` : ""}`)));
    const newest = models.filter((one) => one.title.startsWith("lesson")).at(-1);
    const unproven = newest?.key === model && proof && proof.verdict !== "better"; // it can still be chosen from the list
    const other = active === first ? (unproven ? null : newest?.key) : first, words = active === first ? "Use the new model" : "Back to the first model";
    const focused = document.activeElement?.closest(".use");
    use.replaceChildren(make("label", { for: "in-use" }, "Model in use"), select, ...(other ? [make("button", { type: "button", onclick: () => choose(other) }, words)] : []));
    if (focused) use.querySelector("select").focus();
  }

  async function showChanges(lesson, models) {
    const before = models.active === lesson.model ? models.first : models.active;
    if (!lesson.model) return;
    const found = await getJson(`/api/changes?after=${lesson.model}&before=${before}`);
    const text = JSON.stringify(found);
    if (text === shownChanges) return;
    shownChanges = text;
    const looked = found.compared < found.videos ? ` The new model is done with ${found.compared} of ${found.videos} videos.` : "";
    const words = found.moved.length ? "The boxes that moved most:" : found.compared ? "No box moved." : "";
    const items = found.moved.map((one) => movedItem(one, () => box.close()));
    changes.replaceChildren(make("h2", {}, "What did my corrections change?"), make("p", {}, `${words}${looked}`),
      make("ul", { class: "moved" }, ...items.map((one) => one.element)));
    // Video by video and forward, as the server reads them.
    for (const one of items.sort((a, b) => a.key.localeCompare(b.key))) {
      if (!box.open || shownChanges !== text) return;
      await one.draw();
    }
  }

  async function show() {
    const [lesson, models] = await Promise.all([getJson("/api/lessons"), getJson("/api/models")]);
    const failed = models.models.find((one) => one.key === lesson.model)?.problem;
    state.textContent = failed || STATES[lesson.state] || "";
    start.disabled = lesson.state === "learning" || !lesson.corrections;
    running.hidden = lesson.state !== "learning";
    showProgress(lesson.lines);
    if (!lesson.corrections && lesson.state !== "learning") state.textContent = "Correct or accept some frames first.";
    if (lesson.corrections) source.textContent = `${lesson.corrections === 1 ? "1 correction" : `${lesson.corrections} corrections`} of ${lesson.corrected_videos === 1 ? "1 video" : `${lesson.corrected_videos ?? "several"} videos`}.`;
    const { refusal } = document.getElementById("learn").dataset;
    if (refusal) { start.disabled = true; state.textContent = sentence(refusal); }
    output.textContent = lesson.lines.join("\n");
    details.hidden = !lesson.lines.length;
    if (lesson.state === "failed") details.open = true;
    agreement.replaceChildren(...(lesson.state === "done" ? [...proofOf(lesson), ...agreementOf(lesson)] : []));
    showModels(models, lesson);
    if (lesson.state === "done") await showChanges(lesson, models);
  }

  function showProgress(lines) {
    const told = progressOf(lines);
    if (told) bar.value = told.done / told.total;
    else bar.removeAttribute("value");
    left.textContent = told ? `${told.title}: ${told.done} of ${told.total}${told.left ? `, about ${told.left} left` : ""}` : "Preparing…";
  }

  cancel.addEventListener("click", async () => {
    cancel.disabled = true;
    try { await remove("/api/lessons"); await show(); } catch (error) { tell(error.message); }
    cancel.disabled = false;
  });
  start.addEventListener("click", async () => {
    try { await postJson("/api/lessons", {}); localStorage.setItem(COUNT, "0"); watchLesson(); await show(); } catch (error) { tell(error.message); }
  });
  box.querySelector("form button").focus(); // not on the first thing that a key would switch
  while (box.open) {
    try { await show(); } catch (error) { state.textContent = error.message; }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

// The part of a lesson that is running, from the last line of its output that counts steps: "decoder: 120/400 in 31 s, 72 s left".
export function progressOf(lines) {
  const found = lines.map((line) => line.match(/^(.+?): (\d+)\/(\d+)\b(?:.*?, (\d+) s left)?/)).findLast(Boolean);
  if (!found) return null;
  const seconds = Number(found[4] || 0);
  return { title: found[1], done: Number(found[2]), total: Number(found[3]), left: seconds && (seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`) };
}

// Whether the model can learn, on the button that begins, before anybody corrects a frame.
export function showLearning(refusal) {
  const button = document.getElementById("learn");
  button.textContent = refusal ? "Cannot learn…" : "Learn…";
  button.title = refusal ? sentence(refusal) : "Learn from corrections";
  button.dataset.refusal = refusal || "";
}

const sentence = (text) => `${capital(text)}.`;
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

// What a lesson proves, in words; nothing where it does not say.
function proofOf({ proof }) {
  if (!proof) return [];
  const { verdict, videos, corrections, before, after, low, high, missing } = proof, count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const more = `Not enough yet: correct ${missing === 1 ? "1 more video" : `${missing} more videos`}.`;
  const words = { better: "The new model is better.", unclear: `${more} The difference may be chance.`, "too few": more, unchanged: "No update helped, so the old model stays." }[verdict];
  const difference = low === null || after === null ? "" : ` Difference of the mean IoU: ${signed(after - before)}, 95 % interval ${signed(low)} to ${signed(high)}.`;
  return [make("p", { class: `proof ${verdict === "better" ? "good" : ""}` }, make("strong", {}, words), `${difference} Measured with ${count(corrections, "held-out correction")} of ${count(videos, "video")}; interpolated frames do not count.`)];
}

// How well the old and the new model agree with corrections that neither has learned from.
function agreementOf({ stages, held_out: frames }) {
  const before = stages[0], after = stages.filter((one) => one.kept).at(-1);
  if (!before) return [];
  if (!frames) return [make("p", {}, "Done. No corrected video was held out, so it is unknown whether the new model is better: correct frames in several videos.")];
  const share = (value) => (value === null || value === undefined ? "–" : percent(value)), number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
  const row = (words, name, text) => make("tr", {}, make("th", { scope: "row" }, words), make("td", {}, text(before[name])), make("td", {}, text(after[name])));
  const named = (kept) => stages.slice(1).filter((one) => one.kept === kept).map((one) => STAGES[one.name] || one.name).join(", ");
  const presence = typeof (before.presence_loss ?? after.presence_loss) === "number";
  return [make("table", { class: "agreement" }, make("caption", {}, `Agreement with ${frames === 1 ? "1 held-out correction" : `${frames} held-out corrections`}`),
    make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col" }, "before"), make("th", { scope: "col" }, "after"))),
    make("tbody", {}, row("mean IoU of boxes", "iou", number), row("boxes with IoU above\u00a0½", "corloc", (value) => share(value === null || value === undefined ? value : value / 100)), ...(presence ? [row("loss of presence", "presence_loss", number)] : []))),
  make("p", { class: "dim small" }, named(true) ? `Learned: ${named(true)}.` : "No update helped on the held-out corrections, so the new model is a copy of the old one.",
    named(true) && named(false) ? ` Not kept, because the model would agree less: ${named(false)}.` : "")];
}

function movedItem(one, leave) {
  const image = (words, box, color) => {
    const canvas = make("canvas", { role: "img", width: 320, height: 180, "aria-label": `${words}: ${box ? `box ${box.map(Math.round).join(", ")}` : "no object"}` });
    return [canvas, (bitmap) => {
      const scale = 320 / bitmap.width, context = canvas.getContext("2d");
      canvas.height = Math.round(bitmap.height * scale);
      context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      canvas.dataset.drawn = "yes";
      if (!box) return;
      context.lineWidth = 3;
      context.strokeStyle = color;
      context.strokeRect(box[0] * scale, box[1] * scale, (box[2] - box[0]) * scale, (box[3] - box[1]) * scale);
    }];
  };
  const [before, drawBefore] = image("before", one.before, BEFORE), [after, drawAfter] = image("after", one.after, OTHER);
  const draw = async () => {
    try {
      const bitmap = await createImageBitmap(await getBlob(`/api/videos/${one.video}/stills/${one.frame}`));
      drawBefore(bitmap); drawAfter(bitmap); bitmap.close();
    } catch (error) { tell(error.message); }
  };
  const figure = (canvas, words) => make("figure", {}, canvas, make("figcaption", {}, words));
  const element = make("li", {}, make("a", { href: `#video=${one.video}&frame=${one.frame}`, onclick: leave }, `${one.name}, frame ${one.frame}`), make("span", { class: "dim" }, ` IoU ${one.overlap.toFixed(2)}`),
    make("div", { class: "pair" }, figure(before, "before"), figure(after, "after")));
  return { element, draw, key: `${one.video} ${String(one.frame).padStart(12, "0")}` };
}
