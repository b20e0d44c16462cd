// Asks the module: one instance for each question, so that its memory goes back when it is answered.
"use strict";
let made;

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

async function answer(question, files) {
  const { exports } = await WebAssembly.instantiate(await made, {});
  try {
    const all = files.reduce((sum, { file }) => sum + file.size, 0);
    let before = 0;
    for (const given of files) {
      await give(exports, given, before, all);
      before += given.file.size;
    }
    return JSON.parse(text(exports, exports.slablab_ask(put(exports, JSON.stringify(question)))));
  } catch (error) {
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
