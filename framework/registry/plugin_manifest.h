// PluginManifest: the description of a plugin that is known without loading it: the contents of its
// descriptor and the registrations of its init. Its text form is kept in a cache and passed between
// processes. Threads: a value.
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
    std::string kind;  // device kind, for a role that serves one kind
  };
  std::string id, version, build;
  uint32_t epoch = 0, floor = 0, target = 0;
  std::vector<std::string> ops, op_roles;
  std::vector<Kernels> kernels;        // of one op and one device kind; sorted by op
  std::vector<std::string> resources;  // types
  std::vector<DeviceKindName> devices;
  std::vector<Role> roles;
  std::vector<std::string> left_out;  // see PluginRecord
};

// Returns true if the plugin has kernels of the op for the kind of device, or for any kind if
// `kind` is empty.
bool HasKernel(const PluginManifest& m, std::string_view op, std::string_view kind = {});
// ALREADY_EXISTS if a kernel is registered twice. Only the first examination of a plugin has the
// time for this check.
Status CheckKernelsOnce(const Registration& r);
PluginManifest ManifestOf(const PluginRecord& record, const tw_plugin& descriptor, const Registration& r);

// Formats one line per item: a word, a space, the value. Ends with the line "end".
std::string ManifestText(const PluginManifest& m);
// Takes a manifest off the front of the text. Returns false if there is none or it is damaged.
bool TakeManifest(std::string_view* text, PluginManifest* m);

// Lines, for texts that contain manifests.

// EscapeLine writes bytes that would end a line, control characters and '%' as %XX. UnescapeLine
// reverses it; it returns false for an invalid text.
std::string EscapeLine(std::string_view text);
bool UnescapeLine(std::string_view text, std::string* out);
// Takes a line off the front and splits off its first word. Returns false at the end or if the line
// is not terminated.
bool TakeLine(std::string_view* text, std::string_view* word, std::string_view* rest);

}  // namespace thalweg
