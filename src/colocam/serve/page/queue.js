// Frames to check, worst first, with a small image of each: the first thing beside the video.

import { make } from "./dom.js";
import { Thumbnails } from "./thumbnails.js";

const SHOWN = 60;

export function queueOf(video, on) {
  const thumbnails = new Thumbnails(video, (at) => video.results?.box[at]);
  const list = make("ol", { class: "queue", "aria-label": "Frames to check, worst first" });
  const title = make("h2", {}), note = make("p", { class: "dim small", hidden: true });
  const skip = make("input", { type: "checkbox", checked: true, id: "skip", onchange: (event) => on.setSkip(event.target.checked) });
  const question = make("span"), unsure = make("div", { class: "row small", hidden: true }, make("p", { class: "other-class" }, question),
    make("button", { type: "button", title: "Set the class of the whole video (Shift+C)", onclick: () => on.act("videoClass") }, "Video’s class…", make("kbd", {}, "⇧C")));
  const element = make("section", { class: "queue-box", "aria-label": "Frames to check" },
    make("div", { class: "row queue-head" }, title, make("span", { class: "space" }), make("kbd", {}, "J"), make("kbd", {}, "K")), unsure, note, list,
    make("div", { class: "row small skip" }, skip, make("label", { for: "skip" }, "Skip frames that are checked")));
  const itemOf = ([at, reason]) => make("li", { "data-at": String(at), "data-key": `${at},${reason}` },
    make("button", { type: "button", class: "quiet", title: reason, onclick: () => on.goQueued(at) }, thumbnails.of(at), make("b", {}, String(video.frame[at])), make("span", {}, reason)));
  return {
    element,
    close: () => thumbnails.close(),
    // found: the class that the model found, where it is in doubt.
    show(entries, position, found) {
      unsure.hidden = !found;
      question.textContent = `Is it “${found}”? The model is not sure of the class.`;
      title.textContent = video.results ? `Frames to check (${entries.length})` : "Frames to check: once the video is localized";
      note.hidden = !video.results || entries.length > 0;
      note.textContent = "Nothing is left to check here. L leads back to the library, J and Enter to the next video there.";
      const shown = entries.slice(0, SHOWN), key = shown.join(";");
      if (list.dataset.key !== key) {
        list.dataset.key = key;
        const old = new Map([...list.children].map((item) => [item.dataset.key, item]));
        list.replaceChildren(...shown.map((entry) => old.get(entry.join()) || itemOf(entry)));
      }
      const item = list.querySelector(`[data-at="${position}"]`), before = list.querySelector("[aria-current=true]");
      if (item === before) return;
      before?.removeAttribute("aria-current");
      item?.setAttribute("aria-current", "true");
      // Scroll the list alone: scrollIntoView would move the frame out of sight on a small screen.
      if (item) Object.assign(list, { scrollTop: item.offsetTop - list.clientHeight / 2, scrollLeft: item.offsetLeft - list.clientWidth / 2 });
    },
  };
}
