"use strict";
const $ = (id) => document.getElementById(id);
const PASTED = "pasted.txt";

/** Files by name. */
const files = new Map();
let worker, last;
/** The lesson that is read, and whether the next answer is that of its exercise. */
let lesson, isChecking;

// ---- bytes and text -------------------------------------------------------------------------------------

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let letters = "";
  bytes.forEach((byte) => (letters += String.fromCharCode(byte)));
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}

// ---- the module -----------------------------------------------------------------------------------------

async function start() {
  const source = new Blob([$("worker").textContent], { type: "text/javascript" });
  worker = new Worker(URL.createObjectURL(source));
  const module = await through(bytesOf($("module").textContent.trim()), new DecompressionStream("gzip"));
  worker.postMessage({ module: module.buffer }, [module.buffer]);
  worker.onmessage = ({ data }) => (data.reply ? show(data.reply, data.ms) : progress(data));
}

let ready = start();

function busy(is) {
  document.body.setAttribute("aria-busy", is);
  $("progress").hidden = $("stop").hidden = !is;
  $("progress").removeAttribute("value");
}

function progress({ done, all }) {
  $("progress").max = all;
  $("progress").value = done;
}

async function ask() {
  const question = asked();
  if (!question) return;
  $("answer").hidden = true;
  $("error").textContent = "";
  busy(true);
  last = question;
  await ready;
  const given = [...files].map(([name, file]) => ({ name, file }));
  worker.postMessage({ question, files: given });
}

/** Ends the question that runs. */
function stop() {
  worker.terminate();
  ready = start();
  isChecking = false;
  busy(false);
}

// ---- the question ---------------------------------------------------------------------------------------

const verb = () => document.querySelector("[name=verb]:checked").value;
const filled = (id) => $(id).value.trim();

/** Whether the last file is the one that is examined: of several states it is the latest. */
const isLastLed = () => ["doctor", "whatif", "what"].includes(verb());

/** The names of the file that leads, and of the others. */
function ordered() {
  const names = [...files.keys()];
  return isLastLed() ? [names.pop(), ...names] : names;
}

/** The question that the form has, or nothing if something is missing, which is said. */
function asked() {
  const [input, ...since] = ordered();
  const missing = (words) => {
    forget();
    $("error").textContent = words;
    busy(false);
  };
  const machine = {};
  if (filled("page-size")) machine["page-size"] = filled("page-size");
  if (filled("cpus")) machine.cpus = Number(filled("cpus"));
  switch (verb()) {
    case "what": {
      const names = filled("names").split(/\s+/).filter(Boolean);
      if (!names.length && !input) return missing("Name a cache, or paste a message of the kernel.");
      return { verb: "what", names, ...(input && !names.length ? { input } : {}) };
    }
    case "orders": {
      const question = { verb: "orders", policy: filled("policy") || "clamped" };
      if (filled("against")) question.against = filled("against");
      if (filled("order-page-size")) question["page-size"] = filled("order-page-size").split(",");
      if (filled("order-cpus")) question.cpus = filled("order-cpus").split(",").map(Number);
      return question;
    }
    case "compare":
      if (!since.length) return missing("Choose two results or more: JSON that a verb or this page saved.");
      return { verb: "compare", results: [input, ...since], ...($("force").checked ? { force: true } : {}) };
    case "run":
    case "reproduce": {
      const experiment = filled("experiment") || input;
      if (!experiment) return missing("Name an experiment, or give its file.");
      const numbers = ["repeats", "seed"].filter((id) => filled(id)).map((id) => [id, Number(filled(id))]);
      return { verb: verb(), experiment, ...Object.fromEntries(numbers) };
    }
    case "replay":
    case "explain":
    case "sites": {
      if (!input) return missing("Drop, paste or choose a recording first.");
      const question = { verb: verb(), input };
      if (filled("cache")) question.cache = filled("cache");
      if (verb() === "sites") return question;
      if (since.length) question.before = since;
      if (verb() === "replay") {
        const engines = filled("engines").split(/\s+/).filter(Boolean);
        return { ...question, engines, ...($("map").checked ? { map: true } : {}) };
      }
      if (!filled("from") || !filled("to")) return missing("Name two allocators, such as slub@6.18 and slub@7.3.");
      return { ...question, from: filled("from"), to: filled("to") };
    }
    default:
      if (!input) return missing("Drop, paste or choose what your machine says first.");
      if (verb() === "doctor") {
        const hours = filled("hours") ? { hours: Number(filled("hours")) } : {};
        return { verb: "doctor", input, since, ...hours, ...machine };
      }
      const change = {};
      for (const field of document.querySelectorAll("[data-change]"))
        if (field.value.trim()) change[field.dataset.change] = field.value.trim();
      return { verb: "whatif", input, change, ...machine };
  }
}

function taken(list) {
  for (const file of list) files.set(file.name, file);
  listed();
}

/** A button that does this. */
function pressed(text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.onclick = act;
  return button;
}

/** Lets a file lead the others. */
function lead(name) {
  const file = files.get(name);
  const others = [...files].filter(([other]) => other !== name);
  files.clear();
  for (const [other, given] of isLastLed() ? [...others, [name, file]] : [[name, file], ...others]) files.set(other, given);
}

/** What the file that leads is, what the others are, and what makes another one lead. */
const ROLES = {
  compare: ["the base", "compared with it", "make it the base"],
  run: ["the experiment", "a file that it names", "run this one"],
  replay: ["the recording", "a state of before", "replay this one"],
};
ROLES.reproduce = ROLES.run;
ROLES.explain = ROLES.sites = ROLES.replay;

function listed() {
  const [leads, follows, change] = ROLES[verb()] ?? ["examined, the latest state", "an earlier state", "examine this one"];
  const [leader] = ordered();
  $("files").replaceChildren(
    ...[...files.keys()].map((name) => {
      const item = document.createElement("li");
      const drop = pressed("remove", () => {
        files.delete(name);
        if (name === PASTED) $("paste").value = "";
        listed();
      });
      drop.setAttribute("aria-label", `remove ${name}`);
      const isLeader = name === leader;
      const role = files.size > 1 ? (isLeader ? leads : follows) : "";
      item.append(`${name}, ${files.get(name).size.toLocaleString("en")} bytes${role && `: ${role}`} `);
      item.append(...(isLeader ? [] : [pressed(change, () => (lead(name), listed(), ask()))]), drop);
      return item;
    }),
  );
  $("clear").hidden = files.size < 2;
  forget();
}

/** Takes away the answer to what is no longer asked. */
function forget() {
  $("answer").hidden = true;
  $("error").textContent = "";
}

function pasted() {
  files.delete(PASTED);
  if ($("paste").value.trim()) files.set(PASTED, new File([$("paste").value], PASTED));
  listed();
}

/** How a text begins that a question reads. */
const SAMPLES = {
  run: 'name = "mine" ...',
  reproduce: 'name = "mine" ...',
  compare: '{"schema": "slablab.replay.1" ...',
  replay: "hackbench-1 [002] 1.5: kmem:kmalloc: ...",
};
SAMPLES.explain = SAMPLES.sites = SAMPLES.replay;

function chosen() {
  for (const part of document.querySelectorAll("[data-verb]"))
    part.hidden = !part.dataset.verb.split(" ").includes(verb());
  $("paste").placeholder = SAMPLES[verb()] ?? "slabinfo - version: 2.1 ...";
  listed();
}

// ---- the answer -----------------------------------------------------------------------------------------

function show(reply, ms) {
  busy(false);
  $("error").textContent = reply.error ?? "";
  isChecking &&= !reply.error;
  $("answer").hidden = Boolean(reply.error);
  if (reply.error) return;
  last.reply = reply;
  $("linked").textContent = "";
  $("address-label").hidden = true;
  $("sentence").textContent = reply.sentence;
  $("command").textContent = reply.command;
  $("text").textContent = reply.text;
  $("text").parentElement.open = Boolean(lesson);
  // A frame that gets a second document is not always painted.
  const frame = $("frame").cloneNode();
  frame.srcdoc = reply.page;
  $("frame").replaceWith(frame);
  $("time").textContent = `${Math.round(ms)} ms`;
  if (isChecking) judge(reply);
  else if (!lesson) $("sentence").focus();
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Results that are kept to be compared. */
const results = new Map();

/** Keeps the answer beside those that are kept already; asks what differs once there are two. */
function keep() {
  // Without the program's name and the folders of files.
  const words = last.reply.command.split(" ").slice(1);
  const name = `${words.map((word) => word.slice(word.lastIndexOf("/") + 1)).join(" ").slice(0, 80)}.json`;
  results.set(name, new File([last.reply.json], name));
  $("linked").textContent = "It is kept: ask another question, and keep its answer, too.";
  if (results.size > 1) put({ question: { verb: "compare" } }, [...results.values()]);
}

/** Bytes of a fragment that mail programs leave whole. */
const LONGEST = 16000;

/** A link to this page that carries the question with its files, if those are small texts. */
async function link() {
  const { reply, ...question } = last;
  const texts = {};
  for (const [name, file] of files) texts[name] = await file.text();
  const fragment = await packed(JSON.stringify({ question, texts }));
  if (fragment.length > LONGEST || Object.values(texts).some((text) => text.includes("\u{fffd}"))) {
    $("linked").textContent = "The input is too large for a link: send the file, or this page saved with its answer.";
    return;
  }
  history.replaceState(null, "", `#q=${fragment}`);
  $("address").value = location.href;
  $("address-label").hidden = false;
  const copied = await navigator.clipboard?.writeText(location.href).then(() => " It is copied.", () => "");
  const where =
    location.protocol === "file:"
      ? "The address has the question and its input. It is one of this machine: what is behind # works at the page's address on another, too; or send Save as page."
      : "Who opens this address reads the question and its input, which are in it.";
  $("linked").textContent = where + (copied ?? "");
}

/** Puts a question into the form, as a link or an example has it, and asks it. */
function put({ question, texts }, blobs = []) {
  files.clear();
  $("paste").value = texts?.[PASTED] ?? "";
  for (const [name, text] of Object.entries(texts ?? {})) files.set(name, new File([text], name));
  for (const file of blobs) files.set(file.name, file);
  document.querySelector(`[name=verb][value="${question.verb}"]`).checked = true;
  if (files.has(question.input)) lead(question.input);
  chosen();
  for (const field of document.querySelectorAll("[data-change]"))
    field.value = question.change?.[field.dataset.change] ?? "";
  $("names").value = (question.names ?? []).join(" ");
  $("engines").value = (question.engines ?? []).join(" ");
  $("map").checked = question.map ?? false;
  for (const id of ["from", "to", "cache", "repeats", "seed"]) $(id).value = question[id] ?? "";
  $("experiment").value = files.size ? "" : (question.experiment ?? "");
  $("force").checked = question.force ?? false;
  $("page-size").value = question.verb === "orders" ? "" : (question["page-size"] ?? "");
  $("cpus").value = question.verb === "orders" ? "" : (question.cpus ?? "");
  $("hours").value = question.hours ?? "";
  if (question.verb === "orders") {
    $("policy").value = question.policy;
    $("against").value = question.against ?? "";
    $("order-page-size").value = (question["page-size"] ?? []).join(",");
    $("order-cpus").value = (question.cpus ?? []).join(",");
  }
  listed();
  return ask();
}

/** Asks the question that a link carries. */
async function sent(text) {
  leave();
  await put(JSON.parse(await unpacked(text)));
}

async function fragment() {
  const found = /^#(q|example|lesson)=(.*)$/.exec(location.hash);
  if (!found) return;
  try {
    if (found[1] === "q") await sent(found[2]);
    else if (found[1] === "lesson") await learn(Number(found[2]));
    else await example(Number(found[2]));
  } catch {
    $("error").textContent = "The link is not whole: it was cut where it was copied. Copy all of the address, or ask for the input.";
  }
}

/** Asks a question about files that the page has. */
function bundled(question) {
  const names = [question.input, question.experiment, ...["since", "before", "results"].flatMap((key) => question[key] ?? [])];
  const held = names.filter((name) => name in EXAMPLES.files);
  return put({ question }, held.map((name) => new File([bytesOf(EXAMPLES.files[name])], name)));
}

function example(number) {
  leave();
  return bundled(EXAMPLES.list[number].question);
}

/** A button in a row for each of these. */
function buttons(row, list, press) {
  $(row).append(...list.map(({ title }, number) => pressed(title, () => press(number))));
}

// ---- lessons --------------------------------------------------------------------------------------------

/** Shows a lesson, and asks what it is about. */
async function learn(number) {
  lesson = EXAMPLES.lessons[number];
  $("lesson").hidden = false;
  $("lesson-title").textContent = lesson.title;
  for (const part of ["idea", "see", "exercise"]) $(`lesson-${part}`).textContent = lesson[part];
  $("mine").value = $("checked").textContent = "";
  await bundled(lesson.shown);
  $("lesson-title").focus();
}

/** Ends a lesson. */
function leave() {
  lesson = undefined;
  $("lesson").hidden = true;
}

/** The numbers and words of a text. */
const words = (text) =>
  (text.toLowerCase().match(/\d[\d,]*(\.\d+)?|[a-z][a-z_]*/g) ?? []).map((word) => word.replaceAll(",", ""));

/** Asks what the exercise asks; `judge` says whether the reader's answer is in its text. */
async function check() {
  if (!filled("mine")) {
    $("checked").textContent = "Type an answer first: a number or a name.";
    return;
  }
  isChecking = true;
  $("checked").textContent = "Asking ...";
  await bundled(lesson.asked);
}

/** Whether a number is another one, or that rounded, or that made of rounded ones. */
function isNear(mine, right) {
  const places = mine.split(".")[1]?.length ?? 0;
  const isWhole = !right.includes(".");
  return isWhole ? Number(mine) === Number(right) : Number(right).toFixed(places) === mine || Math.abs(mine / right - 1) < 0.005;
}

function judge(reply) {
  isChecking = false;
  const right = new RegExp(lesson.answer).exec(reply.text.replace(/\s+/g, " "))[1];
  const [word] = words(right);
  const isRight = words(filled("mine")).some((mine) => (Number(word) ? isNear(mine, word) : mine === word));
  const kind = Number(word) ? "number" : "name";
  $("checked").textContent = isRight
    ? `Right: ${right}. ${lesson.why}`
    : `Not yet: another ${kind} is in the answer below, which is that of ${reply.command} now.`;
}

const EXAMPLES = JSON.parse($("examples-data").textContent);
buttons("examples", EXAMPLES.list, example);
$("experiments").append(
  ...EXAMPLES.experiments.map(({ name, title }) => Object.assign(document.createElement("option"), { value: name, label: `${name}: ${title}` })),
);
buttons("lessons", EXAMPLES.lessons, learn);

document.querySelectorAll("[name=verb]").forEach((radio) => (radio.onchange = chosen));
$("form").onsubmit = (event) => (event.preventDefault(), ask());
$("exercise").onsubmit = (event) => (event.preventDefault(), check());
$("paste").oninput = pasted;
$("choose").onchange = () => (taken($("choose").files), ($("choose").value = ""));
$("clear").onclick = () => (files.clear(), ($("paste").value = ""), listed());
$("stop").onclick = stop;
$("link").onclick = link;
$("keep").onclick = keep;
$("save-json").onclick = () => save("slablab.json", "application/json", last.reply.json);
$("save-text").onclick = () => save("slablab.txt", "text/plain", last.reply.text);
$("save-page").onclick = () => save("slablab.html", "text/html", last.reply.page);
document.ondragover = (event) => (event.preventDefault(), document.body.classList.add("over"));
document.ondragleave = () => document.body.classList.remove("over");
document.ondrop = (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  leave();
  taken(event.dataTransfer.files);
  if (files.size && verb() !== "orders") ask();
};
window.onhashchange = fragment;
chosen();
fragment();
