"use strict";
// Plays the movies of a page. Each movie is a stream of events in time order; an event changes cells. All movies are of
// one time line: a position is a number of the events that any of them has.
(async () => {
  const root = document.querySelector(".movies"), say = (selector) => root.querySelector(selector);
  const about = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const NONE = 0, ROW = 0x80000000, MARKED = 8, KEYFRAMES = 24;

  const inflate = async (text) => {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  const format = new Intl.NumberFormat("en"), whole = (number) => format.format(number);

  class Movie {
    constructor(about, bytes) {
      Object.assign(this, about);
      let at = 0;
      const number = () => {
        let value = 0, scale = 1, byte;
        do { byte = bytes[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte > 127);
        return value;
      };
      const count = number(), changes = number();
      this.time = new Float64Array(count); this.row = new Float64Array(count);
      this.cpu = new Uint16Array(count); this.kind = new Uint8Array(count); this.first = new Uint32Array(count + 1);
      this.cell = new Uint32Array(changes); this.value = new Uint32Array(changes);
      let time = 0, row = 0, cell = 0, change = 0;
      for (let event = 0; event < count; event++) {
        this.time[event] = time += number(); this.row[event] = row += number();
        this.cpu[event] = number(); this.kind[event] = number(); this.first[event] = change;
        for (let left = number(); left > 0; left--) {
          const word = number(), is_row = word & 1, zigzag = Math.floor(word / 2);
          cell += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
          this.cell[change] = cell; this.value[change++] = number() + (is_row ? ROW : 0);
        }
      }
      this.first[count] = change;
      this.count = count;
      const cells = this.rows * this.cells;
      this.now = new Uint32Array(cells); this.since = new Float64Array(cells);
      this.counts = new Int32Array(8); this.counts[NONE] = cells;
      this.position = 0; this.frames = [this.keep()];
      for (let part = 1; part <= KEYFRAMES; part++) {
        this.forward(Math.floor(count * part / KEYFRAMES));
        this.frames.push(this.keep());
      }
      this.last_change = -1;
    }
    keep() { return [this.position, this.now.slice(), Float32Array.from(this.since), this.counts.slice()]; }
    set(cell, value, time) {
      const before = this.now[cell];
      this.counts[before & 7]--; this.counts[value & 7]++;
      this.now[cell] = value; this.since[cell] = time;
      if (this.pixels) this.pixels[this.places[cell]] = this.colour(value, 0);
    }
    forward(position) {
      for (; this.position < position; this.position++) {
        const event = this.position, time = this.time[event];
        for (let change = this.first[event]; change < this.first[event + 1]; change++) {
          const value = this.value[change], cell = this.cell[change];
          const end = value >= ROW ? cell + this.cells : cell + 1;
          for (let at = cell; at < end; at++) this.set(at, value % ROW, time);
        }
      }
    }
    seek(position) {
      if (position < this.position) {
        let frame = this.frames.length - 1;
        while (this.frames[frame][0] > position) frame--;
        const [at, now, since, counts] = this.frames[frame];
        this.position = at; this.now.set(now); this.since.set(since); this.counts.set(counts);
        this.forward(position);
        this.paint();
      } else this.forward(position);
    }
    place(cell) {
      const row = Math.floor(cell / this.cells), column = Math.floor(row / this.column_rows);
      return (row - column * this.column_rows) * this.width + column * (this.cells + this.gap) + cell % this.cells;
    }
    // Columns of rows, so that cells are as large as the room allows.
    lay_out(room_width, room_height) {
      this.gap = Math.max(1, Math.round(this.cells / 16));
      let best = 0;
      for (let columns = 1; columns <= Math.min(this.rows, 400); columns++) {
        const rows = Math.ceil(this.rows / columns), width = columns * (this.cells + this.gap) - this.gap;
        const scale = Math.min(room_width / width, room_height / rows, 14);
        if (scale > best) { best = scale; this.columns = columns; this.column_rows = rows; this.width = width; this.scale = scale; }
      }
      const ratio = window.devicePixelRatio || 1;
      this.canvas.width = Math.ceil(this.width * this.scale * ratio);
      this.canvas.height = Math.ceil(this.column_rows * this.scale * ratio);
      this.canvas.style.width = this.width * this.scale + "px";
      this.canvas.style.height = this.column_rows * this.scale + "px";
      this.image = new ImageData(this.width, this.column_rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.small = new OffscreenCanvas(this.width, this.column_rows);
      this.places = Uint32Array.from(this.now, (_, cell) => this.place(cell));
      this.paint();
    }
    paint() {
      if (!this.pixels) return;
      const now = clock();
      for (let cell = 0; cell < this.now.length; cell++) this.pixels[this.places[cell]] = this.colour(this.now[cell], now - this.since[cell]);
    }
    colour(value, age) {
      const state = value & 7, cpu = value >> 3;
      if (state === NONE) return 0;
      if (mode === "cpu") return cpu ? hues[(cpu - 1) % hues.length] : palette[state === about.live ? 6 : 1];
      if (mode === "age") return state === about.live ? ages[bucket(age)] : palette[1];
      return palette[state];
    }
    draw() {
      if (mode === "age") this.paint();
      const pen = this.canvas.getContext("2d"), { width, height } = this.canvas, scale = width / this.width;
      this.small.getContext("2d").putImageData(this.image, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(this.small, 0, 0, width, height);
      if (scale >= MARKED) {
        pen.fillStyle = paper;
        for (let y = 1; y < this.column_rows; y++) pen.fillRect(0, y * scale - 0.5, width, 1);
        for (let x = 1; x < this.width; x++) pen.fillRect(x * scale - 0.5, 0, 1, height);
        // A mark for each state, so that a colour is not all that tells it.
        const marks = { 2: [.3, .3, .4, .4], 3: [.4, .15, .2, .7], 4: [.15, .4, .7, .2], 5: [.15, .15, .25, .25] };
        for (let cell = 0; cell < this.now.length; cell++) {
          const mark = marks[this.now[cell] & 7];
          if (!mark) continue;
          const place = this.places[cell], x = place % this.width, y = Math.floor(place / this.width);
          pen.fillRect((x + mark[0]) * scale, (y + mark[1]) * scale, mark[2] * scale, mark[3] * scale);
        }
      }
      this.states.forEach((shown, state) => { if (shown) shown.textContent = whole(this.counts[state]); });
      this.slabs.textContent = `${whole(Math.round((this.now.length - this.counts[NONE]) / this.cells))} ${about.rows}`;
      const event = this.position - 1;
      this.said.textContent = event < 0 ? "before the first event" : this.tell(event);
    }
    tell(event) {
      const changes = this.first[event + 1] - this.first[event];
      const names = about.kinds.filter(([bit]) => this.kind[event] & bit).map(([, name]) => name).join(", ") || about.other;
      return `row ${this.row[event]}, CPU ${this.cpu[event]}: ${names}; ${changes} change${changes === 1 ? "" : "s"}`;
    }
    cell_at(x, y) {
      const box = this.canvas.getBoundingClientRect();
      const left = Math.floor((x - box.left) / box.width * this.width), top = Math.floor((y - box.top) / box.height * this.column_rows);
      const column = Math.floor(left / (this.cells + this.gap)), cell = left - column * (this.cells + this.gap);
      const row = column * this.column_rows + top;
      return cell < this.cells && row < this.rows && top < this.column_rows ? [row, cell] : null;
    }
  }

  const upper = (list, value) => {
    let low = 0, high = list.length;
    while (low < high) { const middle = (low + high) >> 1; if (list[middle] <= value) low = middle + 1; else high = middle; }
    return low;
  };
  const time_text = (ns) => ns >= 1e9 ? (ns / 1e9).toFixed(6) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(3) + " ms" : (ns / 1e3).toFixed(3) + " µs";

  let mode = "state", palette = [], hues = [], ages = [], paper = "", position = 0, playing = false, time = 0;
  const movies = [];
  for (const movie of about.movies) movies.push(new Movie(movie, await inflate(movie.data)));
  // The events of all movies, each row once.
  const order = [];
  for (const movie of movies) for (let event = 0; event < movie.count; event++) order.push([movie.row[event], movie.time[event], movie.kind[event]]);
  order.sort((one, other) => one[0] - other[0]);
  const rows = [], times = [], kinds = [];
  for (const [row, at, kind] of order) {
    if (rows.length && rows[rows.length - 1] === row) kinds[kinds.length - 1] |= kind;
    else { rows.push(row); times.push(at); kinds.push(kind); }
  }
  const start = times[Math.min(1, times.length - 1)] || 0, end = times[times.length - 1] || 1;
  const clock = () => playing ? time : position ? times[position - 1] : start;
  const bucket = (age) => Math.max(0, Math.min(5, Math.floor(Math.log10(Math.max(age, 1) / Math.max(end - start, 1)) + 6)));

  const colours = () => {
    const style = getComputedStyle(document.documentElement), probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const word = (colour) => { probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1); return new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0]; };
    const named = (name) => word(style.getPropertyValue(name).trim());
    paper = style.getPropertyValue("--paper").trim();
    palette = about.colours.map(named);
    const light = paper.startsWith("#f") ? 45 : 65;
    hues = Array.from({ length: 64 }, (_, cpu) => word(`hsl(${cpu * 137.508 % 360} 65% ${light}%)`));
    ages = [1, 2, 3, 4, 5, 6].map((step) => named("--h" + step)).reverse();
    const keys = say(".movie-more");
    const key = (colour, text) => {
      const sign = document.createElement("i"), item = document.createElement("li");
      sign.style.background = colour; item.append(sign, text); keys.append(item);
    };
    keys.replaceChildren();
    if (mode === "cpu") for (let cpu = 0; cpu < Math.min(about.cpus, 16); cpu++) key(`hsl(${cpu * 137.508 % 360} 65% ${light}%)`, `CPU ${cpu}`);
    if (mode === "age") for (let step = 0; step < 6; step++) key(`var(--h${6 - step})`, step === 5 ? "older" : `under ${time_text((end - start) * 10 ** (step - 5))}`);
  };
  const show = () => {
    for (const movie of movies) movie.draw();
    say(".movie-time").textContent = `${time_text(Math.max(0, clock() - about.zero))} of ${time_text(end - about.zero)}, event ${whole(position)} of ${whole(rows.length)}`;
    say(".movie-slider").value = String(Math.round((clock() - start) / Math.max(end - start, 1) * 1000));
  };
  const seek = (to) => {
    position = Math.max(0, Math.min(rows.length, to));
    const row = position ? rows[position - 1] : -1;
    for (const movie of movies) movie.seek(upper(movie.row, row));
  };
  const go = (to) => { pause(); seek(to); show(); };
  const go_time = (ns) => go(upper(times, ns));
  const find = (step) => {
    const wanted = Number(say(".movie-jump").value);
    for (let at = position - 1 + step; at >= 0 && at < rows.length; at += step) if (kinds[at] & wanted) return go(at + 1);
  };

  let last = 0, frames = 0, since = 0;
  const pause = () => { playing = false; say(".movie-play").textContent = "Play"; };
  const play = () => {
    if (position >= rows.length) seek(0);
    time = Math.max(start, clock()); playing = true; last = since = performance.now(); frames = 0;
    say(".movie-play").textContent = "Pause";
    requestAnimationFrame(frame);
  };
  const frame = (now) => {
    if (!playing) return;
    time += Math.max(0, now - last) / 1000 * (end - start) / Number(say(".movie-speed").value);
    last = now; frames++;
    if (now - since >= 1000) { root.dataset.fps = (frames * 1000 / (now - since)).toFixed(1); frames = 0; since = now; }
    seek(upper(times, time));
    show();
    if (time >= end) { pause(); root.dataset.ended = "yes"; } else requestAnimationFrame(frame);
  };

  movies.forEach((movie, index) => {
    const panel = root.querySelectorAll(".movie")[index];
    movie.canvas = panel.querySelector("canvas");
    movie.slabs = panel.querySelector(".movie-slabs"); movie.said = panel.querySelector(".movie-said");
    movie.states = about.states.map((_, state) => panel.querySelector(`[data-state="${state}"]`));
    const tip = panel.querySelector(".movie-tip");
    movie.canvas.addEventListener("pointermove", (event) => {
      const found = movie.cell_at(event.clientX, event.clientY);
      if (!found) { tip.textContent = ""; return; }
      const cell = found[0] * movie.cells + found[1], value = movie.now[cell], cpu = value >> 3;
      tip.textContent = (value & 7) === NONE ? `${about.row} ${found[0]}: none now`
        : `${about.row} ${found[0]}, object ${found[1]}: ${about.states[value & 7]}${cpu ? `, CPU ${cpu - 1}` : ""}, for ${time_text(Math.max(0, clock() - movie.since[cell]))}`;
    });
    movie.canvas.addEventListener("pointerleave", () => { tip.textContent = ""; });
  });
  const lay_out = () => {
    colours();
    for (const movie of movies) movie.lay_out(movie.canvas.parentElement.clientWidth, Math.max(240, window.innerHeight * 0.55));
    show();
  };
  const on = (selector, event, f) => say(selector).addEventListener(event, f);
  on(".movie-play", "click", () => playing ? (pause(), show()) : play());
  on(".movie-back", "click", () => go(position - 1));
  on(".movie-step", "click", () => go(position + 1));
  on(".movie-slider", "input", (event) => go_time(start + (end - start) * Number(event.target.value) / 1000));
  on(".movie-colour", "change", (event) => { mode = event.target.value; lay_out(); });
  on(".movie-next", "click", () => find(1));
  on(".movie-previous", "click", () => find(-1));
  on(".movie-goto", "change", (event) => {
    const seconds = Number(event.target.value);
    if (Number.isFinite(seconds)) go_time(about.zero + seconds * 1e9);
  });
  root.addEventListener("keydown", (event) => {
    if (/^(SELECT|INPUT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 100 : 1;
    const keys = {
      " ": () => say(".movie-play").click(), ArrowLeft: () => go(position - by), ArrowRight: () => go(position + by),
      Home: () => go(0), End: () => go(rows.length), n: () => find(1), p: () => find(-1),
      c: () => { const list = say(".movie-colour"); list.selectedIndex = (list.selectedIndex + 1) % list.length; list.dispatchEvent(new Event("change")); },
    };
    if (keys[event.key] && !(event.key === " " && event.target.tagName === "BUTTON")) { event.preventDefault(); keys[event.key](); }
  });
  window.addEventListener("resize", lay_out);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", lay_out);
  root.classList.add("playable");
  seek(about.at === null ? rows.length : upper(times, about.at));
  lay_out();
  root.dataset.ready = "yes";
  if (location.hash === "#play") { seek(0); play(); }
})();
