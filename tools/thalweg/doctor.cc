// thalweg doctor: checks whether this installation works, and suggests a fix for each fault.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "command.h"
#include "handles.h"
#include "json.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

struct Finding {
  enum State { kFine, kWarning, kBad } state;
  std::string what, text, fix;
};

class Report {
 public:
  void Fine(const std::string& what, const std::string& text) { findings_.push_back({Finding::kFine, what, text, ""}); }
  void Warn(const std::string& what, const std::string& text, const std::string& fix) {
    findings_.push_back({Finding::kWarning, what, text, fix});
  }
  void Bad(const std::string& what, const std::string& text, const std::string& fix) {
    findings_.push_back({Finding::kBad, what, text, fix});
  }
  // Runs `check`, which returns a text on success and throws on failure.
  void Try(const std::string& what, const std::string& fix, const std::function<std::string()>& check) {
    try {
      Fine(what, check());
    } catch (const std::exception& e) {
      Bad(what, e.what(), fix);
    }
  }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::vector<Finding> findings_;
};

void CheckPlugins(const tw::Runtime& runtime, Report* report) {
  const Plugins plugins(runtime);
  const tw_plugins* p = plugins.c();
  uint32_t loaded = 0, known = 0;
  for (uint32_t i = 0; i < tw_plugins_count(p); ++i) {
    const uint32_t state = tw_plugins_state(p, i);
    loaded += state == TW_PLUGIN_LOADED;
    known += state == TW_PLUGIN_KNOWN;
    const std::string text = std::string(tw_plugins_path(p, i)) + ": " + tw_plugins_reason(p, i);
    if (state == TW_PLUGIN_FAILED || state == TW_PLUGIN_QUARANTINED) report->Bad("plugin", text, tw_plugins_fix(p, i));
    if (state == TW_PLUGIN_SHADOWED || state == TW_PLUGIN_NOT_ALLOWED) report->Warn("plugin", text, tw_plugins_fix(p, i));
  }
  report->Fine("plugins", std::to_string(loaded) + " loaded, " + std::to_string(known) + " known");
}

// A configured folder that does not exist is the usual reason why a plugin is not found.
void CheckPluginPath(Report* report) {
  const char* variable = secure_getenv("THALWEG_PLUGIN_PATH");
  std::string rest = variable ? variable : "";
  if (rest.compare(0, 5, "only:") == 0) rest = rest.substr(5);
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    rest = colon == rest.npos ? "" : rest.substr(colon + 1);
    if (!folder.empty() && !std::filesystem::exists(folder)) {
      report->Warn("THALWEG_PLUGIN_PATH", "'" + folder + "' does not exist", "correct the variable or make the folder");
    }
  }
}

// Multiplies [1 2; 3 4] by itself on one device.
std::string MultiplyOn(const tw::Runtime& runtime, const char* device) {
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output a = s.constant(tw::Tensor({2, 2}, std::vector<float>{1, 2, 3, 4}));
  const tw_output y = s.op("MatMul", {a, a}, [&](tw_op* op) { tw_op_set_device(op, device); });
  s.finish();
  tw::Session session(graph, {"optimize=false"});  // otherwise a pass could fold the constants on another device
  const std::vector<float> got = session.run({}, {y})[0].values<float>();
  if (got != std::vector<float>{7, 10, 15, 22}) throw std::runtime_error("MatMul gives a wrong result");
  return "multiplies matrices";
}

// Returns true if there is any device.
bool CheckDevices(const tw::Runtime& runtime, Report* report) {
  const Devices devices(runtime);
  const tw_devices* d = devices.c();
  if (tw_devices_count(d) == 0) {
    report->Bad("devices", "no plugin provides a device", "install the CPU plugin beside libthalweg.so; thalweg plugins --why tells more");
  }
  for (uint32_t i = 0; i < tw_devices_count(d); ++i) {
    const std::string name = tw_devices_name(d, i), fix = "update the plugin " + std::string(tw_devices_plugin(d, i)) + " or leave it out";
    const size_t at = name.rfind("device:");
    report->Try(at == name.npos ? name : name.substr(at + 7), fix,
                [&] { return std::string(tw_devices_description(d, i)) + ", " + MultiplyOn(runtime, name.c_str()); });
  }
  return tw_devices_count(d) > 0;
}

// Computes the derivative of x^2 at 3, which needs ops, autodiff and a device.
std::string Differentiate(const tw::Runtime& runtime) {
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_gradient gradient = s.gradients(s.op("Mul", {x, x}), {x})[0];
  s.finish();
  tw::Session session(graph);
  const float got = session.run({{x, tw::Tensor(3.0f)}}, {gradient.values})[0].data<float>()[0];
  if (got != 6) throw std::runtime_error("the derivative of x^2 at 3 comes out as " + std::to_string(got));
  return "d(x^2)/dx is 6 at 3";
}

std::string WriteAndRead() {
  std::string folder = (std::filesystem::temp_directory_path() / "thalweg-doctor-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw std::runtime_error("cannot make a folder in " + std::filesystem::temp_directory_path().string());
  const std::string prefix = folder + "/model";
  const tw::Tensor tensor({3}, std::vector<float>{1, 2, 3});
  std::string failure;
  try {
    const char* name = "x";
    tw_tensor* tensors[] = {tensor.c()};
    tw::raise(tw_checkpoint_write(prefix.c_str(), &name, tensors, 1));
    const Checkpoint checkpoint(prefix);
    tw_tensor* read = nullptr;
    tw::raise(tw_checkpoint_read(checkpoint.c(), name, &read));
    if (tw::Tensor::adopt(read).values<float>() != tensor.values<float>()) failure = "what was read is not what was written";
  } catch (const std::exception& e) {
    failure = e.what();
  }
  std::filesystem::remove_all(folder);
  if (!failure.empty()) throw std::runtime_error(failure);
  return "written, read and compared in " + folder.substr(0, folder.rfind('/'));
}

void Print(const Report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Finding& f : report.findings()) {
    const std::string state = f.state == Finding::kFine      ? Coloured(kGreen, "fine")
                              : f.state == Finding::kWarning ? Coloured(kYellow, "look")
                                                             : Coloured(kRed, "BAD");
    rows.push_back({state, OneLine(f.what), OneLine(f.text + (f.fix.empty() ? "" : "; " + f.fix))});
  }
  std::fputs(Table(rows).c_str(), stdout);
}

void PrintJson(const Report& report) {
  static constexpr const char* kStates[] = {"fine", "warning", "bad"};
  Json json;
  json.Array();
  for (const Finding& f : report.findings()) {
    json.Object().Text("state", kStates[f.state]).Text("what", f.what).Text("text", f.text).Text("fix", f.fix).End();
  }
  std::fputs(json.End().text().c_str(), stdout);
}

int Run(const Args& args) {
  Report report;
  report.Fine("version", std::string(tw_version_string()) + ", plugin ABI draft " + std::to_string(tw_version_plugin_epoch()));
  CheckPluginPath(&report);
  try {
    const tw::Runtime runtime = MakeRuntime(args);
    CheckPlugins(runtime, &report);
    if (CheckDevices(runtime, &report)) {
      report.Try("gradients", "the ops or the CPU plugin are damaged; install again", [&] { return Differentiate(runtime); });
    }
  } catch (const tw::StatusError& e) {
    report.Bad("runtime", e.what(), "see the options below thalweg doctor --help");
  }
  report.Try("checkpoints", "give TMPDIR a folder that can be written to", WriteAndRead);
  args.has("--json") ? PrintJson(report) : Print(report);
  size_t bad = 0;
  for (const Finding& f : report.findings()) bad += f.state == Finding::kBad;
  if (bad > 0) throw std::runtime_error(std::to_string(bad) + (bad == 1 ? " finding is bad" : " findings are bad"));
  return kGood;
}

// Returns the options of runtimes and sessions, from the documentation inside the library.
std::string Details() {
  static constexpr const tw_option* (*kLists[])(uint32_t) = {tw_runtime_option, tw_session_option};
  static constexpr const char* kTitles[] = {"Runtime options (--option, or THALWEG_OPTIONS with `;` between them):\n",
                                            "Session options (--session-option):\n"};
  std::string text;
  for (int list = 0; list < 2; ++list) {
    std::vector<std::vector<std::string>> rows;
    for (uint32_t i = 0; const tw_option* option = kLists[list](i); ++i) {
      const std::string value = option->default_value;
      rows.push_back({"  " + std::string(option->name) + (value.empty() ? "" : "=" + value), option->doc});
    }
    text += kTitles[list] + Table(rows);
  }
  return text;
}

}  // namespace

const Command& DoctorCommand() {
  static const std::string details = Details();
  static const Command command = {"doctor",
                                  "",
                                  "Checks this installation: plugins, devices, gradients, checkpoints.",
                                  details.c_str(),
                                  {kJsonOption, kPluginOption, kRuntimeOption},
                                  0,
                                  0,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
