// Browsers start no Worker on pages opened from a file; the search of the site then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => send(this, data)
      const script = inside.document.createElement("script")
      script.src = address
      script.onerror = event => this.onerror?.(event)
      this.ready = new Promise(resolve => (script.onload = resolve))
      inside.document.body.append(script)
    }

    postMessage(data) {
      this.ready.then(() => send(this.frame.contentWindow, data))
    }

    terminate() {
      this.frame.remove()
    }
  }

  // A Worker receives copies, and never while the sender still runs.
  function send(receiver, data) {
    const copy = structuredClone(data)
    setTimeout(() => receiver?.onmessage?.({ data: copy }))
  }
}
