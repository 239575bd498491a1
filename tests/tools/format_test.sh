#!/usr/bin/env bash
# Checks that every C and C++ file has the format of .clang-format.
set -euo pipefail
cd "$THALWEG_SOURCE_DIR"
program=$(command -v clang-format-19) || { echo "no clang-format-19 here: tools/setup --dev"; exit 77; }
git ls-files -z --cached --others --exclude-standard '*.c' '*.cc' '*.h' '*.hpp' | xargs -0 "$program" --dry-run -Werror
