// What is known of a plugin without loading it: what its descriptor says and what its init registers, as text that is kept in a cache and
// handed from one process to another.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/registry/plugin_record.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

struct PluginManifest {
  struct Kernels {
    std::string op, kind;
    uint32_t count = 0;
  };
  struct Role {
    std::string name;  // "file_system mem"
    std::string kind;  // of devices, where it works for one kind
  };
  std::string id, version, build;
  uint32_t epoch = 0, floor = 0, target = 0;
  std::vector<std::string> ops, op_roles;
  std::vector<Kernels> kernels;        // of an op, for one kind of device; sorted by op
  std::vector<std::string> resources;  // types
  std::vector<DeviceKindName> devices;
  std::vector<Role> roles;
};

// Whether it has kernels of the op, for that kind of device or, without a kind, for any.
bool HasKernel(const PluginManifest& m, std::string_view op, std::string_view kind = {});
// ALREADY_EXISTS for a kernel that was registered twice: the first look at a plugin has the time to find it.
Status CheckKernelsOnce(const Registration& r);
PluginManifest ManifestOf(const PluginRecord& record, const tw_plugin& descriptor, const Registration& r);

// One line for each thing: a word, a space, the rest. Ends with the line "end".
std::string ManifestText(const PluginManifest& m);
// Takes a manifest off the front of the text; false if there is none, or a damaged one.
bool TakeManifest(std::string_view* text, PluginManifest* m);

// ---- Lines, for whoever puts manifests into something larger ----

// Bytes that would end a line, and the sign that spells them, as %XX; back, false for what is no such text.
std::string EscapeLine(std::string_view text);
bool UnescapeLine(std::string_view text, std::string* out);
// Takes a line off the front, and its first word; false at the end, or without a line end.
bool TakeLine(std::string_view* text, std::string_view* word, std::string_view* rest);

}  // namespace thalweg
