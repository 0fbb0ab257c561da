// What is wrong with the layout of the page, for tests/serve/test_page_layout.py.
({
  // Text and controls that do not fit where they are.
  cutOff: () => {
    const seen = (one) => one.getClientRects().length && getComputedStyle(one).visibility !== "hidden" && !one.matches(".hidden");
    const found = [], page = document.documentElement;
    if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} pixels wide`);
    for (const one of document.querySelectorAll("button, .button, .controls, .legend, caption, dd, td, .layers, .compare")) {
      if (seen(one) && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline") found.push(`cut off: ${one.innerText || one.className}`);
    }
    for (const one of document.querySelectorAll("button, a, input, select")) { // none of it is behind the edge of a card
      const card = one.closest(".video"), area = one.getBoundingClientRect(), room = card?.getBoundingClientRect();
      if (card && seen(one) && (area.bottom > room.bottom + 1 || area.right > room.right + 1)) found.push(`behind the edge of its card: ${one.innerText || one.className}`);
    }
    for (const one of document.querySelectorAll("button, a, input, select, canvas")) {
      const around = one.closest("aside, dialog"), host = around?.getClientRects().length ? around : page, // on a small screen, aside has no box
        area = one.getBoundingClientRect(), room = host.getBoundingClientRect();
      if (seen(one) && !one.closest(".stage, .queue") && (area.right > room.right - (host === page ? 0 : 10) || area.left < room.left)) found.push(`outside: ${one.innerText || one.id}`);
    }
    return found;
  },

  // What a finger cannot hit: 40 pixels for controls, 24 for boxes to tick, whose labels can be pressed, too.
  small: () => {
    const found = [];
    for (const one of document.querySelectorAll("button, .button, select, input")) {
      const { width, height } = one.getBoundingClientRect(), least = ["checkbox", "range"].includes(one.type) ? 16 : 39.5;
      if (width && !one.matches(".hidden") && (height < least || width < least)) found.push(`small: ${one.innerText || one.id || one.className} ${Math.round(width)}×${Math.round(height)}`);
    }
    return found;
  },

  // Text whose contrast to its background is below 4.5, as WCAG 2.2 wants at least.
  pale: (theme) => {
    const old = document.documentElement.dataset.theme, context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    document.documentElement.dataset.theme = theme;
    const parse = (color) => { context.clearRect(0, 0, 1, 1); context.fillStyle = color; context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data]; };
    const over = (top, share, bottom) => top.map((value, at) => share * value + (1 - share) * bottom[at]);
    const light = (rgb) => rgb.slice(0, 3).map((value) => value / 255).map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)).reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = (one) => {
      if (!one) return [255, 255, 255];
      const [r, g, b, alpha] = parse(getComputedStyle(one).backgroundColor);
      return alpha === 255 ? [r, g, b] : over([r, g, b], alpha / 255, ground(one.parentElement));
    };
    const found = [];
    for (const one of document.querySelectorAll("body *")) {
      const text = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!text || !one.checkVisibility({ opacityProperty: true }) || one.closest(":disabled, .hidden, option, noscript")) continue;
      let opacity = 1;
      for (let up = one; up; up = up.parentElement) opacity *= Number(getComputedStyle(up).opacity);
      const back = ground(one), [a, b] = [light(over(parse(getComputedStyle(one).color).slice(0, 3), opacity, back)), light(back)].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < 4.5) found.push(`${one.tagName} ${one.className} "${one.innerText}" ${ratio.toFixed(2)}`);
    }
    document.documentElement.dataset.theme = old;
    return found;
  },
})
