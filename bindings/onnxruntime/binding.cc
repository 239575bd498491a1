// Inputs and outputs that are bound to a session before it runs. Threads: a binding is used by one at a time.
#include <cstring>

#include "session.h"

struct OrtIoBinding {
  struct Bound {
    std::string name;
    std::shared_ptr<OrtValue> value;  // shares the memory of the client's value; NULL for an output that no run has made
    bool allocate = false;            // an output that each run makes
  };
  OrtSession* session = nullptr;
  std::vector<Bound> inputs, outputs;
};

namespace thalweg::ort {
namespace {

OrtIoBinding::Bound& Entry(std::vector<OrtIoBinding::Bound>* bound, const std::string& name) {
  for (OrtIoBinding::Bound& b : *bound) {
    if (b.name == name) return b;
  }
  bound->push_back({name, nullptr, false});
  return bound->back();
}

}  // namespace

namespace api {

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) {
  return Guard(__func__, [&] {
    OrtIoBinding*& made = Result(out);
    made = new OrtIoBinding{Need(session, "session"), {}, {}};
  });
}
void ReleaseIoBinding(OrtIoBinding* binding) { delete binding; }

OrtStatus* BindInput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return Guard(__func__, [&] {
    if (Need(binding, "binding_ptr")->session->input_index.count(Need(name, "name")) == 0) {
      Fail(ORT_INVALID_ARGUMENT, "the model has no input '", name, "'");
    }
    Entry(&binding->inputs, name).value = std::make_shared<OrtValue>(*Need(value, "val_ptr"));
  });
}
// The name of an output is looked up when the binding runs, as ONNX Runtime does.
OrtStatus* BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return Guard(__func__, [&] {
    Need(binding, "binding_ptr");
    Need(name, "name");
    auto shared = std::make_shared<OrtValue>(*Need(value, "val_ptr"));
    OrtIoBinding::Bound& bound = Entry(&binding->outputs, name);
    bound.value = std::move(shared);
    bound.allocate = false;
  });
}
OrtStatus* BindOutputToDevice(OrtIoBinding* binding, const char* name, const OrtMemoryInfo* info) {
  return Guard(__func__, [&] {
    Need(binding, "binding_ptr");
    Need(name, "name");
    CheckHost(info);
    OrtIoBinding::Bound& bound = Entry(&binding->outputs, name);
    bound.value = nullptr;
    bound.allocate = true;
  });
}
void ClearBoundInputs(OrtIoBinding* binding) {
  if (binding) binding->inputs.clear();
}
void ClearBoundOutputs(OrtIoBinding* binding) {
  if (binding) binding->outputs.clear();
}
// All memory is the machine's, and a run has ended when it returns.
OrtStatus* SynchronizeBoundInputs(OrtIoBinding* binding) {
  return Guard(__func__, [&] { Need(binding, "binding_ptr"); });
}
OrtStatus* SynchronizeBoundOutputs(OrtIoBinding* binding) {
  return Guard(__func__, [&] { Need(binding, "binding_ptr"); });
}

// A binding is const here because the client's pointers to it stay; its outputs change.
OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* options, const OrtIoBinding* binding) {
  return Guard(__func__, [&] {
    Need(session, "session");
    if (Need(binding, "binding_ptr")->session != session) Fail(ORT_INVALID_ARGUMENT, "the binding is of another session");
    Step step(session, options);
    for (const auto& b : binding->inputs) step.Feed(b.name, b.value.get());
    std::vector<OrtValue*> given;
    for (const auto& b : binding->outputs) {
      step.Fetch(b.name);
      given.push_back(b.allocate ? nullptr : b.value.get());
    }
    std::vector<ValueRef> values = step.Run(given.data());
    auto& outputs = const_cast<OrtIoBinding*>(binding)->outputs;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) outputs[i].value = std::move(values[i]);
    }
  });
}

// The names of the bound outputs in a row, without zero bytes, and their lengths.
OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding, OrtAllocator* allocator, char** names, size_t** lengths, size_t* count) {
  return Guard(__func__, [&] {
    Result(names, "buffer");
    Result(lengths, "lengths");
    Result(count, "count");
    Need(binding, "binding_ptr");
    if (binding->outputs.empty()) return;
    std::string text;
    for (const auto& b : binding->outputs) text += b.name;
    Allocated bytes(allocator, text.size()), numbers(allocator, binding->outputs.size() * sizeof(size_t));
    std::memcpy(bytes.data(), text.data(), text.size());
    size_t* const to = static_cast<size_t*>(numbers.data());
    for (size_t i = 0; i < binding->outputs.size(); ++i) to[i] = binding->outputs[i].name.size();
    *count = binding->outputs.size();
    numbers.give();
    *lengths = to;
    *names = static_cast<char*>(bytes.give());
  });
}

OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding, OrtAllocator* allocator, OrtValue*** out, size_t* count) {
  return Guard(__func__, [&] {
    Result(out, "output");
    Result(count, "output_count");
    Need(binding, "binding_ptr");
    if (binding->outputs.empty()) return;
    std::vector<ValueRef> values;
    for (const auto& b : binding->outputs) {
      if (!b.value) Fail(ORT_INVALID_ARGUMENT, "output '", b.name, "' has no value yet; call RunWithBinding first");
      values.push_back(std::make_unique<OrtValue>(*b.value));
    }
    OrtValue** const list = static_cast<OrtValue**>(Allocate(allocator, values.size() * sizeof(OrtValue*)));
    for (size_t i = 0; i < values.size(); ++i) list[i] = values[i].release();
    *count = values.size();
    *out = list;
  });
}

}  // namespace api
}  // namespace thalweg::ort
