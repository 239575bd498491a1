#include "tools/conformance/elf_symbols.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace thalweg::conformance {
namespace {

// A view of the file that never reads beyond its end.
class Bytes {
 public:
  explicit Bytes(std::string all) : all_(std::move(all)) {}
  template <class T>
  bool Get(uint64_t at, T* out) const {
    if (at > all_.size() || all_.size() - at < sizeof(T)) return false;
    std::memcpy(out, all_.data() + at, sizeof(T));
    return true;
  }
  std::string Text(uint64_t at) const {
    if (at >= all_.size()) return "";
    return std::string(all_.data() + at, strnlen(all_.data() + at, all_.size() - at));
  }

 private:
  std::string all_;
};

void AddSymbols(const Bytes& file, const Elf64_Shdr& table, const Elf64_Shdr& names, ElfSymbols* out) {
  for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {  // the first entry is no symbol
    Elf64_Sym s;
    if (!file.Get(table.sh_offset + at, &s)) return;
    std::string name = file.Text(names.sh_offset + s.st_name);
    if (s.st_shndx == SHN_UNDEF) {
      out->imported.push_back(std::move(name));
      continue;
    }
    const unsigned bind = ELF64_ST_BIND(s.st_info), visible = ELF64_ST_VISIBILITY(s.st_other);
    const bool global = bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE;
    if (global && (visible == STV_DEFAULT || visible == STV_PROTECTED) && s.st_shndx != SHN_ABS) out->exported.push_back(std::move(name));
  }
}

void AddNeeded(const Bytes& file, const Elf64_Shdr& table, const Elf64_Shdr& names, ElfSymbols* out) {
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= table.sh_size; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn d;
    if (!file.Get(table.sh_offset + at, &d) || d.d_tag == DT_NULL) return;
    if (d.d_tag == DT_NEEDED) out->needed.push_back(file.Text(names.sh_offset + d.d_un.d_val));
  }
}

}  // namespace

StatusOr<ElfSymbols> ReadElfSymbols(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const Bytes file(std::string(std::istreambuf_iterator<char>(stream), {}));
  Elf64_Ehdr head;
  if (!file.Get(0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_type != ET_DYN || head.e_shentsize != sizeof(Elf64_Shdr)) {
    return InvalidArgument("it is no 64-bit shared library");
  }
  ElfSymbols out;
  for (uint32_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr table, names;
    if (!file.Get(head.e_shoff + i * sizeof table, &table)) return InvalidArgument("its section table is cut short");
    if (table.sh_type != SHT_DYNSYM && table.sh_type != SHT_DYNAMIC) continue;
    if (!file.Get(head.e_shoff + table.sh_link * sizeof names, &names)) return InvalidArgument("its section table is cut short");
    table.sh_type == SHT_DYNSYM ? AddSymbols(file, table, names, &out) : AddNeeded(file, table, names, &out);
  }
  return out;
}

}  // namespace thalweg::conformance
