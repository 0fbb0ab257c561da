// Elements without HTML text: names of videos and classes can never become markup.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Show a sentence for some seconds; above a dialog, if one is open. One that is shown already is not shown twice. It goes
// with the view that it speaks of, unless it speaks of the whole library. instead: a name; the last one of this name goes.
export function tell(sentence, kind = "error", { stays = false, instead = "" } = {}) {
  const text = capital(sentence), place = document.getElementById("messages");
  for (const old of [...place.children]) if (old.firstChild.textContent === text || (instead && old.dataset.name === instead)) old.remove();
  const box = make("div", { class: `message ${kind}${stays ? " stays" : ""}`, "data-name": instead || null }, make("span", {}, text),
    make("button", { type: "button", "aria-label": "Close", onclick: () => box.remove() }, "×"));
  (document.querySelector("dialog[open]") || document.body).append(place);
  place.append(box);
  setTimeout(() => box.remove(), kind === "error" ? 12000 : 5000);
}

export function clearMessages() {
  for (const one of document.querySelectorAll(".message:not(.stays)")) one.remove();
}

export const percent = (share) => `${Math.round(100 * share)} %`;

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function clock(seconds) {
  const whole = Math.max(0, seconds);
  const minutes = Math.floor(whole / 60);
  const rest = (whole - 60 * minutes).toFixed(2).padStart(5, "0");
  return minutes >= 60 ? `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export function dialog(title, ...children) {
  const box = make("dialog", { "aria-label": title }, make("h2", {}, title), ...children);
  document.body.append(box);
  box.addEventListener("close", () => { document.body.append(document.getElementById("messages")); box.remove(); });
  box.showModal();
  return box;
}
