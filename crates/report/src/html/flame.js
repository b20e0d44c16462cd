
// Zooms flame graphs: a click on a frame makes it as wide as the graph. The page says the same without it.
(function () {
  "use strict";
  document.querySelectorAll("svg").forEach(function (svg) {
    var frames = Array.from(svg.querySelectorAll("g.fl"));
    if (!frames.length) return;
    svg.parentNode.classList.add("flamed");
    var width = svg.viewBox.baseVal.width;
    var parts = frames.map(function (group) {
      var text = group.querySelector("text"), rect = group.querySelector("rect");
      return { group: group, rect: rect, text: text, name: group.dataset.n, from: +group.dataset.a, to: +group.dataset.b };
    });
    function show(a, b) {
      var scale = 1 / (b - a);
      parts.forEach(function (part) {
        var from = Math.max(0, (part.from - a) * scale), to = Math.min(1, (part.to - a) * scale);
        var size = (to - from) * width;
        part.group.style.display = size < 0.3 ? "none" : "";
        part.rect.setAttribute("x", from * width);
        part.rect.setAttribute("width", Math.max(size, 0));
        var room = Math.floor((size - 6) / 6.7);
        if (!part.text) {
          part.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
          part.text.setAttribute("y", +part.rect.getAttribute("y") + 12);
          part.group.appendChild(part.text);
        }
        part.text.setAttribute("x", from * width + 3);
        var name = part.name, head = Math.ceil((room - 1) / 2), tail = Math.floor((room - 1) / 2);
        part.text.textContent = room < 3 ? "" : name.length <= room ? name : name.slice(0, head) + "\u2026" + name.slice(name.length - tail);
      });
    }
    parts.forEach(function (part) {
      part.group.addEventListener("click", function () { show(part.from, part.to); });
    });
  });
})();
