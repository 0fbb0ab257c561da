// Export of labels in every format, import of labels that were corrected elsewhere.

import { getJson, postFile, postJson } from "./api.js";
import { capital, dialog, make, tell } from "./dom.js";

const LAST = "colocam-format"; // the format that was exported last
const FIRST = "coco";
const NOTES = 3; // shown of an export
// What is known of frames, and how to leave them out.
const FRAMES = {
  checked: ["checked"],
  interpolated: ["interpolated", "Leave out interpolated frames"],
  asked: ["asked about (“still here?”)", "Leave out frames that are asked about"],
  unchecked: ["unchecked", "Leave out frames that nobody has checked"],
};
const options = (formats) => Object.entries(formats).map(([name, title]) => make("option", { value: name }, `${name}: ${title}`));

// What a dialog says about itself, errors too.
function noteOf() {
  const note = make("output", { class: "dim" });
  note.say = (text, kind = "dim") => { note.textContent = text; note.className = kind; };
  return note;
}

export async function exportDialog(video) {
  let formats;
  try { formats = await getJson("/api/formats"); } catch (error) { tell(error.message); return; }
  const select = make("select", { id: "format" }, ...options(formats.export)), images = make("input", { type: "checkbox", id: "images" });
  select.value = [localStorage.getItem(LAST), FIRST].find((name) => name in formats.export) || select.value;
  const choose = () => { images.disabled = !formats.images.includes(select.value); };
  select.addEventListener("change", choose);
  choose();
  const note = noteOf(), held = make("div", { class: "held" });
  const kinds = Object.entries(FRAMES).map(([name, [, leave]]) => [name, leave && make("input", { type: "checkbox", id: `leave-${name}` })]);
  const counted = new Map();
  const showCounts = () => {
    const shown = [...counted].filter(([id]) => all.checked || id === video).map(([, counts]) => counts), sum = (name) => shown.reduce((total, one) => total + one[name], 0);
    held.replaceChildren(make("p", {}, `The export contains the frames as the screen shows them: ${kinds.filter(([name]) => sum(name)).map(([name]) => `${sum(name)} ${FRAMES[name][0]}`).join(", ")}.`),
      ...kinds.filter(([name, box]) => box && sum(name)).map(([name, box]) => make("div", { class: "row" }, box, make("label", { for: box.id }, FRAMES[name][1]))));
  };
  const all = make("input", { type: "checkbox", id: "all-videos", checked: !video, disabled: !video });
  const save = make("button", { type: "button", class: "primary" }, "Export");
  all.addEventListener("change", showCounts);
  const box = dialog("Export", make("div", { class: "fields" }, make("label", { for: "format" }, "Format"), select),
    make("div", { class: "row" }, all, make("label", { for: "all-videos" }, video ? "All videos that are ready, not only this one" : "All videos that are ready")),
    make("div", { class: "row" }, images, make("label", { for: "images" }, "Include the frames as images")), held, note,
    make("form", { method: "dialog", class: "row" }, save, make("button", {}, "Close")));
  getJson("/api/videos").then(({ videos }) => {
    for (const one of videos) if (one.counts) counted.set(one.id, one.counts);
    if (counted.size) showCounts();
  }).catch(() => {}); // the export itself will say what is wrong
  save.addEventListener("click", async () => {
    save.disabled = true;
    note.say("Writing…");
    try {
      const leave_out = kinds.filter(([, box]) => box?.isConnected && box.checked).map(([name]) => name);
      const made = await postJson("/api/exports", { to: select.value, videos: video && !all.checked ? [video] : [], images: images.checked && !images.disabled, leave_out });
      make("a", { href: `/api/exports/${made.id}/${made.name}`, download: made.name }).click();
      localStorage.setItem(LAST, select.value);
      note.say(`${made.name} contains ${made.videos === 1 ? "1 video" : `${made.videos} videos`}${made.left_out ? `; ${made.left_out} that the model has not finished ${made.left_out === 1 ? "is" : "are"} left out` : ""}. ${notesOf(made.notes)}`);
    } catch (error) { note.say(error.message, "problem"); }
    save.disabled = false;
  });
  return box;
}

// A library of thousands may have a note for each video.
function notesOf(notes) {
  const left = notes.length - NOTES;
  return `${notes.slice(0, NOTES).map((one) => `${capital(one)}.`).join(" ")}${left > 0 ? ` And ${left} more ${left === 1 ? "video" : "videos"}.` : ""}`;
}

// Which of the videos of a file is this one; "": none.
function askVideo(question, names, video) {
  return new Promise((resolve) => {
    const select = make("select", { id: "labels-of" }, ...names.map((name) => make("option", { value: name }, name)));
    const several = names.length > 1;
    const box = dialog("Whose labels are these?", make("p", {}, `${capital(question)}.`),
      make("form", { method: "dialog" },
        several && make("div", { class: "fields" }, make("label", { for: "labels-of" }, "Labels of"), select),
        make("div", { class: "row" }, make("button", { class: "primary", value: "take" }, `Import ${several ? "these" : "them"} into ${video.name}`), make("button", {}, "Cancel"))));
    box.addEventListener("close", () => resolve(box.returnValue === "take" ? select.value : ""));
  });
}

export async function importDialog(video, saving) {
  let formats;
  try { formats = (await getJson("/api/formats")).import; } catch (error) { tell(error.message); return; }
  const select = make("select", { id: "format" }, ...options(formats)), file = make("input", { type: "file", id: "file" });
  const take = make("button", { type: "button", class: "primary" }, "Import"), note = noteOf();
  const box = dialog(`Import labels of ${video.name}`,
    make("p", {}, "Choose labels of this video that were corrected in another tool or on another page: a file, or a zipped folder. They are imported as one step, which you can undo."),
    make("div", { class: "fields" }, make("label", { for: "format" }, "Format"), select, make("label", { for: "file" }, "File"), file), note,
    make("form", { method: "dialog", class: "row" }, take, make("button", {}, "Close")));
  take.addEventListener("click", async () => {
    if (!file.files.length) { note.say("Choose a file first.", "problem"); return; }
    take.disabled = true;
    note.say("Reading…");
    const send = (more = {}) => {
      const query = new URLSearchParams({ format: select.value, client: crypto.randomUUID(), version: saving.version, ...more });
      return postFile(`/api/videos/${video.id}/labels?${query}`, file.files[0]);
    };
    try {
      const done = await send().catch(async (error) => {
        const names = error.answer?.videos;
        const name = names ? await askVideo(error.message, names, video) : "";
        if (!name) throw error;
        return send({ labels_of: name });
      });
      await saving.fetchHistory();
      note.say(`${done.changed === 1 ? "1 frame" : `${done.changed} frames`} changed. ${done.left_out.length ? `Left out: ${done.left_out.slice(0, 5).join("; ")}` : ""}`);
    } catch (error) { note.say(error.message, "problem"); }
    take.disabled = false;
  });
  return box;
}
