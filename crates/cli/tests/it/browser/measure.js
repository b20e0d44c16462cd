// Measures the pages in the frames of this document, as the browser has laid them out, and leaves the numbers in its body.
"use strict";

// Boxes that share more than a hair: lines of small text stand close, so that two units of height are none.
function meet(a, b) {
  return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
}

function light(colour) {
  const parts = colour.match(/[\d.]+/g).map(Number);
  const [r, g, b] = parts.slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : Math.pow((share + 0.055) / 1.055, 2.4);
  });
  return { light: 0.2126 * r + 0.7152 * g + 0.0722 * b, opaque: parts.length < 4 || parts[3] === 1 };
}

// The contrast of a text with what is behind it, as WCAG counts it.
function contrast(view, element) {
  const style = view.getComputedStyle(element);
  const ink = light(element instanceof view.SVGElement ? style.fill : style.color).light;
  let behind = element, paper = { opaque: false };
  while (!paper.opaque && (behind = behind.parentElement)) paper = light(view.getComputedStyle(behind).backgroundColor);
  const [most, least] = [ink, paper.opaque ? paper.light : 1].sort((a, b) => b - a);
  return (most + 0.05) / (least + 0.05);
}

function measure(frame) {
  const view = frame.contentWindow, page = frame.contentDocument, root = page.documentElement;
  const seen = (element) => element.getClientRects().length > 0;
  const box = (element) => {
    const rect = element.getBoundingClientRect();
    return { left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom };
  };
  const overlaps = [], outside = [];
  for (const drawing of page.querySelectorAll("svg[role=img]")) {
    if (!seen(drawing)) continue;
    const texts = [...drawing.querySelectorAll("text")].map((text) => ({ said: text.textContent, ...box(text) }));
    texts.forEach((a, at) => {
      if (a.left < -1 || a.right > view.innerWidth + 1) outside.push(a.said);
      texts.slice(at + 1).forEach((b) => { if (meet(a, b)) overlaps.push(a.said + " | " + b.said); });
    });
  }
  const pale = [];
  for (const element of page.querySelectorAll("h1, h2, h3, p, li, th, td, code, pre, dt, dd, summary, span, figcaption, svg text")) {
    if (!seen(element) || !element.textContent.trim()) continue;
    const found = contrast(view, element);
    if (found < 4.5) pale.push(element.textContent.trim().slice(0, 40) + " " + found.toFixed(2));
  }
  return {
    name: frame.name,
    width: view.innerWidth,
    scroll_width: root.scrollWidth,
    height: root.scrollHeight,
    paper: light(view.getComputedStyle(page.body).backgroundColor).light,
    zoomed: page.querySelectorAll(".zoom canvas").length,
    drawings: [...page.querySelectorAll("figure")].map((figure) => {
      const drawn = [...figure.querySelectorAll(".drawn svg, .zoom .uplot")].filter(seen);
      return drawn.length === 1 ? box(drawn[0]) : null;
    }),
    overlaps, outside, pale
  };
}

addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(measure);
  const said = document.createElement("pre");
  said.id = "measured";
  said.textContent = JSON.stringify(found);
  document.body.replaceChildren(said);
});
