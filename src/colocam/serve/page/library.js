// The library: a card per video, videos that are dropped on the page, progress.

import { getJson, remove, upload } from "./api.js";
import { dialog, make, percent, tell } from "./dom.js";
import { askSettings, askTags } from "./options.js";

const REFRESH = 1500;
const WORDS = { waiting: "waiting", reading: "reading frames", read: "waiting for the model", localising: "localising", ready: "ready", failed: "cannot be shown" };

const WHICH = {
  "all videos": () => true,
  "to check": (film) => film.doubtful > 0,
  "all checked": (film) => allChecked(film),
  "not ready": (film) => film.state !== "ready",
};
const allChecked = (film) => film.checked >= 0.9995;

export function openLibrary(view) {
  const list = make("ul", { class: "films" });
  const input = make("input", { type: "file", accept: "video/*,.mkv,.avi,.mp4,.mov,.webm", multiple: true, id: "add-film", class: "hidden", tabindex: "-1", "aria-label": "Videos to add" });
  const add = make("label", { class: "button primary", for: "add-film", tabindex: "0", role: "button" }, "Add videos…");
  const count = make("span", { class: "dim" });
  const uploads = make("ul", { class: "uploads" });
  const sort = make("select", { id: "sort" }, make("option", { value: "doubt" }, "most doubtful first"), make("option", { value: "name" }, "by name"), make("option", { value: "added" }, "as added"));
  const find = make("input", { type: "search", id: "find", placeholder: "name or class", "aria-label": "Show only videos whose name or class contains this" });
  const which = make("select", { id: "which", "aria-label": "Which videos" }, ...Object.keys(WHICH).map((words) => make("option", {}, words)));
  const cards = new Map(), selected = new Set(); // ids of videos that are shown
  const all = make("input", { type: "checkbox", id: "select-all", onchange: () => { for (const film of shown) mark(film.id, all.checked); showSelection(); } });
  const many = make("span", { class: "dim", "aria-live": "polite" });
  const setClass = make("button", { type: "button", title: "Set the class of the selected videos", onclick: () => askTags(shown.filter((film) => selected.has(film.id)), tags, refresh) }, "Class…");
  const options = make("button", { type: "button", title: "Presence, threshold, number of objects and segmenter, for all videos", onclick: () => askSettings(settings, segmenter, refresh) }, "Settings…");
  let timer = null, closed = false, films = [], adding = 0, tags = [], settings = {}, segmenter = false, shown = [], last = null;

  function mark(id, on) {
    if (on) selected.add(id); else selected.delete(id);
    const box = cards.get(id)?.querySelector(".select");
    if (box) box.checked = on;
  }

  // With Shift, all videos from the last one that was selected or not up to this one become as this one.
  function select(id, on, shift) {
    const [from, to] = [shown.findIndex((film) => film.id === last), shown.findIndex((film) => film.id === id)].sort((a, b) => a - b);
    for (const film of shift && from >= 0 ? shown.slice(from, to + 1) : [{ id }]) mark(film.id, on);
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
        await upload("/api/films", file, (share) => { bar.value = share; });
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
      ({ films, adding, tags, settings, segmenter } = await getJson("/api/films"));
      quiet = !adding && films.every((film) => ["ready", "failed"].includes(film.state));
      show();
    } catch (error) {
      count.textContent = error.message;
    }
    if (!closed) timer = setTimeout(refresh, quiet ? 6 * REFRESH : REFRESH);
  }

  function show() {
    if (closed) return;
    const order = { doubt: (a, b) => (b.doubtful ?? -1) - (a.doubtful ?? -1), name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }), added: () => 0 }[sort.value];
    const words = find.value.trim().toLowerCase(), matches = (film) => `${film.name} ${film.class || film.tag} ${film.found || ""}`.toLowerCase().includes(words);
    const sorted = films.filter((film) => matches(film) && WHICH[which.value](film)).sort(order);
    shown = sorted;
    for (const id of selected) if (!shown.some((film) => film.id === id)) mark(id, false); // nobody changes what is not seen
    const part = sorted.length < films.length ? `${sorted.length} of ` : "";
    count.textContent = `${part}${films.length === 1 ? "1 video" : `${films.length} videos`}${adding > 0 ? `, ${adding} more being added` : ""}`;
    for (const id of cards.keys()) if (!films.some((film) => film.id === id)) { cards.get(id).remove(); cards.delete(id); }
    for (const film of sorted) {
      const text = JSON.stringify(film);
      let card = cards.get(film.id);
      if (!card || card.dataset.text !== text) {
        const fresh = cardOf(film, { askRemove, select, on: selected.has(film.id) });
        fresh.dataset.text = text;
        const focused = card?.contains(document.activeElement) && (document.activeElement.matches(".select") ? ".select" : "a");
        card?.replaceWith(fresh);
        card = fresh;
        cards.set(film.id, card);
        if (focused) card.querySelector(focused)?.focus();
      }
    }
    const wanted = sorted.map((film) => cards.get(film.id));
    if (list.children.length !== wanted.length || wanted.some((card, at) => list.children[at] !== card)) list.replaceChildren(...wanted);
    empty.hidden = films.length + adding > 0;
    chosen.hidden = !films.length;
    showSelection();
  }

  function askRemove(film) {
    const box = dialog("Remove from the library?",
      make("p", {}, `“${film.name}” leaves the list. Its file and its corrections stay; add the video again to see them.`),
      make("form", { method: "dialog", class: "row" },
        make("button", { class: "danger", onclick: async () => { try { await remove(`/api/films/${film.id}`); } catch (error) { tell(error.message); } refresh(); } }, "Remove"),
        make("button", {}, "Cancel")));
    box.querySelector("button:last-child").focus();
  }

  input.addEventListener("change", () => { send([...input.files]); input.value = ""; });
  add.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && input.click());
  for (const one of [sort, which]) one.addEventListener("change", show);
  find.addEventListener("input", show);
  const empty = make("p", { class: "empty", hidden: true }, "No video yet. Drop video files here, or name them in the command: colocam serve RUN VIDEOS");
  const chosen = make("div", { class: "row chosen" }, all, make("label", { for: "select-all" }, "Select all shown"), many, setClass, options);
  view.replaceChildren(make("section", { class: "library", "aria-label": "Library" },
    make("div", { class: "row bar" }, make("h1", {}, "Library"), count, make("span", { class: "space" }), find, which, make("label", { for: "sort", class: "dim" }, "Order"), sort, input, add),
    chosen, uploads, empty, list, make("div", { class: "drop-note", "aria-hidden": "true" }, "Drop videos to add them")));
  listen(true);
  refresh();
  return { close() { closed = true; clearTimeout(timer); listen(false); }, key: () => false };
}

function cardOf(film, { askRemove, select, on }) {
  const ready = film.state !== "waiting" && film.state !== "failed";
  const image = film.frames ? make("img", { src: `/api/films/${film.id}/thumbnail`, alt: "", loading: "lazy" }) : make("div", { class: "no-image" });
  const facts = [film.class ? `${film.class} (set)` : film.tag || film.found, film.seconds && duration(film.seconds), film.frames && `${film.frames} frames`, film.width && `${film.width}×${film.height}`];
  const state = film.state === "ready" ? doubtBar(film)
    : film.state === "failed" ? make("p", { class: "problem" }, film.problem)
      : make("div", { class: "working" }, make("span", {}, `${WORDS[film.state]} ${["waiting", "read"].includes(film.state) ? "" : percent(film.done)}`), make("progress", { max: "1", value: String(film.done), "aria-label": WORDS[film.state] }));
  const title = make("span", { class: "name", title: film.name }, film.name);
  const box = make("input", { type: "checkbox", class: "select", checked: on, "aria-label": `Select ${film.name}`, title: "Select; with Shift up to here", onclick: (event) => select(film.id, box.checked, event.shiftKey) });
  const toggled = (event) => {
    if (!event.shiftKey) return;
    event.preventDefault(); // it would open a window
    select(film.id, !box.checked, true);
  };
  return make("li", { class: `film ${film.state}` }, box,
    make(ready ? "a" : "div", { class: "open", href: ready ? `#film=${film.id}` : null, onclick: toggled },
      make("div", { class: "image" }, image, film.box && boxOver(film), allChecked(film) && make("span", { class: "badge" }, "all checked")),
      make("div", { class: "facts" }, title, make("span", { class: "dim" }, facts.filter(Boolean).join(" · ")), state)),
    make("button", { type: "button", class: "quiet remove", "aria-label": `Remove ${film.name} from the library`, title: "Remove from the library", onclick: () => askRemove(film) }, "×"));
}

const duration = (seconds) => (seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`);

// The box of the frame that the thumbnail shows.
function boxOver({ box: [x1, y1, x2, y2], width, height }) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg"), rectangle = document.createElementNS(drawing.namespaceURI, "rect");
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const [name, value] of Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1 })) rectangle.setAttribute(name, value);
  drawing.append(rectangle);
  return drawing;
}

function doubtBar(film) {
  const text = `${percent(film.doubtful)} of frames doubtful, ${percent(film.checked)} checked${film.interpolated ? `, ${percent(film.interpolated)} interpolated` : ""}`;
  const bar = make("div", { class: "share", role: "img", "aria-label": text });
  for (const [name, share] of [["checked", film.checked], ["interpolated", film.interpolated], ["doubtful", film.doubtful]]) {
    const part = make("i", { class: name });
    part.style.width = `${100 * share}%`;
    bar.append(part);
  }
  return make("div", { class: "doubt" }, bar, make("span", { class: "dim" }, text));
}
