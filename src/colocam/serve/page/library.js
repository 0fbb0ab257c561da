// The library: a card per video, videos that are dropped on the page, progress.

import { getJson, postJson, remove, upload } from "./api.js";
import { capital, dialog, make, percent, tell } from "./dom.js";
import { pace } from "./memory.js";
import { askSettings, askTags } from "./options.js";
import { showLearning } from "./teach.js";

const REFRESH = 1500;
const WORDS = { waiting: "waiting", reading: "reading frames", read: "waiting for the model", localizing: "localizing", ready: "ready", failed: "cannot be shown" };

const ALL = "all videos";
const WHICH = {
  [ALL]: () => true,
  "to check": (video) => video.to_check > 0,
  "class in doubt": (video) => video.class_in_doubt,
  "all checked": (video) => allChecked(video),
  "not ready": (video) => video.state !== "ready",
};
const allChecked = (video) => video.checked >= 0.9995;

export function openLibrary(view) {
  const list = make("ul", { class: "videos" });
  const input = make("input", { type: "file", accept: "video/*,.mkv,.avi,.mp4,.mov,.webm", multiple: true, id: "add-video", class: "hidden", tabindex: "-1", "aria-label": "Videos to add" });
  const add = make("label", { class: "button primary", for: "add-video", tabindex: "0", role: "button" }, "Add videos…");
  const count = make("span", { class: "dim" }), left = make("p", { class: "left", "aria-live": "polite" });
  const uploads = make("ul", { class: "uploads" });
  const sort = make("select", { id: "sort" }, make("option", { value: "doubt" }, "most doubtful first"), make("option", { value: "name" }, "by name"), make("option", { value: "added" }, "as added"));
  const find = make("input", { type: "search", id: "find", placeholder: "name or class", "aria-label": "Show only videos whose name or class contains this" });
  const which = make("select", { id: "which", "aria-label": "Which videos" }, ...Object.keys(WHICH).map((words) => make("option", {}, words)));
  const cards = new Map(), selected = new Set(); // ids of videos that are shown
  const order = make("span", { class: "row order" }, make("label", { for: "sort", class: "dim" }, "Order"), sort);
  const all = make("input", { type: "checkbox", id: "select-all", onchange: () => { for (const video of shown) mark(video.id, all.checked); showSelection(); } });
  const many = make("span", { class: "dim", "aria-live": "polite" });
  const setClass = make("button", { type: "button", title: "Set the class of the selected videos", onclick: () => askTags(shown.filter((video) => selected.has(video.id)), tags, refresh) }, "Class…");
  const options = make("button", { type: "button", title: "Presence, threshold, number of objects and segmenter, for all videos", onclick: () => askSettings(settings, segmenter, refresh) }, "Settings…");
  let timer = null, closed = false, videos = [], adding = 0, tags = [], settings = {}, segmenter = false, shown = [], last = null;

  function mark(id, on) {
    if (on) selected.add(id); else selected.delete(id);
    const box = cards.get(id)?.querySelector(".select");
    if (box) box.checked = on;
  }

  // With Shift, all videos from the last one that was selected or not up to this one become as this one.
  function select(id, on, shift) {
    const [from, to] = [shown.findIndex((video) => video.id === last), shown.findIndex((video) => video.id === id)].sort((a, b) => a - b);
    for (const video of shift && from >= 0 ? shown.slice(from, to + 1) : [{ id }]) mark(video.id, on);
    last = id;
    showSelection();
  }

  function showSelection() {
    all.checked = shown.length > 0 && selected.size === shown.length;
    all.indeterminate = selected.size > 0 && !all.checked;
    many.textContent = selected.size ? `${selected.size} selected` : "";
    setClass.disabled = !selected.size;
  }

  const drop = (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    send([...(event.dataTransfer?.files || [])]);
  };
  const over = (event) => { event.preventDefault(); document.body.classList.add("dropping"); };
  const leave = (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); };
  const listen = (on) => {
    const change = on ? "addEventListener" : "removeEventListener";
    window[change]("dragover", over); window[change]("dragleave", leave); window[change]("drop", drop);
  };

  async function send(files) {
    for (const file of files) {
      const bar = make("progress", { max: "1", "aria-label": `Sending ${file.name}` });
      const row = make("li", {}, make("span", { class: "name" }, file.name), bar);
      uploads.append(row);
      try {
        await upload("/api/videos", file, (share) => { bar.value = share; });
        await refresh();
      } catch (error) {
        tell(`${file.name}: ${error.message}`);
      }
      row.remove();
    }
  }

  async function refresh() {
    clearTimeout(timer);
    let quiet = false;
    try {
      const answer = await getJson("/api/videos");
      ({ videos, adding, tags, settings, segmenter } = answer);
      showLearning(answer.cannot_learn);
      quiet = !adding && videos.every((video) => ["ready", "failed"].includes(video.state));
      away.hidden = true;
      show();
    } catch (error) {
      away.querySelector("strong").textContent = error.message;
      away.hidden = closed;
    }
    if (!closed) timer = setTimeout(refresh, quiet ? 6 * REFRESH : REFRESH);
  }

  function show() {
    if (closed) return;
    const compare = { doubt: (a, b) => (b.doubtful ?? -1) - (a.doubtful ?? -1), name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }), added: () => 0 }[sort.value];
    const words = find.value.trim().toLowerCase(), matches = (video) => `${video.name} ${video.class || video.tag} ${video.found || ""}`.toLowerCase().includes(words);
    const sorted = videos.filter((video) => matches(video) && WHICH[which.value](video)).sort(compare);
    shown = sorted;
    for (const id of selected) if (!shown.some((video) => video.id === id)) mark(id, false); // nobody changes what is not seen
    const part = sorted.length < videos.length ? `${sorted.length} of ` : "";
    const more = videos.length ? `${adding} more being added` : `${adding} being added`;
    count.textContent = [videos.length || !adding ? `${part}${videos.length === 1 ? "1 video" : `${videos.length} videos`}` : "", adding > 0 ? more : ""].filter(Boolean).join(", ");
    for (const id of cards.keys()) if (!videos.some((video) => video.id === id)) { cards.get(id).remove(); cards.delete(id); }
    for (const video of sorted) {
      const text = JSON.stringify(video);
      let card = cards.get(video.id);
      if (!card || card.dataset.text !== text) {
        const fresh = cardOf(video, { askRemove, retry, select, on: selected.has(video.id) });
        fresh.dataset.text = text;
        const focused = card?.contains(document.activeElement) && (document.activeElement.matches(".select") ? ".select" : "a");
        card?.replaceWith(fresh);
        card = fresh;
        cards.set(video.id, card);
        if (focused) card.querySelector(focused)?.focus();
      }
    }
    const wanted = sorted.map((video) => cards.get(video.id));
    if (list.children.length !== wanted.length || wanted.some((card, at) => list.children[at] !== card)) list.replaceChildren(...wanted);
    left.textContent = leftToDo(videos);
    empty.hidden = videos.length + adding > 0;
    coming.hidden = videos.length > 0 || adding === 0;
    for (const tool of [find, which, order]) tool.hidden = !videos.length;
    none.hidden = sorted.length > 0 || !videos.length;
    sought.textContent = `No video ${words ? `with “${find.value.trim()}” in its name or class` : "of this kind"}${words && which.value !== ALL ? `, among those ${which.value}` : ""}.`;
    chosen.hidden = !videos.length;
    showSelection();
  }

  // J and K lead from video to video, at first to one with frames to check; Enter opens it.
  function key(event) {
    const step = { j: 1, k: -1 }[event.key], links = [...list.querySelectorAll("a.open")];
    if (!step || !links.length || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input[type=search], select")) return false;
    const at = links.indexOf(document.activeElement?.closest(".video")?.querySelector("a.open"));
    const open = shown.find((video) => video.to_check), first = links.find((link) => link.hash === `#video=${open?.id}`) || links[0];
    (at < 0 ? first : links[(at + step + links.length) % links.length]).focus();
    event.preventDefault();
    return true;
  }

  function askRemove(video) {
    const box = dialog("Remove from the library?",
      make("p", {}, `“${video.name}” leaves the list. Its file and its corrections stay; add the video again to see them.`),
      make("form", { method: "dialog", class: "row" },
        make("button", { class: "danger", onclick: async () => { try { await remove(`/api/videos/${video.id}`); } catch (error) { tell(error.message); } refresh(); } }, "Remove"),
        make("button", {}, "Cancel")));
    box.querySelector("button:last-child").focus();
  }

  async function retry(video, button) {
    button.disabled = true;
    try { await postJson(`/api/videos/${video.id}/retry`, {}); } catch (error) { tell(error.message); button.disabled = false; }
    refresh();
  }

  input.addEventListener("change", () => { send([...input.files]); input.value = ""; });
  add.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && input.click());
  for (const one of [sort, which]) one.addEventListener("change", show);
  find.addEventListener("input", show);
  const empty = make("div", { class: "empty", hidden: true }, make("p", {}, make("strong", {}, "No video yet")), make("p", {}, "Drop video files here, or choose them with “Add videos…”."), make("p", {}, "Or name them in the command: ", make("code", {}, "colocam serve RUN VIDEOS")));
  const coming = make("div", { class: "empty", hidden: true, role: "status" }, make("p", {}, make("strong", {}, "Adding videos…")), make("p", {}, "Each appears here as soon as the server has read it."));
  const clear = () => { find.value = ""; which.value = ALL; show(); find.focus(); };
  const sought = make("p", {}), none = make("div", { class: "empty", hidden: true, role: "status" }, sought, make("button", { type: "button", class: "primary", onclick: clear }, "Show all videos"));
  const away = make("div", { class: "empty", hidden: true, role: "status" }, make("p", {}, make("strong", {})), make("p", {}, "Start the same command again: this page reconnects by itself. Your corrections are kept in this browser."));
  const chosen = make("div", { class: "row chosen", hidden: true }, all, make("label", { for: "select-all" }, "Select all shown"), many, setClass, options);
  view.replaceChildren(make("section", { class: "library", "aria-label": "Library" },
    make("div", { class: "row bar" }, make("h1", {}, "Library"), count, make("span", { class: "space" }), find, which, order, input, add),
    left, away, chosen, uploads, empty, coming, none, list, make("div", { class: "drop-note", "aria-hidden": "true" }, "Drop videos to add them")));
  listen(true);
  refresh();
  return { close() { closed = true; clearTimeout(timer); listen(false); }, key };
}

function cardOf(video, { askRemove, retry, select, on }) {
  const ready = video.state !== "waiting" && video.state !== "failed";
  const image = video.frames ? make("img", { src: `/api/videos/${video.id}/thumbnail`, alt: "", loading: "lazy" }) : make("div", { class: "no-image" }, video.state === "failed" ? "no picture" : "");
  const facts = [video.class ? `${video.class} (set)` : video.tag || video.found, video.seconds && duration(video.seconds), video.frames && `${video.frames} frames`, video.width && `${video.width}×${video.height}`];
  const state = video.state === "ready" ? doubtBar(video)
    : video.state === "failed" ? make("div", {}, make("p", { class: "problem" }, capital(`${video.fault === "machine" ? "this machine could not do it: " : ""}${video.problem}`)))
      : make("div", { class: "working" }, make("span", {}, `${WORDS[video.state]} ${["waiting", "read"].includes(video.state) ? "" : percent(video.done)}`), make("progress", { max: "1", value: String(video.done), "aria-label": WORDS[video.state] }));
  const title = make("span", { class: "name", title: video.name }, video.name);
  const box = make("input", { type: "checkbox", class: "select", checked: on, "aria-label": `Select ${video.name}`, title: "Select; with Shift up to here", onclick: (event) => select(video.id, box.checked, event.shiftKey) });
  const toggled = (event) => {
    if (!event.shiftKey) return;
    event.preventDefault(); // it would open a window
    select(video.id, !box.checked, true);
  };
  return make("li", { class: `video ${video.state}` }, box,
    make(ready ? "a" : "div", { class: "open", href: ready ? `#video=${video.id}` : null, onclick: toggled },
      make("div", { class: "image" }, image, video.box && boxOver(video), allChecked(video) && make("span", { class: "badge" }, "all checked")),
      make("div", { class: "facts" }, title, make("span", { class: "dim" }, ...wholes(facts.filter(Boolean), " · ")), video.class_in_doubt && make("p", { class: "other-class" }, `Is it “${video.found}”? The model is not sure of the class.`), state)),
    video.state === "failed" && make("div", { class: "row again" },
      make("button", { type: "button", title: "Prepare this video again", onclick: (event) => retry(video, event.currentTarget) }, "Retry"),
      make("span", { class: "dim small" }, video.fault === "machine" ? "The video itself may be fine." : "")),
    make("button", { type: "button", class: "quiet remove", "aria-label": `Remove ${video.name} from the library`, title: "Remove from the library", onclick: () => askRemove(video) }, "×"));
}

// What is left to do, in words: "3 videos, 41 frames to check, about 10 minutes".
function leftToDo(videos) {
  const open = videos.filter((video) => video.to_check), frames = open.reduce((sum, video) => sum + video.to_check, 0), unsure = videos.filter((video) => video.class_in_doubt).length;
  const minutes = Math.max(1, Math.round((frames * pace()) / 60)), count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const hours = Math.round(minutes / 6) / 10, time = minutes < 90 ? count(minutes, "minute") : `${hours} hours`;
  const check = frames ? `Left to do: ${count(open.length, "video")}, ${count(frames, "frame")} to check, about ${time}.` : videos.some((video) => video.state === "ready") ? "Nothing is left to check." : "";
  return `${check}${unsure ? ` In ${count(unsure, "video")}, the class is probably wrong.` : ""}`;
}

// Parts of a line that is broken between them only.
const wholes = (parts, between) => parts.flatMap((part, at) => [at ? between : "", make("span", { class: "whole" }, part)]);

const duration = (seconds) => (seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`);

// The box of the frame that the thumbnail shows.
function boxOver({ box: [x1, y1, x2, y2], width, height }) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg"), rectangle = document.createElementNS(drawing.namespaceURI, "rect");
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const [name, value] of Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1 })) rectangle.setAttribute(name, value);
  drawing.append(rectangle);
  return drawing;
}

function doubtBar(video) {
  const parts = [video.to_check && `${video.to_check} to check`, `${percent(video.doubtful)} doubtful`, `${percent(video.checked)} checked`, video.interpolated && `${percent(video.interpolated)} interpolated`].filter(Boolean);
  const bar = make("div", { class: "share", role: "img", "aria-label": parts.join(", ") });
  for (const [name, share] of [["checked", video.checked], ["interpolated", video.interpolated], ["doubtful", video.doubtful]]) {
    const part = make("i", { class: name });
    part.style.width = `${100 * share}%`;
    bar.append(part);
  }
  return make("div", { class: "doubt" }, bar, make("span", { class: "dim" }, ...wholes(parts, " · ")));
}
