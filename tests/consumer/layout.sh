#!/usr/bin/env bash
# usage: layout.sh
# Tests the layouts of distributions: other names of the library folder, a staging folder (DESTDIR), folders as absolute paths. Installs,
# moves and uses each: programs find the library, pkg-config and find_package find the installation. No file is installed elsewhere.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-layout.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/elsewhere"
cd "$work/elsewhere" # the current folder must not affect the layout

# try NAME PREFIX LIBRARY_FOLDER_BELOW_IT OPTION...
try() {
  local name=$1 prefix=$2 libdir=$3
  shift 3
  echo "-- $name"
  cmake -G Ninja -S "$here/layout" -B "$work/$name" -DCMAKE_INSTALL_PREFIX="$prefix" "$@" >/dev/null
  cmake --build "$work/$name" >/dev/null
  DESTDIR=$work/$name.stage cmake --install "$work/$name" >/dev/null
  mv "$work/$name.stage$prefix" "$work/$name.moved"
  [ -z "$(ls -A "$work/elsewhere")" ] || { echo "something was installed into $work/elsewhere"; exit 1; }
  [ -z "$(find "$work/$name.stage" -type f)" ] || { echo "something was installed outside of $prefix"; exit 1; }
  prefix=$work/$name.moved
  cmp "$prefix/share/doc/thalweg/LICENSE" "$here/../../LICENSE"
  test -f "$prefix/share/doc/thalweg/THIRD_PARTY.md"
  "$prefix/bin/program" || { echo "bin/program does not find the library"; exit 1; }
  [ "$(PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig pkg-config --variable=plugindir thalweg | xargs realpath -m)" = "$prefix/$libdir/thalweg/plugins" ]
  # shellcheck disable=SC2046  # splits the flags into words
  cc "$here/layout/program.c" $(PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig pkg-config --cflags --libs thalweg) -Wl,-rpath,"$prefix/$libdir" \
    -o "$work/$name.user"
  "$work/$name.user"
  cmake -G Ninja -S "$here/layout/user" -B "$work/$name.cmake" -DCMAKE_PREFIX_PATH="$prefix" -DPROGRAM="$here/layout/program.c" \
    -DPLUGINS="$prefix/$libdir/thalweg/plugins" >/dev/null
  cmake --build "$work/$name.cmake" >/dev/null
  "$work/$name.cmake/user"
}

try usual /opt/thalweg lib
multiarch=lib/$(cc -print-multiarch)
try multiarch /usr "$multiarch" -DCMAKE_INSTALL_LIBDIR="$multiarch"
try absolute /opt/thalweg lib -DCMAKE_INSTALL_LIBDIR=/opt/thalweg/lib -DCMAKE_INSTALL_INCLUDEDIR=/opt/thalweg/include
echo "-- a folder outside of the prefix is refused"
if cmake -G Ninja -S "$here/layout" -B "$work/outside" -DCMAKE_INSTALL_PREFIX=/opt/thalweg -DCMAKE_INSTALL_LIBDIR=/usr/lib >"$work/said" 2>&1; then
  exit 1
fi
tr -s "\n " " " <"$work/said" | grep -q "which is not below CMAKE_INSTALL_PREFIX"
