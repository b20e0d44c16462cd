#!/usr/bin/env bash
# Seeds the fuzzer: copies the input files of the tests of readers to fuzz/corpus, one folder per target.
set -euo pipefail
cd "$(dirname "$0")"
for folder in ../crates/{kernel,workloads}/corpus/*/; do
  target=$(basename "$folder")
  mkdir -p "corpus/$target"
  cp "$folder"* "corpus/$target/"
  echo "corpus/$target: $(find "corpus/$target" -type f | wc -l) files"
done
