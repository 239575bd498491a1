#include "framework/registry/plugin_file.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/mman.h>
#include <sys/stat.h>

namespace thalweg {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#else
#error "say which ELF machine this is"
#endif

std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_RISCV: return "risc-v";
    case EM_386: return "x86 (32 bits)";
    case EM_ARM: return "arm (32 bits)";
    case EM_PPC64: return "ppc64";
    default: return StrCat("ELF machine ", machine);
  }
}

// A whole file, mapped for reading.
class Mapping {
 public:
  static StatusOr<Mapping> Open(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: opening a FIFO would wait for its writer
    if (fd < 0)
      return Error(errno == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kPermissionDenied, "cannot open it: ", Reason());
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
      close(fd);
      return InvalidArgument("it is no regular file");
    }
    Mapping m;
    m.size_ = uint64_t(st.st_size);
    if (m.size_) m.data_ = mmap(nullptr, m.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    std::string reason = Reason();
    close(fd);
    if (m.data_ == MAP_FAILED) {
      m.data_ = nullptr;
      return Error(absl::StatusCode::kUnavailable, "cannot read it: ", reason);
    }
    return m;
  }
  Mapping(Mapping&& o) noexcept : data_(std::exchange(o.data_, nullptr)), size_(o.size_) {}
  ~Mapping() {
    if (data_) munmap(data_, size_);
  }
  uint64_t size() const { return size_; }
  // Returns false if the range exceeds the file.
  template <class T>
  bool Read(uint64_t offset, T* out) const {
    if (offset > size_ || size_ - offset < sizeof(T)) return false;
    std::memcpy(out, static_cast<const char*>(data_) + offset, sizeof(T));
    return true;
  }
  // Reads a text whose terminator is inside the file.
  bool ReadText(uint64_t offset, std::string* out) const {
    if (offset >= size_) return false;
    const char* p = static_cast<const char*>(data_) + offset;
    const void* end = std::memchr(p, 0, size_ - offset);
    if (!end) return false;
    out->assign(p, static_cast<const char*>(end));
    return true;
  }

 private:
  Mapping() = default;
  static std::string Reason() { return std::generic_category().message(errno); }
  void* data_ = nullptr;
  uint64_t size_ = 0;
};

Status CheckHeader(const Mapping& file, const Elf64_Ehdr& h) {
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return InvalidArgument("it is no shared library (no ELF header)");
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != kMachine) {
    return InvalidArgument("it is built for ", MachineName(h.e_machine), ", this is ", MachineName(kMachine));
  }
  if (h.e_type != ET_DYN) return InvalidArgument("it is no shared library but another kind of ELF file");
  if (h.e_phentsize != sizeof(Elf64_Phdr)) return InvalidArgument("its program headers are damaged");
  uint64_t table = uint64_t{h.e_phnum} * sizeof(Elf64_Phdr);
  if (h.e_phoff > file.size() || file.size() - h.e_phoff < table) return InvalidArgument("the file is cut short");
  return Status();
}

}  // namespace

StatusOr<PluginFile> ReadPluginFile(const std::string& path) {
  ASSIGN_OR_RETURN(Mapping file, Mapping::Open(path));
  Elf64_Ehdr h;
  if (!file.Read(0, &h)) return InvalidArgument("it is no shared library (", file.size(), " bytes)");
  RETURN_IF_ERROR(CheckHeader(file, h));

  std::vector<Elf64_Phdr> loads;
  Elf64_Phdr dynamic{};
  for (uint32_t i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr p;
    if (!file.Read(h.e_phoff + i * sizeof p, &p)) return InvalidArgument("the file is cut short");
    if (p.p_type == PT_LOAD) {
      // The loader maps the whole segment; touching pages behind the end of the file would end the
      // process.
      if (p.p_offset > file.size() || file.size() - p.p_offset < p.p_filesz) return InvalidArgument("the file is cut short");
      loads.push_back(p);
    }
    if (p.p_type == PT_DYNAMIC) dynamic = p;
  }
  if (dynamic.p_type != PT_DYNAMIC) return InvalidArgument("it has no dynamic section, so it cannot be loaded");

  uint64_t strings = 0;
  std::vector<uint64_t> names;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn d;
    if (!file.Read(dynamic.p_offset + at, &d)) return InvalidArgument("its dynamic section is cut short");
    if (d.d_tag == DT_NULL) break;
    if (d.d_tag == DT_STRTAB) strings = d.d_un.d_ptr;
    if (d.d_tag == DT_NEEDED) names.push_back(d.d_un.d_val);
  }
  PluginFile out;
  for (const Elf64_Phdr& p : loads) {
    if (strings < p.p_vaddr || strings - p.p_vaddr >= p.p_filesz) continue;
    for (uint64_t name : names) {
      std::string text;
      if (file.ReadText(strings - p.p_vaddr + p.p_offset + name, &text)) out.needed.push_back(std::move(text));
    }
    break;
  }
  return out;
}

std::string SanitizerOf(const PluginFile& file) {
  constexpr std::string_view kRuntimes[][2] = {{"libasan.", "address"},
                                               {"libtsan.", "thread"},
                                               {"libclang_rt.asan", "address"},
                                               {"libclang_rt.tsan", "thread"},
                                               {"libhwasan.", "hwaddress"}};
  for (const std::string& name : file.needed) {
    for (const auto& [prefix, sanitizer] : kRuntimes) {
      if (name.compare(0, prefix.size(), prefix) == 0) return std::string(sanitizer);
    }
  }
  return "";
}

std::string_view HostSanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return "address";
#elif defined(__SANITIZE_THREAD__)
  return "thread";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return "address";
#elif __has_feature(thread_sanitizer)
  return "thread";
#else
  return "";
#endif
#else
  return "";
#endif
}

}  // namespace thalweg
