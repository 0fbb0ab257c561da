// What this browser remembers of a person's work: the frame of each video, and the layers over it.

const PLACES = "colocam-places", LAYERS = "colocam-layers";
const MOST = 200; // videos whose frame is remembered

function stored(name) {
  try { return JSON.parse(localStorage.getItem(name)) || {}; } catch { return {}; }
}

// The frame at which a video was left; null: it was never open here.
export const lastFrame = (video) => stored(PLACES)[video] ?? null;

export function rememberFrame(video, frame) {
  const { [video]: _, ...others } = stored(PLACES);
  const kept = Object.entries(others).slice(-(MOST - 1));
  localStorage.setItem(PLACES, JSON.stringify({ ...Object.fromEntries(kept), [video]: frame }));
}

// The map, its opacity and the outline, as they were chosen last; at first the frame alone is shown.
export const chosenLayers = () => ({ map: "", opacity: 0.6, outline: false, ...stored(LAYERS) });

export function rememberLayers({ map, opacity, outline }) {
  localStorage.setItem(LAYERS, JSON.stringify({ map, opacity, outline }));
}

// Seconds from one frame to check to the next, as this person was lately; longer breaks do not count.
const PACE = "colocam-pace", FIRST_PACE = 10, LONGEST = 90;

export const pace = () => Number(localStorage.getItem(PACE)) || FIRST_PACE;

export function rememberPace(seconds) {
  if (seconds <= LONGEST) localStorage.setItem(PACE, String(0.9 * pace() + 0.1 * seconds));
}
