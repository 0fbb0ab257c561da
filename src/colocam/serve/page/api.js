// Requests to the server. Every error is a sentence that can be shown.

const token = document.querySelector('meta[name="token"]').content;

export class AwayError extends Error {}

export class RefusedError extends Error {
  constructor(status, answer) {
    super(answer.error || `the server answered with status ${status}; its terminal says more`);
    this.status = status;
    this.answer = answer;
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options.headers, "X-Colocam-Token": token } });
  } catch {
    throw new AwayError("The server does not answer. Is 'colocam serve' running?");
  }
  if (response.ok) return response;
  let answer = {};
  try { answer = await response.json(); } catch { /* not JSON: the status has to do */ }
  throw new RefusedError(response.status, answer);
}

export const getJson = async (path) => (await request(path)).json();
export const getBytes = async (path, signal) => new Uint8Array(await (await request(path, { signal })).arrayBuffer());
export const getBlob = async (path, signal) => (await request(path, { signal })).blob();
export const remove = async (path) => (await request(path, { method: "DELETE" })).json();

export async function postJson(path, value) {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(value) })).json();
}

export async function postFile(path, file) {
  const headers = { "Content-Type": "application/octet-stream", "X-Video-Name": encodeURIComponent(file.name) };
  return (await request(path, { method: "POST", headers, body: file })).json();
}

// With progress, which fetch does not tell for uploads.
export function upload(path, file, report) {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open("POST", path);
    call.setRequestHeader("Content-Type", "application/octet-stream");
    call.setRequestHeader("X-Video-Name", encodeURIComponent(file.name));
    call.setRequestHeader("X-Colocam-Token", token);
    call.upload.onprogress = (event) => event.lengthComputable && report(event.loaded / event.total);
    call.onerror = () => reject(new AwayError("The server does not answer. Is 'colocam serve' running?"));
    call.onload = () => {
      let answer = {};
      try { answer = JSON.parse(call.responseText); } catch { /* not JSON */ }
      if (call.status < 300) resolve(answer);
      else reject(new RefusedError(call.status, answer));
    };
    call.send(file);
  });
}
