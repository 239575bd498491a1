// Level 0: the file, the effects of loading it, and its descriptor.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tools/conformance/elf_symbols.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/process.h"

namespace thalweg::conformance {
namespace {

bool StartsWith(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::string Few(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 3); ++i) text += StrCat(i ? ", " : "", "'", names[i], "'");
  if (names.size() > 3) text += StrCat(" and ", names.size() - 3, " more");
  return text;
}

Outcome ExportsOnlyTheEntry(const std::string& file) {
  ASSIGN_OR_RETURN(ElfSymbols symbols, ReadElfSymbols(file));
  std::vector<std::string> others;
  bool entry = false;
  for (std::string& name : symbols.exported) {
    if (name == "tw_plugin_query_v0") {
      entry = true;
    } else if (name != "_init" && name != "_fini" && name != "_edata" && name != "_end" && name != "__bss_start") {
      others.push_back(std::move(name));
    }
  }
  if (!entry) return Fail("it does not export tw_plugin_query_v0; use TW_PLUGIN");
  if (others.empty()) return {};
  return Fail("it exports ", Few(others),
              "; make all else static, or link with a version script: { global: tw_plugin_query_v0; local: *; };");
}

Outcome ImportsNothingOfOurs(const std::string& file) {
  ASSIGN_OR_RETURN(ElfSymbols symbols, ReadElfSymbols(file));
  std::vector<std::string> ours;
  for (const std::string& name : symbols.imported) {
    if (StartsWith(name, "tw_") || name.find("7thalweg") != name.npos) ours.push_back(name);
  }
  for (const std::string& name : symbols.needed) {
    if (StartsWith(name, "libthalweg")) ours.push_back(name);
  }
  if (ours.empty()) return {};
  return Fail("it needs ", Few(ours), "; what a plugin needs of the runtime arrives in the host table");
}

Outcome StartsNothing(const std::string& file) {
  const ProcessState before = ReadProcess();
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  (void)library->Descriptor();
  const std::string added = Added(before, ReadProcess());
  return added.empty() ? Outcome() : Fail(added, "; do it in init, or later");
}

// Calls the query as hosts of several versions, whose records end in poison.
Outcome AnswersTheSame(const std::string& file) {
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  const tw_plugin* first = library->Descriptor();
  if (!first) return Fail("it answered NULL");
  const tw_plugin copy = *first;
  Guarded memory(false);
  tw_host_info* info = memory.New(tw_host_info{TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("Thalweg")});
  int64_t heap = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    info->size = uint32_t(sizeof *info) + (i % 3 == 2 ? 64 : 0);
    info->epoch = TW_EPOCH + (i % 5 == 4 ? 1 : 0);
    info->minor = i % 7;
    const tw_plugin* again = library->query()(info);
    if (!again || std::memcmp(again, &copy, std::min<size_t>(copy.size, sizeof copy)) != 0) {
      return Fail("asked again, by a host of epoch ", info->epoch, ", minor ", info->minor, ", it answered another record");
    }
    if (i == 0) heap = ReadProcess().heap;
  }
  const int64_t grown = ReadProcess().heap - heap;
  if (grown > 4096) return Fail("it allocates: ", grown, " bytes in 99 calls");
  return {};
}

bool IsReverseDns(std::string_view id) {
  bool dot = false;
  for (char c : id) {
    dot = dot || c == '.';
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_')) return false;
  }
  return dot && id.front() != '.' && id.back() != '.';
}

Outcome DescribesItself(const std::string& file) {
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  const tw_plugin* d = library->Descriptor();
  if (!d) return Fail("the query answered NULL");
  constexpr uint32_t kLeast = offsetof(tw_plugin, init) + sizeof(void*);
  if (d->size < kLeast) return Fail("size is ", d->size, ", less than the ", kLeast, " bytes up to init; fill the record with TW_PLUGIN");
  if (d->flags) return Fail("flags are ", d->flags, "; none are known");
  if (d->epoch != TW_EPOCH) return Fail("epoch is ", d->epoch, "; this kit checks epoch ", TW_EPOCH);
  if (d->floor > d->target || d->target > d->header) {
    return Fail("floor ", d->floor, ", target ", d->target, " and header ", d->header, " are not in this order");
  }
  const std::string_view id = TextOf(d->id, d->id_len);
  if (id.empty() || !IsReverseDns(id)) return Fail("the id '", id, "' is not of the form org.example.name");
  if (TextOf(d->version, d->version_len).empty()) return Fail("the version is missing");
  if (TextOf(d->floor_adds, d->floor_adds_len).empty())
    return Fail("floor_adds is missing, which tells users of older hosts what they lack");
  const std::string_view build = TextOf(d->build, d->build_len);
  if (!build.empty() && build.find('=') == build.npos) return Fail("build is '", build, "', not of the form key=value; key=value");
  if (!d->init) return Fail("init is missing");
  return {};
}

}  // namespace

void CheckLoads(Run& run) {
  const std::string& file = run.options().path;
  run.Check(1, "", [&]() -> Outcome {
    ASSIGN_OR_RETURN(ElfSymbols symbols, ReadElfSymbols(file));
    (void)symbols;
    return Library::Open(file).status();
  });
}

void CheckFile(Run& run) {
  const std::string& file = run.options().path;
  run.Check(2, "", [&] { return ExportsOnlyTheEntry(file); });
  run.Check(3, "", [&] { return ImportsNothingOfOurs(file); });
  run.Check(4, "", [&] { return StartsNothing(file); });
  run.Check(5, "", [&] { return AnswersTheSame(file); });
  run.Check(6, "", [&] { return DescribesItself(file); });
}

}  // namespace thalweg::conformance
