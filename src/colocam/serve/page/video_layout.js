// The elements of the video view.

import { clock, make, percent } from "./dom.js";
import { FACTS, level, share } from "./facts.js";
import { objectsList } from "./objects.js";
import { paneOf } from "./pane.js";
import { queueOf } from "./queue.js";
import { toolbarOf } from "./toolbar.js";

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
  const queue = queueOf(video, on), tools = toolbarOf(on, make("label", { class: "row", for: "opacity" }, "Opacity of the map", opacity));
  const state = make("p", { class: "working", hidden: true });
  const objects = objectsList(on);
  let classes = [];
  const section = make("section", { class: "video-view", "aria-label": video.name },
    tools.element,
    screen,
    make("aside", { "aria-label": "Frame" }, queue.element,
      make("div", { class: "side" }, state, facts, objects.element, make("div", { class: "row layers" }, heat, cam, outline), beside, besideNote)),
    make("div", { class: "controls" },
      make("div", { class: "row" }, button("‹", "step", ",", "Previous frame", { event: "," }), play, button("›", "step", ".", "Next frame", { event: "." }), number, time),
      make("div", { class: "row" }, make("label", { for: "rate", class: "hidden" }, "Speed"), rate,
        button("Cut", "cut", "X", "Next cut", { event: "x" }), button("Marked", "key", "F", "Next marked frame", { event: "f" }), button("Gap", "middle", "M", "Middle of the gap"),
        make("span", { class: "pair-of" },
          make("button", { type: "button", title: "Zoom out in time", "aria-label": "Zoom out in time", onclick: () => on.timeline.zoom(1.6) }, "−"),
          make("button", { type: "button", title: "Zoom in on time", "aria-label": "Zoom in on time", onclick: () => on.timeline.zoom(0.6) }, "+")))),
    make("div", { class: "time-row" }, timeline, make("div", { class: "legend" },
      ...[["presence", "presence"], ["score", "box score"], ["doubt", "doubt"], ["box", "corrected"], ["asked", "asked"], ["accepted", "accepted"], ["none", "no object"], ["class", "other class"], ["cut", "cut"]].map(([name, word]) => make("span", {}, make("i", { class: name }), word)))));
  view.replaceChildren(section);
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
    showHistory(history) { tools.undo.disabled = !history.done.length; tools.redo.disabled = !history.undone.length; },
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
    showQueue: queue.show,
    close: queue.close,
  };
}
