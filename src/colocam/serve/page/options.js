// What a person sets for videos: their class, and the settings of the library. They are localized again; corrections stay.

import { postJson } from "./api.js";
import { dialog, make } from "./dom.js";

const FOUND = "", FOLDERS = "folders"; // values of the first choices; classes have the prefix "="
const AGAIN = "The videos are localized again, unless that was done before. Corrections stay.";
const ONE_AGAIN = AGAIN.replace("videos are", "video is");

// Ask, send what the form says, and say inside the dialog what was refused.
function ask(title, words, fields, { path, body, done }) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await postJson(path, body());
      box.close();
      done();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  const enter = (event) => { if (event.key === "Enter" && event.target.matches("select")) { event.preventDefault(); event.currentTarget.requestSubmit(); } };
  const box = dialog(title, make("p", { class: "dim" }, words), make("form", { method: "dialog", onsubmit: submit, onkeydown: enter }, make("div", { class: "fields" }, ...fields), problem,
    make("div", { class: "row" }, make("button", { class: "primary" }, "Apply"), make("button", { type: "button", onclick: () => box.close() }, "Cancel"))));
  box.querySelector("select, input").focus();
}

// The class that videos show. Their folders and the model's classes are offered.
export function askTags(videos, classes, done) {
  const offered = videos.filter((video) => video.offered), names = [...new Set(offered.map((video) => video.offered))].sort();
  const same = new Set(videos.map((video) => video.class)).size === 1 ? videos[0].class : null;
  const choices = [[FOUND, "found by the model"], ...(offered.length ? [[FOLDERS, `as in their folders: ${names.join(", ")}`]] : []), ...classes.map((name) => [`=${name}`, name])];
  const wanted = same ? `=${same}` : same === null || !offered.length ? FOUND : FOLDERS;
  const select = make("select", { id: "video-class" }, ...choices.map(([value, text]) => make("option", { value, selected: value === wanted }, text)));
  const tagOf = (video) => (select.value === FOLDERS ? video.offered || video.class : select.value.slice(1));
  const title = videos.length === 1 ? `Class of ${videos[0].name}` : `Class of ${videos.length} videos`;
  const body = () => ({ tags: Object.fromEntries(videos.map((video) => [video.id, tagOf(video)])) });
  ask(title, `${classes.length ? "" : "The model is not loaded yet, so its classes are not known. "}${videos.length === 1 ? ONE_AGAIN : AGAIN}`, [make("label", { for: "video-class" }, "Class"), select], { path: "/api/tags", body, done });
}

// `segmenter`: whether the server has one.
export function askSettings(settings, segmenter, done) {
  const field = (name, empty) => make("input", { type: "number", id: `setting-${name}`, min: "0", max: "1", step: "any", placeholder: empty, value: settings[name] === null ? "" : String(settings[name]) });
  const presence = field("presence", "all boxes"), threshold = field("threshold", "of the model");
  const instances = make("input", { type: "checkbox", id: "setting-instances", checked: settings.instances });
  const refine = make("input", { type: "checkbox", id: "setting-refine", checked: settings.refine });
  const number = (input) => (input.value === "" ? null : Number(input.value));
  const fields = [make("label", { for: presence.id }, "No box where presence is below, 0 to 1"), presence, make("label", { for: threshold.id }, "Threshold of the heat map, 0 to 1"), threshold, make("div", { class: "row" }, instances, make("label", { for: instances.id }, "Find every object, not only one per frame")), segmenter && make("div", { class: "row" }, refine, make("label", { for: refine.id }, "Refine boxes with the segmenter"))];
  const body = () => ({ presence: number(presence), threshold: number(threshold), instances: instances.checked, refine: refine.checked });
  ask("Settings of all videos", `An empty field means the default. ${AGAIN}`, fields, { path: "/api/settings", body, done });
}
