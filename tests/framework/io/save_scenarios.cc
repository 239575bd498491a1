#include "tests/framework/io/save_scenarios.h"

#include <cstring>
#include <memory>

#include "framework/io/checkpoint.h"
#include "framework/io/checkpointer.h"
#include "framework/io/scheme_files.h"
#include "tests/framework/io/bridged_files.h"

namespace thalweg::test {
namespace {

constexpr char kPrefix[] = "dir/c", kFolder[] = "dir";

// Names and sizes are the same in every version, so that the shapes would not reveal a mix of
// versions.
Tensors Plain(int v) { return {{"w", Floats({7, 5}, float(v))}, {"b", Floats({5}, float(100 + v))}, {"step", Floats({}, float(v))}}; }

Tensors Mixed(int v) {
  Tensors t = Plain(v);
  t["names"] = Strings({v % 2 ? "odd" : "even", "", std::string(300, char('a' + v))});
  t["empty"] = Floats({0, 3}, 0);
  Tensor half = *Tensor::Make(TW_BFLOAT16, Shape({4}));
  std::memset(half.data(), v, half.bytes());
  t["half"] = half;
  return t;
}

Tensors Texts(int v) { return {{"s", Strings({std::string(1000, char('a' + v)), "x"})}, {"t", Strings({std::to_string(v)})}}; }

Tensors Many(int v) {
  Tensors t;
  for (int i = 0; i < 200; ++i) t["layer" + std::to_string(i)] = Floats({3}, float(1000 * v + i));
  return t;
}

NamedTensors Named(const Tensors& t) { return {t.begin(), t.end()}; }

// Writes a third of the values into each part, and "w" in pieces of its rows.
Status WriteParts(const Tensors& values, const std::string& prefix, const std::vector<std::string>& parts, FileSystem& files) {
  for (int p = 0; p < 3; ++p) {
    ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(parts[size_t(p)], files));
    int i = 0;
    for (auto& [name, t] : values) {
      if (name == "w") {
        const int64_t dims[] = {p == 2 ? 3 : 2, 5};
        ASSIGN_OR_RETURN(Tensor rows, Tensor::Make(TW_FLOAT, dims, 2));
        std::memcpy(rows.data(), t.as<float>() + 10 * p, rows.bytes());
        RETURN_IF_ERROR(writer->AddPiece(name, t.shape(), {{2 * p, 0}, {dims[0], -1}}, rows.view()));
      } else if (i++ % 3 == p) {
        RETURN_IF_ERROR(writer->Add(name, t.view()));
      }
    }
    RETURN_IF_ERROR(writer->Commit());
  }
  return MergeCheckpoints(parts, prefix, true, files);
}

using Values = std::function<Tensors(int)>;

// Saves to the same prefix repeatedly. shards: number of shards of each save.
Scenario ToPrefix(std::string name, Values values, std::vector<int32_t> shards) {
  auto start = [values, shards](FileSystem& files) {
    return [values, shards, &files](int v) { return Save(kPrefix, values(v), files, shards[size_t(v)]); };
  };
  return {std::move(name), int(shards.size()), values, start, kPrefix, ""};
}

struct FolderSaves {
  int saves;
  CheckpointKeep keep;
  std::function<int64_t(int)> step;
  std::function<std::optional<double>(int)> metric;
  int32_t shards = 1;
};

Scenario ToFolder(std::string name, Values values, const FolderSaves& how) {
  auto start = [values, how](FileSystem& files) -> std::function<Status(int)> {
    auto opened = CheckpointFolder::Open(kFolder, "m", how.keep, files);
    if (!opened.ok()) return [s = opened.status()](int) { return s; };
    std::shared_ptr<CheckpointFolder> folder = *std::move(opened);
    return [=](int v) {
      const auto metric = how.metric ? how.metric(v) : std::nullopt;
      return folder->Save(how.step ? how.step(v) : 10 * v, metric, 1000.0 * v, Named(values(v)), how.shards).status();
    };
  };
  return {std::move(name), how.saves, values, start, "", kFolder};
}

// Saves two names in turn; each save must not change the files of the other name.
Scenario TwoNames() {
  auto start = [](FileSystem& files) -> std::function<Status(int)> {
    std::vector<std::shared_ptr<CheckpointFolder>> folders;
    for (const char* name : {"m", "other"}) {
      auto opened = CheckpointFolder::Open(kFolder, name, {1, 0, false, 0}, files);
      if (!opened.ok()) return [s = opened.status()](int) { return s; };
      folders.push_back(*std::move(opened));
    }
    return [folders](int v) { return folders[size_t(v % 2)]->Save(v, {}, v, Named(Plain(v))).status(); };
  };
  return {"two names in a folder", 6, Plain, start, "", kFolder};
}

Scenario Background(bool again) {
  auto start = [again](FileSystem& files) -> std::function<Status(int)> {
    CheckpointerOptions options;
    options.background = true;
    options.keep.last = 2;
    auto open = [=, &files] { return Checkpointer::Open(kFolder, "m", options, [](uint32_t, std::string_view) {}, files); };
    auto opened = open();
    if (!opened.ok()) return [s = opened.status()](int) { return s; };
    auto saver = std::make_shared<std::unique_ptr<Checkpointer>>(*std::move(opened));
    return [=](int v) -> Status {
      if (again && v > 0) {  // a new process for each save
        saver->reset();
        ASSIGN_OR_RETURN(*saver, open());
      }
      RETURN_IF_ERROR((*saver)->Save(v, {}, [v]() -> StatusOr<NamedTensors> { return Named(Plain(v)); }));
      return (*saver)->Wait();
    };
  };
  return {again ? "background, a process each" : "background", 4, Plain, start, "", kFolder};
}

Scenario Merging(int saves) {
  auto start = [](FileSystem& files) {
    return [&files](int v) { return WriteParts(Mixed(v), kPrefix, {"dir_temp/part0", "dir_temp/part1", "dir_temp/part2"}, files); };
  };
  return {"merged " + std::to_string(saves), saves, Mixed, start, kPrefix, ""};
}

// Saves like the tasks of a cluster, in any order: each task writes a part beside the checkpoint,
// then one task merges the parts.
Scenario Cluster(int saves, uint32_t last) {
  auto start = [last](FileSystem& files) -> std::function<Status(int)> {
    auto opened = CheckpointFolder::Open(kFolder, "m", {last, 0, false, 0}, files);
    if (!opened.ok()) return [s = opened.status()](int) { return s; };
    std::shared_ptr<CheckpointFolder> folder = *std::move(opened);
    return [folder, &files](int v) {
      auto write = [&](const std::string& prefix) -> StatusOr<uint64_t> {
        std::vector<std::string> parts;
        for (size_t k = 0; k < 3; ++k) parts.push_back(CheckpointPart(prefix, k, 3));
        RETURN_IF_ERROR(WriteParts(Mixed(v), prefix, parts, files));
        return uint64_t{0};
      };
      return folder->SaveBy(10 * v, {}, 1000.0 * v, write).status();
    };
  };
  return {"cluster that keeps " + std::to_string(last), saves, Mixed, start, "", kFolder};
}

// The same, through a plugin's file system interface.
Scenario ThroughPlugin(Scenario scenario) {
  struct Bridged {
    explicit Bridged(FileSystem* below) : files(Bridge(below), &locks) {}
    FolderLocks locks;
    PluginFiles files;
  };
  scenario.name += ", through a plugin";
  scenario.start = [start = scenario.start](FileSystem& files) -> std::function<Status(int)> {
    auto bridged = std::make_shared<Bridged>(&files);
    return [bridged, save = start(bridged->files)](int v) { return save(v); };
  };
  return scenario;
}

}  // namespace

std::vector<Scenario> SaveScenarios(int64_t large) {
  auto big = [large](int v) {
    return Tensors{{"a", Floats({large}, float(v))}, {"b", Floats({3}, 0)}, {"c", Floats({large / 2}, float(v))}};
  };
  auto nothing = [](int) { return Tensors(); };
  auto now_and_then = [](int v) { return v % 2 ? Tensors() : Plain(v); };
  auto falling = [](int v) { return std::optional<double>(10.0 - v); };
  auto jumping = [](int v) { return std::optional<double>(v % 3); };
  CheckpointKeep all{0, 0, false, 0}, one{1, 0, false, 0}, two{2, 0, false, 0}, best{1, 2, false, 0}, least{2, 1, true, 0};
  CheckpointKeep preserve{1, 0, false, 1500};
  return {
      ToPrefix("one prefix", Plain, {1, 1, 1, 1}),
      ToPrefix("every kind of tensor", Mixed, {1, 1, 1}),
      ToPrefix("strings", Texts, {1, 1, 1}),
      ToPrefix("nothing", nothing, {1, 1, 1}),
      ToPrefix("something and nothing", now_and_then, {1, 1, 1, 1}),
      ToPrefix("many", Many, {1, 1}),
      ToPrefix("large", big, {1, 1}),
      ToPrefix("three shards", Mixed, {3, 3, 3}),
      ToPrefix("more shards", Mixed, {1, 2, 3, 4}),
      ToPrefix("fewer shards", Mixed, {4, 2, 1, 1}),
      ToPrefix("shards that double", Mixed, {2, 4, 2, 2}),
      ToPrefix("more shards than tensors", Plain, {6, 6}),
      ToPrefix("large shards", big, {2, 2}),
      Merging(1),
      Merging(3),
      ToFolder("folder that keeps all", Plain, {4, all, {}, {}}),
      ToFolder("folder that keeps one", Plain, {4, one, {}, {}}),
      ToFolder("folder that keeps two", Mixed, {5, two, {}, {}}),
      ToFolder("folder that keeps the best", Plain, {6, best, {}, jumping}),
      ToFolder("folder that keeps the least", Plain, {5, least, {}, falling}),
      ToFolder("folder that preserves", Plain, {5, preserve, {}, {}}),
      ToFolder("folder of shards", Mixed, {4, two, {}, {}, 3}),
      ToFolder("one step again and again", Mixed, {4, two, [](int) { return int64_t(7); }, jumping}),
      ToFolder("steps that go back", Plain, {5, two, [](int v) { return int64_t(50 - 10 * v); }, {}}),
      ToFolder("folder of nothing", nothing, {3, one, {}, {}}),
      TwoNames(),
      Cluster(4, 1),
      Cluster(4, 2),
      Background(false),
      Background(true),
      ThroughPlugin(ToPrefix("every kind of tensor", Mixed, {1, 2, 1})),
      ThroughPlugin(Merging(2)),
      ThroughPlugin(Cluster(3, 2)),
      ThroughPlugin(ToFolder("folder that keeps two", Plain, {4, two, {}, {}})),
  };
}

Status LoadLatest(const Scenario& scenario, FileSystem& files, Tensors* out) {
  if (scenario.folder.empty()) return Load(scenario.prefix, out, files);
  ASSIGN_OR_RETURN(const CheckpointState state, ReadCheckpointState(scenario.folder, files));
  for (const SavedCheckpoint& c : state.all) RETURN_IF_ERROR(Load(scenario.folder + "/" + c.path, out, files));
  RETURN_IF_ERROR(Load(scenario.folder + "/" + state.latest, out, files));
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const auto found, FindCheckpoints(scenario.folder, "", files, &notes));
  return found.empty() || found[0] != scenario.folder + "/" + state.latest ? Internal("the latest is not the first to be tried") : Status();
}

}  // namespace thalweg::test
