// Replaces the drawing of a long time line by one that can be zoomed. The page says the same without it.
(function () {
  "use strict";
  var root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)"), plots = [];
  function colour(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
  function unit(steps, most) {
    var found = steps[0];
    steps.forEach(function (step) { if (most >= step[0]) found = step; });
    return found;
  }
  var BYTES = [[0, 1, "B"], [2048, 1024, "KiB"], [2097152, 1048576, "MiB"], [2147483648, 1073741824, "GiB"], [2199023255552, 1099511627776, "TiB"]];
  var SECONDS = [[0, 1e-9, "ns"], [1e-6, 1e-6, "\u00b5s"], [1e-3, 1e-3, "ms"], [1, 1, "s"], [180, 60, "min"], [10800, 3600, "h"], [172800, 86400, "d"]];
  var HINT = "Drag to zoom, double-click for the whole.";
  var PLAIN = [[0, 1, ""]], PERCENT = [[0, 1, "%"]];
  var SCALES = { bytes: BYTES, seconds: SECONDS, percent: PERCENT, number: PLAIN };
  function print(scale, value, most) {
    if (value == null) return "";
    var u = unit(SCALES[scale], most == null ? Math.abs(value) : most), shown = value / u[1];
    var places = Number.isInteger(shown) ? 0 : Math.abs(shown) < 9.995 ? 2 : Math.abs(shown) < 99.95 ? 1 : 0;
    return shown.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }) + (u[2] && "\u202f" + u[2]);
  }
  function powers() {
    var list = [];
    for (var power = 0; power < 60; power++) list.push(Math.pow(2, power));
    return list;
  }
  function axis(of, side) {
    var made = {
      scale: side === 3 ? "y" : "x", stroke: colour("--muted"), font: "11px " + colour("--sans"),
      grid: { stroke: colour("--grid"), width: 1, show: side === 3 }, ticks: { stroke: colour("--muted"), width: 1, size: 4, show: side === 2 },
      size: side === 3 ? 56 : 30, gap: 4, space: side === 3 ? 40 : 80,
      values: function (plot, ticks) { var most = ticks.length ? ticks[ticks.length - 1] : 0; return ticks.map(function (tick) { return print(of.scale, tick, most); }); }
    };
    if (of.scale === "bytes") made.incrs = powers();
    return made;
  }
  function draw(figure, data) {
    var old = figure.querySelector(".zoom");
    if (old) old.remove();
    var drawn = figure.querySelectorAll(".drawn"), box = document.createElement("div"), hint = document.createElement("p");
    box.className = "zoom";
    hint.className = "hint";
    hint.textContent = HINT;
    drawn[0].before(box);
    var series = [{}], keys = figure.querySelectorAll(".keys li");
    data.columns.forEach(function (column, index) {
      series.push({
        stroke: colour("--c" + index % 6), width: 1.6, dash: data.dashes[index], spanGaps: true, points: { show: false },
        paths: data.steps ? uPlot.paths.stepped({ align: 1 }) : undefined
      });
    });
    // The keys above the drawing say what is under the cursor.
    function tell(plot) {
      var at = plot.cursor.idx;
      hint.textContent = at == null ? HINT : data.x.label + " " + print(data.x.scale, data.at[at]);
      keys.forEach(function (key, index) {
        var said = key.querySelector(".at");
        if (!said) key.append(said = Object.assign(document.createElement("span"), { className: "at" }));
        while (at > 0 && data.columns[index][at] == null) at--;
        said.textContent = at == null ? "" : print(data.y.scale, data.columns[index][at]);
      });
    }
    var plot = new uPlot({
      width: box.clientWidth, height: box.clientWidth < 500 ? 220 : 280, scales: { x: { time: false }, y: { range: function (plot, low, high) {
        var pad = (high - low) * 0.05 || 1;
        return [data.y.zero ? Math.min(0, low) : low - pad, high + pad];
      } } },
      axes: [axis(data.x, 2), axis(data.y, 3)], series: series, cursor: { y: false, points: { size: 6 } }, legend: { show: false }, hooks: { setCursor: [tell] }
    }, [data.at].concat(data.columns), box);
    box.append(hint);
    drawn.forEach(function (one) { one.hidden = true; });
    return plot;
  }
  function all() {
    document.querySelectorAll("script.live").forEach(function (script, index) {
      if (plots[index]) plots[index].destroy();
      plots[index] = draw(script.closest("figure"), JSON.parse(script.textContent));
    });
  }
  all();
  dark.addEventListener("change", all);
  var width = innerWidth;
  addEventListener("resize", function () {
    if (innerWidth === width) return;
    width = innerWidth;
    all();
  });
})();
