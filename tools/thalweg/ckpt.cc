// thalweg ckpt: lists the contents of a checkpoint and verifies its checksums.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "command.h"
#include "counted.h"
#include "handles.h"
#include "json.h"

namespace thalweg::cli {
namespace {

struct Entry {
  std::string name, dtype, shape, failure;
  std::string resource, format;  // of a saved plugin resource; else empty
  uint64_t bytes = 0;
};

bool IsWord(const tw_string& s) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-'; };
  return s.size > 0 && s.size < 200 && std::all_of(s.data, s.data + s.size, fits);
}

// Recognises a plugin's resource by the name that savers give it; its type and format precede its
// bytes (saver.h). Any other entry stays a string.
void LookForResource(const Checkpoint& checkpoint, Entry* e) {
  const std::string suffix = ":resource";
  if (e->dtype != "string" || e->shape != "[3]" || e->name.size() < suffix.size()) return;
  if (e->name.compare(e->name.size() - suffix.size(), suffix.size(), suffix) != 0) return;
  tw_tensor* saved = nullptr;
  tw_status* failed = tw_checkpoint_read(checkpoint.c(), e->name.c_str(), &saved);
  const auto* texts = failed ? nullptr : static_cast<const tw_string*>(tw_tensor_data(saved));
  if (texts && IsWord(texts[0]) && IsWord(texts[1])) {
    e->resource.assign(texts[0].data, texts[0].size);
    e->format.assign(texts[1].data, texts[1].size);
  }
  tw_status_release(failed);
  tw_tensor_release(saved);
}

std::vector<Entry> Entries(const Checkpoint& checkpoint, bool verify) {
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < tw_checkpoint_count(checkpoint.c()); ++i) {
    Entry e;
    uint32_t dtype = 0;
    tw_shape shape;
    e.name = tw_checkpoint_name(checkpoint.c(), i);
    tw::raise(tw_checkpoint_describe(checkpoint.c(), e.name.c_str(), &dtype, &shape, &e.bytes));
    e.dtype = DTypeText(dtype);
    e.shape = ShapeText(shape);
    LookForResource(checkpoint, &e);
    if (verify) {
      tw_status* failed = tw_checkpoint_verify(checkpoint.c(), e.name.c_str());
      if (failed) e.failure = tw_status_message(failed);
      tw_status_release(failed);
    }
    entries.push_back(std::move(e));
  }
  return entries;
}

int Run(const Args& args) {
  const std::string what = args.positional()[0], prefix = args.positional()[1];
  if (what != "verify" && what != "list") throw UsageError{"'" + what + "' is neither verify nor list"};
  const bool verify = what == "verify";
  const Checkpoint checkpoint(prefix);
  const std::vector<Entry> entries = Entries(checkpoint, verify);
  uint64_t bytes = 0;
  size_t damaged = 0;
  for (const Entry& e : entries) {
    bytes += e.bytes;
    damaged += !e.failure.empty();
  }
  if (args.has("--json")) {
    Json json;
    json.Object().Text("prefix", prefix).Number("bytes", int64_t(bytes)).Array("tensors");
    for (const Entry& e : entries) {
      json.Object().Text("name", e.name).Text("dtype", e.dtype).Text("shape", e.shape).Number("bytes", int64_t(e.bytes));
      if (!e.resource.empty()) json.Text("resource", e.resource).Text("format", e.format);
      if (verify) json.Bool("good", e.failure.empty()).Text("failure", e.failure);
      json.End();
    }
    std::fputs(json.End().End().text().c_str(), stdout);
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const Entry& e : entries) {
      const std::string is = e.resource.empty() ? e.shape : e.shape + " " + e.resource + ", format " + e.format;
      rows.push_back({Coloured(kBold, e.name), e.dtype, is, BytesText(e.bytes)});
      if (verify) rows.back().push_back(e.failure.empty() ? Coloured(kGreen, "good") : Coloured(kRed, "damaged"));
    }
    std::fputs(Table(rows).c_str(), stdout);
    std::printf("%s, %s\n", Counted(entries.size(), "tensor").c_str(), BytesText(bytes).c_str());
  }
  for (const Entry& e : entries) {
    if (!e.failure.empty()) std::fprintf(stderr, "thalweg ckpt: %s\n", e.failure.c_str());
  }
  if (damaged) throw std::runtime_error(std::to_string(damaged) + " of " + std::to_string(entries.size()) + " tensors are damaged");
  return kGood;
}

}  // namespace

const Command& CkptCommand() {
  static const Command command = {"ckpt",
                                  "verify|list PREFIX",
                                  "Lists the tensors of a checkpoint, and verifies their checksums.",
                                  "PREFIX is the path without .index: `run/model` for `run/model.index`.\n",
                                  {kJsonOption},
                                  2,
                                  2,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
