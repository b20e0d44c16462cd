#!/usr/bin/env bash
# Seeds the fuzzer: copies the input files of the tests to fuzz/corpus, one folder per target. A verb with several
# inputs gets the first ones joined as `slablab::fuzz::SEPARATOR` says.
set -euo pipefail
cd "$(dirname "$0")"
for folder in ../crates/{readers,trace}/corpus/*/; do
  target=$(basename "$folder")
  mkdir -p "corpus/$target"
  cp "$folder"* "corpus/$target/"
  echo "corpus/$target: $(find "corpus/$target" -type f | wc -l) files"
done

readers=../crates/readers/corpus
recordings=("$readers"/{perfdata,tracedat,ftrace,tidy}/*)
dumps=("$readers"/{bundle/dump.tar,slabinfo/*,input/*,pasted/*})

# seed TARGET FILE..: the files, each an input.
seed() {
  mkdir -p "corpus/verb_$1"
  for file in "${@:2}"; do
    cp "$file" "corpus/verb_$1/$(basename "$(dirname "$file")")-$(basename "$file")"
  done
  echo "corpus/verb_$1: $(find "corpus/verb_$1" -type f | wc -l) files"
}
# join TARGET FILE..: one input of several files.
join() {
  local into
  mkdir -p "corpus/verb_$1"
  into="corpus/verb_$1/$(basename "$2").joined"
  cp "$2" "$into"
  for file in "${@:3}"; do
    printf '\n--- next input ---\n' >>"$into"
    cat "$file" >>"$into"
  done
}

for verb in import replay map explain sites; do seed "$verb" "${recordings[@]}"; done
for verb in doctor whatif what; do seed "$verb" "${dumps[@]}"; done
seed what_data ../crates/doctor/data/caches.toml
seed run ../experiments/*.toml
seed show "$readers"/vmrecord/*
seed pressure_run ../examples/data/vm/*.t
for recording in "${recordings[@]}"; do
  join replay_before "$recording" "$readers/bundle/dump.tar"
  join replay_machine "$recording" ../crates/machines/data/laptop.toml
  join verify "$recording" ../examples/data/hackbench-6.18.slabinfo-{start,end}.txt
done
join doctor_since "$readers/bundle/dump.tar" "$readers/input/slabinfo"
