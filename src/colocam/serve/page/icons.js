// Drawings for buttons: paths on a square of 16 by 16, drawn in the color of the text.

const PATHS = {
  accept: "M3 8.5 6.5 12 13 4.5",
  next: "M1 8.5 4 11.5 9 5M10.5 11l3-3-3-3",
  none: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M4.2 4.2l7.6 7.6",
  reset: "M3 3.5V7h3.5M3.3 7A5 5 0 1 1 4.5 11.8",
  box: "M2.5 4h11v8h-11z",
  copy: "M5.5 5.5h8v8h-8zM2.5 10.5v-8h8",
  carry: "M2 5h6v6H2zM10 8h4.5M12 5.5 14.5 8 12 10.5",
  acceptStretch: "M1 8.5 4 11.5 9 5M7 11l.8.8L14.5 5",
  noneStretch: "M2 4.5v7M14 4.5v7M5.5 5.5l5 5M10.5 5.5l-5 5",
  enters: "M3.5 3v10M6 8h8M11 5l3 3-3 3",
  leaves: "M12.5 3v10M2 8h8M7 5l3 3-3 3",
  class: "M2.5 2.5h5.5l5.5 5.5-5.5 5.5L2.5 8zM5.4 5.4h.1",
  newObject: "M2.5 2.5h11v11h-11zM8 5.5v5M5.5 8h5",
  split: "M8 1.5v3M8 6.5v3M8 11.5v3M5.5 8H1.5M10.5 8h4",
  undo: "M6 3 2.5 6.5 6 10M2.5 6.5h7a3.7 3.7 0 0 1 0 7.3H6",
  redo: "M10 3l3.5 3.5L10 10M13.5 6.5h-7a3.7 3.7 0 0 0 0 7.3H10",
  more: "M2.9 8h.9M7.6 8h.9M12.3 8h.9",
};

export function icon(name) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS(drawing.namespaceURI, "path");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("aria-hidden", "true");
  drawing.classList.add("icon");
  path.setAttribute("d", PATHS[name]);
  drawing.append(path);
  return drawing;
}
