#include "framework/registry/own_build.h"

#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace thalweg {
namespace {

// Returns the build id among the notes of a segment; "" if it is not there.
std::string BuildIdIn(const char* at, const char* end) {
  auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  while (size_t(end - at) > sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const char* const name = at + sizeof note;
    const char* const id = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU", 4)) {
      std::string hex;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        for (int shift : {4, 0}) hex += "0123456789abcdef"[uint8_t(id[i]) >> shift & 15];
      }
      return hex;
    }
    at = id + padded(note.n_descsz);
  }
  return "";
}

struct Search {
  uintptr_t here;
  std::string id;
};

int Look(dl_phdr_info* info, size_t, void* arg) {
  auto* search = static_cast<Search*>(arg);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    ours = ours || (p.p_type == PT_LOAD && search->here - (info->dlpi_addr + p.p_vaddr) < p.p_memsz);
  }
  for (int i = 0; ours && search->id.empty() && i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + p.p_vaddr);
    if (p.p_type == PT_NOTE) search->id = BuildIdIn(notes, notes + p.p_memsz);
  }
  return ours;
}

}  // namespace

std::string OwnBuild() {
  static const char here = 0;
  Search search{reinterpret_cast<uintptr_t>(&here), ""};
  dl_iterate_phdr(&Look, &search);
  return search.id;
}

}  // namespace thalweg
