// Level 5: importers, on files that are no model, and on the author's sample, whole and damaged.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "framework/files/file_system.h"
#include "framework/graph/graph_def.h"
#include "framework/model/loaded_model.h"
#include "framework/model/model_source.h"
#include "framework/runtime/host/host_table.h"
#include "tools/conformance/levels.h"

namespace thalweg::conformance {
namespace {

constexpr size_t kLargestSample = 1 << 20;  // of a sample that is damaged byte by byte

std::string ReadAll(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Contents that are no model, among them the first bytes of other formats.
std::vector<std::string> NoModels() {
  std::string noise(5000, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = char((state = state * 1664525 + 1013904223) >> 24);
  return {"", std::string(1, '\0'), std::string(5000, '\0'), noise, "PK\x03\x04", "#!/bin/sh\nexit 1\n", std::string(5000, '\xff')};
}

class Importer {
 public:
  Importer(const ImporterRole& role, World& world, const Run& run) : role_(role), world_(world), run_(run) {}

  // Asks twice; a failure if the answers differ.
  StatusOr<uint32_t> Confidence(const std::string& path) {
    ASSIGN_OR_RETURN(const auto source, ModelSource::Open(path, &LocalFiles()));
    const auto host = ConfinedHost(role_.host, source->files());
    uint32_t answers[2] = {};
    for (uint32_t& answer : answers) {
      const Status s = FromC(role_.def.recognise(host.get(), role_.def.user, source->c(), &answer));
      if (!s.ok()) answer = 0;
    }
    if (answers[0] != answers[1]) return Internal("the second answer for one source is ", answers[1], ", the first was ", answers[0]);
    if (answers[0] > 100) return Internal("the answer is ", answers[0], ", more than 100");
    return answers[0];
  }
  StatusOr<LoadedModel> Load(const std::string& path) {
    LoadOptions options;
    options.importer = role_.name;
    options.max_operations = 1 << 16;
    return LoadModel(world_.runtime_ptr(), path, options);
  }
  std::string Write(const std::string& bytes) {
    const std::string path = run_.options().folder + "/" + role_.name + ".model";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }
  // The author's sample; "" if --at names none that the importer recognises.
  std::string Sample() {
    const std::string& at = run_.options().at;
    const auto sure = at.empty() ? StatusOr<uint32_t>(0u) : Confidence(at);
    return sure.ok() && *sure > 0 ? at : "";
  }

 private:
  const ImporterRole& role_;
  World& world_;
  const Run& run_;
};

Outcome RecognisesTheSame(Importer importer) {
  for (const std::string& bytes : NoModels()) {
    At(StrCat("recognising ", bytes.size(), " bytes that are no model"));
    RETURN_IF_ERROR(importer.Confidence(importer.Write(bytes)).status());
  }
  At("recognising a folder without a model");
  RETURN_IF_ERROR(importer.Confidence("/").status());
  if (const std::string sample = importer.Sample(); !sample.empty()) RETURN_IF_ERROR(importer.Confidence(sample).status());
  return {};
}

Outcome RefusesWhatIsNoModel(Importer importer, bool full) {
  for (const std::string& bytes : NoModels()) {
    const std::string path = importer.Write(bytes);
    ASSIGN_OR_RETURN(const uint32_t sure, importer.Confidence(path));
    At(StrCat("loading ", bytes.size(), " bytes that are no model"));
    const auto loaded = importer.Load(path);
    if (sure == 0 && loaded.ok()) return Fail("load made a model of ", bytes.size(), " bytes for which recognise answers 0");
  }
  const std::string sample = importer.Sample();
  const std::string bytes = sample.empty() ? "" : ReadAll(sample);
  if (bytes.empty() || bytes.size() > kLargestSample) return {};
  const size_t tries = full ? 2000 : 100;
  for (size_t i = 0; i < tries; ++i) {
    std::string damaged = bytes.substr(0, i % 2 ? bytes.size() : bytes.size() * i / tries);
    if (i % 2) damaged[bytes.size() * i / tries] = char(~damaged[bytes.size() * i / tries]);
    At(StrCat("loading the sample ", i % 2 ? "with another byte " : "cut at byte ", bytes.size() * i / tries));
    (void)importer.Load(importer.Write(damaged));  // an error, or a model: but no crash, and no hang
  }
  return {};
}

Outcome LoadsTheSame(Importer importer) {
  const std::string sample = importer.Sample();
  if (sample.empty()) return Skip("no sample; name a file that the importer can load with --at FILE");
  std::string graphs[2];
  size_t signatures[2] = {};
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const LoadedModel model, importer.Load(sample));
    ASSIGN_OR_RETURN(graphs[i], ExportGraphDef(*model.graph));
    signatures[i] = model.signatures.size();
    for (const ModelStep& step : model.steps) {
      if (step.feeds.size() != step.values.size()) return Fail("a step has other numbers of feeds and values");
    }
  }
  if (graphs[0] != graphs[1] || signatures[0] != signatures[1]) return Fail("the second load of one file made another graph");
  return {};
}

}  // namespace

void CheckImporters(Run& run, World& world) {
  for (const auto& role : world.registry().RolesOf<ImporterRole>()) {
    if (role->plugin != world.id()) continue;
    const bool full = run.options().full;
    run.Check(581, role->name, [&] { return RecognisesTheSame({*role, world, run}); });
    run.Check(582, role->name, [&] { return RefusesWhatIsNoModel({*role, world, run}, full); });
    run.Check(583, role->name, [&] { return LoadsTheSame({*role, world, run}); });
  }
}

}  // namespace thalweg::conformance
