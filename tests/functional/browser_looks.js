// Run in a page by tests/functional/browser.py: what the page shows.
({
  name(element) {
    const own = element.id ? "#" + element.id : "";
    const kind = typeof element.className === "string" && element.className
      ? "." + element.className.trim().split(/\s+/).join(".") : "";
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `${element.tagName.toLowerCase()}${own}${kind} “${text}”`;
  },

  shown(element) {
    const box = element.getBoundingClientRect();
    // One pixel: words for screen readers alone.
    return box.width > 1 && box.height > 1 &&
      element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  },

  // The nearest element around it that scrolls.
  scroller(element) {
    for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(e).overflowX)) return e;
    return null;
  },

  overflowing() {
    const found = [];
    const room = document.documentElement.clientWidth;
    const all = [...document.body.querySelectorAll("*")].filter(e => this.shown(e));
    if (document.documentElement.scrollWidth > room)
      found.push(`the page is ${document.documentElement.scrollWidth} wide, and has room for ${room}`);
    for (const e of all) {
      const style = getComputedStyle(e);
      const box = e.getBoundingClientRect();
      const inPicture = e.ownerSVGElement;
      if (!this.scroller(e) && (box.right > room + 1 || (box.left < -1 && box.right > 0)))
        found.push(`${this.name(e)} reaches from ${Math.round(box.left)} to ${Math.round(box.right)} of ${room}`);
      if (e.tagName === "text" && inPicture) {
        const picture = inPicture.getBoundingClientRect();
        if (box.left < picture.left - 1 || box.right > picture.right + 1 ||
            box.top < picture.top - 2 || box.bottom > picture.bottom + 2)
          found.push(`${this.name(e)} sticks out of its picture`);
      }
      if (inPicture || e.clientWidth === 0 || style.display === "inline") continue;
      const wider = e.scrollWidth - e.clientWidth, higher = e.scrollHeight - e.clientHeight;
      if (wider > 1 && ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis")
        found.push(`${this.name(e)} is cut off at its right by ${wider}`);
      if (wider > 1 && style.overflowX === "visible" && e.tagName !== "TABLE")
        found.push(`${this.name(e)} has ${wider} more than it has room for`);
      if (higher > 2 && ["hidden", "clip"].includes(style.overflowY))
        found.push(`${this.name(e)} is cut off at its foot by ${higher}`);
    }
    return found;
  },
})
