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

const SLABINFO = "slabinfo - version: 2.1 ...";
const RECORDED = {
  input: "input",
  others: "before",
  roles: ["the recording", "a state of before", "replay this one"],
  sample: "hackbench-1 [002] 1.5: kmem:kmalloc: ...",
  missing: "Drop, paste or choose a recording first.",
};
const MODELLED = {
  input: "experiment",
  roles: ["the experiment", "a file that it names", "run this one"],
  sample: 'name = "mine" ...',
  missing: "Name an experiment, or give its file.",
};
const STATE = {
  input: "input",
  isLastLed: true,
  roles: ["examined, the latest state", "an earlier state", "examine this one"],
  sample: SLABINFO,
  missing: "Drop, paste or choose what your machine says first.",
};
/**
 * What each verb reads: the parts of its question that name the file that leads and the others; a part of the
 * question that takes the files' place; whether the last file leads, as the latest of several states; what the
 * one that leads is, what the others are, and what makes another one lead; how a text begins; what is said
 * where nothing is given.
 */
const VERBS = {
  doctor: { ...STATE, others: "since" },
  whatif: STATE,
  what: { ...STATE, instead: "names", missing: "Name a cache, or paste a message of the kernel." },
  orders: { roles: ["", "", ""], sample: SLABINFO },
  replay: RECORDED,
  explain: RECORDED,
  sites: { ...RECORDED, others: undefined },
  pressure: {
    input: "script",
    roles: ["the script", "a file that it names", "run this one"],
    sample: "anon hot 80 ...",
    missing: "Drop, paste or choose a script of page accesses first.",
  },
  run: { ...MODELLED, instead: "experiment" },
  reproduce: { ...MODELLED, instead: "experiment" },
  compare: {
    all: "results",
    roles: ["the base", "compared with it", "make it the base"],
    sample: '{"schema": "slablab.replay.1" ...',
    missing: "Choose two results or more: JSON that a verb or this page saved.",
  },
};

const verb = () => document.querySelector("[name=verb]:checked").value;
const filled = (id) => $(id).value.trim();

/** The fields of the form that have a part of a question each, by their names. */
const fields = () => [...$("form").elements].filter((field) => field.name && field.name !== "verb");
/** What separates the values of a field that holds several. */
const SEPARATORS = { words: [/\s+/, " "], list: [/\s*,\s*/, ","], numbers: [/\s*,\s*/, ","] };

/** What a field holds as a part of a question, or nothing. */
function held(field) {
  if (field.type === "checkbox") return field.checked || undefined;
  const text = field.value.trim() || field.defaultValue;
  if (!text) return undefined;
  if (field.type === "number") return Number(text);
  const { kind } = field.dataset;
  if (!kind) return text;
  const values = text.split(SEPARATORS[kind][0]).filter(Boolean);
  return kind === "numbers" ? values.map(Number) : values;
}

/** Puts a part of a question into a field: the other way of `held`. */
function fill(field, value) {
  if (field.type === "checkbox") field.checked = value ?? false;
  else field.value = Array.isArray(value) ? value.join(SEPARATORS[field.dataset.kind][1]) : (value ?? field.defaultValue);
}

/** The names of the file that leads, and of the others. */
function ordered() {
  const names = [...files.keys()];
  return VERBS[verb()].isLastLed && names.length ? [names.pop(), ...names] : names;
}

/** The question that the form has, or nothing if something is missing, which is said. */
function asked() {
  const { input, others, all, instead, missing } = VERBS[verb()];
  const question = { verb: verb() };
  const refuse = (words) => {
    forget();
    $("error").textContent = words;
    busy(false);
  };
  for (const field of fields().filter((field) => !field.disabled)) {
    const value = held(field);
    if (value === undefined && field.dataset.missing) return refuse(field.dataset.missing);
    const [part, inner] = field.name.split(".");
    if (!inner) question[part] = value;
    else question[part] = { ...question[part], ...(value && { [inner]: value }) };
  }
  const [first, ...rest] = ordered();
  if (all) question[all] = ordered();
  else if (input && !(instead && question[instead])) question[input] = first;
  if (others && rest.length) question[others] = rest;
  const isWhole = all ? rest.length : !input || question[input] || question[instead];
  return isWhole ? question : refuse(missing);
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
  for (const [other, given] of VERBS[verb()].isLastLed ? [...others, [name, file]] : [[name, file], ...others]) files.set(other, given);
}

function listed() {
  const [leads, follows, change] = VERBS[verb()].roles;
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

function chosen() {
  for (const part of document.querySelectorAll("[data-verb]"))
    part.hidden = !part.dataset.verb.split(" ").includes(verb());
  for (const field of fields()) field.disabled = Boolean(field.closest("[hidden]"));
  $("paste").placeholder = VERBS[verb()].sample;
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
  const led = question[VERBS[question.verb].input];
  if (files.has(led)) lead(led);
  chosen();
  for (const field of fields()) {
    const [part, inner] = field.name.split(".");
    const value = field.disabled ? undefined : question[part];
    fill(field, inner ? value?.[inner] : value);
  }
  // A file is not known by a name that comes with slablab.
  if (files.size) $("experiment").value = "";
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
  const { input, others, all } = VERBS[question.verb];
  const names = [input, others, all].flatMap((part) => question[part] ?? []).filter((name) => name in EXAMPLES.files);
  return put({ question }, names.map((name) => new File([bytesOf(EXAMPLES.files[name])], name)));
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
