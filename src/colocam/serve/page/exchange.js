// Export of labels in every format, import of labels that were corrected elsewhere.

import { getJson, postFile, postJson } from "./api.js";
import { dialog, make, tell } from "./dom.js";

const options = (formats) => Object.entries(formats).map(([name, title]) => make("option", { value: name }, `${name}: ${title}`));

export async function exportDialog(film) {
  let formats;
  try { formats = (await getJson("/api/formats")).export; } catch (error) { tell(error.message); return; }
  const select = make("select", { id: "format" }, ...options(formats));
  const note = make("output", { class: "dim" });
  const all = make("input", { type: "checkbox", id: "all-films", checked: !film, disabled: !film });
  const save = make("button", { type: "button", class: "primary" }, "Export");
  const box = dialog("Export", make("div", { class: "fields" }, make("label", { for: "format" }, "Format"), select),
    make("div", { class: "row" }, all, make("label", { for: "all-films" }, film ? "All films that are ready, not only this one" : "All films that are ready")), note,
    make("form", { method: "dialog", class: "row" }, save, make("button", {}, "Close")));
  save.addEventListener("click", async () => {
    save.disabled = true;
    note.textContent = "writing…";
    try {
      const made = await postJson("/api/exports", { to: select.value, films: film && !all.checked ? [film] : [] });
      make("a", { href: `/api/exports/${made.id}/${made.name}`, download: made.name }).click();
      note.textContent = `${made.films === 1 ? "1 film" : `${made.films} films`} in ${made.name}${made.left_out ? `; ${made.left_out} not ready yet and left out` : ""}.`;
    } catch (error) {
      note.textContent = "";
      tell(error.message);
    }
    save.disabled = false;
  });
  return box;
}

export async function importDialog(film, saving) {
  let formats;
  try { formats = (await getJson("/api/formats")).import; } catch (error) { tell(error.message); return; }
  const select = make("select", { id: "format" }, ...options(formats)), file = make("input", { type: "file", id: "file" });
  const take = make("button", { type: "button", class: "primary" }, "Import"), note = make("output", { class: "dim" });
  const box = dialog(`Import labels of ${film.name}`,
    make("p", {}, "Boxes that were corrected in another tool become one step, which you can undo. Give a file, or a folder as ZIP."),
    make("div", { class: "fields" }, make("label", { for: "format" }, "Format"), select, make("label", { for: "file" }, "File"), file), note,
    make("form", { method: "dialog", class: "row" }, take, make("button", {}, "Close")));
  take.addEventListener("click", async () => {
    if (!file.files.length) { note.textContent = "Choose a file first."; return; }
    take.disabled = true;
    try {
      const query = new URLSearchParams({ format: select.value, client: crypto.randomUUID(), version: saving.version });
      const done = await postFile(`/api/films/${film.id}/labels?${query}`, file.files[0]);
      await saving.fetchHistory();
      note.textContent = `${done.changed} frames changed. ${done.left_out.length ? `Left out: ${done.left_out.slice(0, 5).join("; ")}` : ""}`;
    } catch (error) {
      note.textContent = "";
      tell(error.message);
    }
    take.disabled = false;
  });
  return box;
}
