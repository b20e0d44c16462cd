// Asks the module: one instance for each question, so that its memory goes back when it is answered.
"use strict";
let made;
const NO_COROUTINES =
  "this browser cannot run experiments: it has no switching of stacks in WebAssembly (Chromium has since 137). " +
  "Ask the program, slablab run, instead";

/** Copies a file into the module's memory, a piece at a time, and says how far it is. */
async function give(module, { name, file }, before, all) {
  const bytes = module.slablab_buffer(file.size);
  let at = 0;
  for (const reader = file.stream().getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    // The memory may have grown since, and then has another array.
    new Uint8Array(module.memory.buffer, module.slablab_at(bytes) + at, value.length).set(value);
    at += value.length;
    postMessage({ done: before + at, all });
  }
  module.slablab_give(put(module, name), bytes);
}

function put(module, text) {
  const bytes = new TextEncoder().encode(text);
  const buffer = module.slablab_buffer(bytes.length);
  new Uint8Array(module.memory.buffer, module.slablab_at(buffer), bytes.length).set(bytes);
  return buffer;
}

function text(module, buffer) {
  const bytes = new Uint8Array(module.memory.buffer, module.slablab_at(buffer), module.slablab_length(buffer));
  return new TextDecoder().decode(bytes);
}

/** The module, with what its coroutines call: each is a call that the browser suspends where it waits for a promise. */
async function instance() {
  const { Suspending, promising } = WebAssembly;
  const asleep = new Map();
  const running = [];
  let exports, begin;
  const resume = (state) =>
    new Promise((back, fail) => {
      const { __stack_pointer: stack } = exports;
      running.push({ state, back, fail, top: stack.value });
      const found = asleep.get(state);
      if (found) {
        asleep.delete(state);
        stack.value = found.top;
        return found.wake();
      }
      stack.value = exports.slablab_coroutine_stack(state);
      begin(state).then(leave, (error) => running.pop().fail(error));
    });
  /** Goes back to who continued the running coroutine; gives that. */
  const leave = () => {
    const { state, back, top } = running.pop();
    exports.__stack_pointer.value = top;
    back();
    return state;
  };
  const suspend = () =>
    new Promise((wake) => {
      const top = exports.__stack_pointer.value;
      asleep.set(leave(), { wake, top });
    });
  const forget = (state) => asleep.delete(state);
  const refused = () => {
    throw new Error(NO_COROUTINES);
  };
  const coroutines = Suspending
    ? { resume: new Suspending(resume), suspend_running: new Suspending(suspend), forget }
    : { resume: refused, suspend_running: refused, forget };
  let told = 0;
  const progress = (done, all) => {
    if (performance.now() - told < 100) return;
    told = performance.now();
    postMessage({ done, all });
  };
  ({ exports } = await WebAssembly.instantiate(await made, { coroutines, page: { progress } }));
  if (!promising) return { exports, ask: exports.slablab_ask };
  begin = promising(exports.slablab_coroutine_begin);
  return { exports, ask: promising(exports.slablab_ask) };
}

async function answer(question, files) {
  const { exports, ask } = await instance();
  try {
    const all = files.reduce((sum, { file }) => sum + file.size, 0);
    let before = 0;
    for (const given of files) {
      await give(exports, given, before, all);
      before += given.file.size;
    }
    return JSON.parse(text(exports, await ask(put(exports, JSON.stringify(question)))));
  } catch (error) {
    if (error.message === NO_COROUTINES) return { error: NO_COROUTINES };
    const trapped = error instanceof WebAssembly.RuntimeError;
    const said = trapped ? text(exports, exports.slablab_defect()) : String(error);
    // An allocation that fails ends the module without a word.
    const isFull = error instanceof RangeError || !said;
    return {
      error: isFull
        ? "the browser gives this page too little memory for the input: ask the program, `slablab`, instead"
        : `a defect of slablab: ${said}. Please report it with the input`,
    };
  }
}

onmessage = async ({ data }) => {
  if (data.module) {
    made = WebAssembly.compile(data.module);
    return;
  }
  const begun = performance.now();
  const reply = await answer(data.question, data.files);
  postMessage({ reply, ms: performance.now() - begun });
};
