// The elements of the video view.

import { clock, make, percent } from "./dom.js";
import { FACTS, level, share } from "./facts.js";
import { objectsList } from "./objects.js";
import { paneOf } from "./pane.js";

export function layoutOf(view, video, on) {
  const button = (text, action, key, title, more = {}) => make("button", { type: "button", title: key ? `${title} (${key})` : title, "aria-keyshortcuts": key || null, onclick: () => on.act(action, { key: more.event }), ...more.attributes }, text, key && make("kbd", {}, key));
  const media = make("video", { preload: "auto", muted: true, playsInline: true, "aria-label": video.name, tabindex: "-1" });
  const still = make("canvas", { class: "still", hidden: true });
  const pane = paneOf("Frame with box and heat map", media, still), screen = make("div", { class: "screen" }, pane.element);
  const timeline = make("canvas", { class: "timeline", role: "slider", tabindex: "0", "aria-label": "Position in the video", "aria-valuemin": "0",
    onkeydown: (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -25, PageDown: 25 }[event.key];
      if (step) { event.preventDefault(); event.stopPropagation(); on.go(on.player.target + step * (event.shiftKey ? 10 : 1)); }
      if (event.key === "Home") on.act("first");
      if (event.key === "End") on.act("last");
    } });
  const play = button("Play", "play", "Space", "Play or pause", { attributes: { class: "primary play" } });
  const number = make("button", { type: "button", class: "number", title: "Go to a frame (G)", onclick: () => on.act("goto") });
  const time = make("span", { class: "time" });
  const rate = make("select", { id: "rate", title: "Speed", onchange: (event) => on.setRate(Number(event.target.value)) }, ...[0.1, 0.25, 0.5, 1, 2].map((one) => make("option", { value: String(one), selected: one === 1 }, `${one}×`)));
  const opacity = make("input", { type: "range", min: "0", max: "1", step: "0.05", value: "0.6", id: "opacity", oninput: (event) => on.setLayer("opacity", Number(event.target.value)) });
  const layer = (text, key, action, more = "") => make("button", { type: "button", "aria-pressed": "false", title: `${text} (${key})${more}`, "aria-keyshortcuts": key, onclick: () => on.act(action) }, text, make("kbd", {}, key));
  const heat = layer("Heat map", "H", "heat", ": the brightest place of each frame is shown at full brightness"), cam = layer("LayerCAM", "V", "cam"), outline = layer("Outline", "O", "outline");
  const other = make("select", { id: "other", onchange: (event) => on.comparison.use(event.target.value, on.comparison.mode === "off" ? "both" : on.comparison.mode) });
  const mode = layer("Compare", "D", "compare"), besideNote = make("p", { class: "working small", hidden: true });
  const beside = make("div", { class: "row compare", hidden: true }, mode, make("label", { for: "other", class: "hidden" }, "Other model"), other);
  const facts = make("dl", { class: "frame-facts" });
  const queue = make("ol", { class: "queue", "aria-label": "Frames to check, worst first" });
  const queueTitle = make("h2", {}, "Frames to check");
  const skip = make("input", { type: "checkbox", checked: true, id: "skip", onchange: (event) => on.setSkip(event.target.checked) });
  const undo = button("Undo", "history", "Z", "Undo", { event: "z" }), redo = button("Redo", "history", "Y", "Redo", { event: "y" });
  const state = make("p", { class: "working", hidden: true });
  const objects = objectsList(on);
  let classes = [];
  const section = make("section", { class: "video-view", "aria-label": video.name },
    screen,
    make("div", { class: "controls row" },
      button("‹", "step", ",", "Previous frame", { event: "," }), play, button("›", "step", ".", "Next frame", { event: "." }),
      number, time, make("label", { for: "rate", class: "hidden" }, "Speed"), rate,
      make("span", { class: "space" }),
      button("Cut", "cut", "X", "Next cut", { event: "x" }), button("Marked", "key", "F", "Next marked frame", { event: "f" }), button("Gap", "middle", "M", "Middle of the gap"),
      make("span", { class: "gap" }),
      make("button", { type: "button", title: "Zoom out in time", "aria-label": "Zoom out in time", onclick: () => on.timeline.zoom(1.6) }, "−"),
      make("button", { type: "button", title: "Zoom in on time", "aria-label": "Zoom in on time", onclick: () => on.timeline.zoom(0.6) }, "+")),
    make("div", { class: "time-row" }, timeline, make("div", { class: "legend" },
      ...[["presence", "presence"], ["score", "box score"], ["doubt", "doubt"], ["box", "corrected"], ["asked", "asked"], ["accepted", "accepted"], ["none", "no object"], ["class", "other class"], ["cut", "cut"]].map(([name, word]) => make("span", {}, make("i", { class: name }), word)))),
    make("aside", { "aria-label": "Frame" }, state, facts,
      make("div", { class: "actions" },
        button("Accept", "accept", "A", "Accept this frame"), button("Accept, next", "next", "⏎", "Accept this frame and go to the next one to check"),
        button("Copy box", "copy", "P", "Copy the box of the previous frame"), button("Carry on", "carry", "⇧P", "Carry this box on to the next cut or marked frame, as the model sees the object move"), button("Accept stretch", "acceptStretch", "⇧A", "Accept the stretch up to the next cut or marked frame"),
        button("No object", "none", "N", "No object in this frame"), button("None in stretch", "noneStretch", "⇧N", "No object in the stretch"),
        button("Enters here", "edge", "[", "The object enters here: none before, in this stretch", { event: "[" }), button("Leaves here", "edge", "]", "The object leaves here: none from here on, in this stretch", { event: "]" }),
        button("Class…", "class", "C", "Wrong class"), button("Box here", "box", "B", "Put a box here"),
        button("New object", "newObject", "I", "Another object in this frame"), button("Split here", "split", "S", "From this frame on it is another object"),
        button("Reset frame", "clear", "⌫", "Back to the prediction in this frame"), button("Import…", "import", "", "Import labels of this video"), button("Video’s class…", "videoClass", "", "Set the class that the whole video shows, and localize again"), undo, redo),
      objects.element,
      make("div", { class: "row layers" }, heat, cam, outline),
      make("div", { class: "row" }, make("label", { for: "opacity" }, "Opacity"), opacity), beside, besideNote,
      make("div", { class: "row queue-head" }, queueTitle, make("span", { class: "space" }), make("kbd", {}, "J"), make("kbd", {}, "K")),
      make("div", { class: "row small" }, skip, make("label", { for: "skip" }, "Skip frames that are checked")), queue));
  view.replaceChildren(section);
  heat.setAttribute("aria-pressed", "true");
  const cells = Object.fromEntries([["State"], ["Class"], ["Class probability", "number-fact"], ["Box score", "number-fact"], ["Presence", "number-fact"], ["Doubt", "number-fact"], ["Box"], ["Why", "why"]].map(([name, place]) => {
    const cell = make("dd", {});
    facts.append(make("div", { class: place || "", title: FACTS[name] }, make("dt", {}, name), cell));
    return [name, cell];
  }));
  return {
    media, still, pane, screen, timeline,
    classes: () => classes,
    fillClasses: (names) => { classes = names; },
    setPlaying: (playing) => { play.firstChild.textContent = playing ? "Pause" : "Play"; },
    showLayers(now) {
      opacity.value = String(now.opacity);
      for (const [button, on] of [[heat, now.map === "heat"], [cam, now.map === "cam"], [outline, now.outline]]) button.setAttribute("aria-pressed", String(on));
    },
    showComparison({ models, key, mode: now, note }) {
      beside.hidden = !models.length;
      other.replaceChildren(...models.map((one) => make("option", { value: one.key, selected: one.key === key }, one.title)));
      mode.firstChild.textContent = { off: "Compare with", both: "Both boxes", panes: "Side by side", flicker: "Flicker" }[now];
      mode.setAttribute("aria-pressed", String(now !== "off"));
      besideNote.hidden = !note;
      besideNote.textContent = note;
    },
    showState(now) {
      state.hidden = now.state === "ready";
      state.className = now.state === "failed" ? "problem" : "working";
      state.textContent = now.state === "failed" ? now.problem : `${now.state === "localizing" ? `Localizing: ${percent(now.done || 0)}.` : "Waiting for the model."} You can already correct.`;
    },
    showObjects: objects.show,
    showHistory(history) { undo.disabled = !history.done.length; redo.disabled = !history.undone.length; },
    showFrame(one) {
      number.textContent = `frame ${one.frame}`;
      number.dataset.frame = one.frame;
      time.textContent = `${clock(one.pts)} / ${clock(video.pts.at(-1))}`;
      cells.State.className = `kind ${one.kind}`;
      const values = { State: one.state, Class: one.tag || "–", "Class probability": share(one.probability), "Box score": level(one.score), Presence: share(one.presence), Doubt: level(one.doubt), Box: one.box ? one.box.map((value) => Math.round(value)).join(", ") : "none", Why: one.reason || "" };
      for (const [name, value] of Object.entries(values)) if (cells[name].textContent !== value) cells[name].textContent = value;
      cells.Why.previousSibling.hidden = !one.reason;
      facts.dataset.box = one.box ? one.box.map((value) => Math.round(value * 100) / 100).join(",") : "";
    },
    showQueue(entries, position) {
      queueTitle.textContent = video.results ? `Frames to check (${entries.length})` : "Frames to check: once the video is localized";
      const shown = entries.slice(0, 60), key = `${shown.map(([at]) => at).join()}`;
      if (queue.dataset.key !== key) {
        queue.dataset.key = key;
        queue.replaceChildren(...shown.map(([at, reason]) => make("li", { "data-at": String(at) }, make("button", { type: "button", class: "quiet", onclick: () => on.goQueued(at) }, make("b", {}, String(video.frame[at])), make("span", {}, reason)))));
      }
      const item = queue.querySelector(`[data-at="${position}"]`), old = queue.querySelector("[aria-current=true]");
      if (item === old) return;
      old?.removeAttribute("aria-current");
      item?.setAttribute("aria-current", "true");
      // Scroll the list alone: scrollIntoView would move the frame out of sight on a small screen.
      if (item) queue.scrollTop = item.offsetTop - queue.clientHeight / 2;
    },
  };
}
