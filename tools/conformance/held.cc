#include "tools/conformance/held.h"

#include <algorithm>
#include <atomic>

#include "framework/base/dtype.h"
#include "framework/runtime/state/resource.h"
#include "tools/conformance/kernel_call.h"
#include "tools/conformance/numbers.h"

namespace thalweg::conformance {
namespace {

std::string NewName() {
  static std::atomic<int64_t> names{0};
  return StrCat("held", ++names);
}

}  // namespace

std::vector<const HandleInfo*> InfosOf(const HeldBy& held, size_t n_in, std::vector<HandleInfo>* infos) {
  infos->resize(n_in);
  std::vector<const HandleInfo*> out(n_in, nullptr);
  for (const auto& [i, h] : held) {
    (*infos)[i] = h.info();
    out[i] = &(*infos)[i];
  }
  return out;
}

StatusOr<std::string> Saved(const Resource& resource) {
  std::string bytes;
  tw_sink sink = {TW_SIZED(tw_sink), &bytes, [](tw_sink* to, const void* p, uint64_t n) -> tw_status* {
                    static_cast<std::string*>(to->user)->append(static_cast<const char*>(p), n);
                    return nullptr;
                  }};
  RETURN_IF_ERROR(FromC(resource.def()->def.save(resource.def()->host, resource.object(), &sink)));
  return bytes;
}

State::State(World* world, Device* device, const HeldBy& held) : world_(world), device_(device), held_(held), container_(NewName()) {}

StatusOr<std::unique_ptr<State>> State::Make(World* world, Device* device, const HeldBy& held) {
  std::unique_ptr<State> s(new State(world, device, held));
  for (const auto& [i, h] : held) {
    ASSIGN_OR_RETURN(s->handles_[i], h.maker.empty() ? s->MakeVariable(i, h.value) : s->CallMaker(h));
  }
  return s;
}

StatusOr<Tensor> State::MakeVariable(uint32_t input, const Tensor& value) {
  ASSIGN_OR_RETURN(Tensor handle, Tensor::Make(TW_RESOURCE, nullptr, 0));
  ASSIGN_OR_RETURN(Resource * r, world_->runtime().resources().Open(container_, TW_VARIABLE_TYPE, NewName()));
  handle.as<Handle*>()[0] = r;  // takes the reference
  if (!value) return handle;
  Tensor held = value;
  if (FindDType(value.dtype())->plain) {
    ASSIGN_OR_RETURN(held, Walled(input, value));
  }
  RETURN_IF_ERROR(r->LiveOn(device_));
  r->LockUpdate();
  r->set_value(std::move(held));
  r->UnlockUpdate();
  return handle;
}

StatusOr<Tensor> State::Walled(uint32_t input, const Tensor& value) {
  ASSIGN_OR_RETURN(Place place, Place::Make(*device_, false, value.bytes()));
  RETURN_IF_ERROR(place.Fill(value.data()));
  walls_[input] = std::make_shared<Place>(std::move(place));
  return TensorIn(walls_[input], value.dtype(), value.view().dims, value.rank());
}

StatusOr<Tensor> State::CallMaker(const Held& held) {
  const OpSchema* op = world_->registry().FindOp(held.maker);
  if (!op) return NotFound("there is no op ", held.maker);
  Graph graph(world_->runtime_ptr());
  Status refused = InvalidArgument("an attribute without a default is of a kind that nothing is made up for");
  for (Attrs attrs : AttrSets(*op, held.attrs, 0)) {
    NodeSpec spec;
    spec.op = held.maker;
    spec.name = NewName();
    // Each handle leads to its own resource, even if the op requires a name.
    if (attrs.count("shared_name") && !held.attrs.count("shared_name")) attrs["shared_name"] = AttrValue::String(spec.name);
    if (attrs.count("container") && !held.attrs.count("container")) attrs["container"] = AttrValue::String("");
    spec.attrs = std::move(attrs);
    auto node = graph.AddNode(std::move(spec));
    auto handle = node.ok() ? AskMaker(*node) : StatusOr<Tensor>(node.status());
    if (handle.ok()) return handle;
    refused = handle.status();
  }
  return Prefix(refused, StrCat(held.maker, ":"));
}

StatusOr<Tensor> State::AskMaker(const Node* node) {
  for (Device* device : {device_, world_->DeviceOf("CPU")}) {
    const KernelDef* kernel =
        device ? world_->registry().FindKernel(node->op(), device->kind(), node->types(), node->in_at(), node->out_at(), node->attrs())
               : nullptr;
    if (!kernel) continue;
    CallResult r = CallKernel(world_, node, kernel, device, {});
    RETURN_IF_ERROR(r.status);
    if (!r.outputs[0].as<Handle*>()[0]) return Internal("it answered no handle");
    return r.outputs[0];
  }
  return NotFound("there is no kernel for it");
}

Resource* State::Of(uint32_t input) const { return dynamic_cast<Resource*>(handles_.at(input).as<Handle*>()[0]); }

State::~State() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [i, handle] : handles_) {
    const Resource* r = handle ? Of(i) : nullptr;
    if (r && r->container() != container_) names.emplace_back(r->container(), r->name());
  }
  handles_.clear();  // first, because the store keeps names while a handle to them exists
  world_->runtime().resources().ResetContainer(container_);
  for (const auto& [container, name] : names) (void)world_->runtime().resources().Drop(container, name);
}

std::vector<Tensor> State::WithHandles(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> out = inputs;
  for (const auto& [i, handle] : handles_) out[i] = handle;
  return out;
}

StatusOr<std::vector<Tensor>> State::Contents() const {
  std::vector<Tensor> out;
  for (const auto& [i, handle] : handles_) {
    Resource* r = Of(i);
    r->LockRead();
    auto content = [&]() -> StatusOr<Tensor> {
      if (r->is_variable() && r->value()) return FindDType(r->value().dtype())->plain ? device_->ToHost(r->value()) : r->value();
      if (r->is_variable() || !r->object() || !r->def()->def.save) {
        return TensorOf(TW_BOOL, Shape(nullptr, 0), r->exists() ? [](uint64_t) { return 1.0; } : [](uint64_t) { return 0.0; });
      }
      ASSIGN_OR_RETURN(std::string bytes, Saved(*r));
      ASSIGN_OR_RETURN(Tensor t, Tensor::Make(TW_STRING, nullptr, 0));
      RETURN_IF_ERROR(t.SetString(0, bytes));
      return t;
    }();
    r->UnlockRead();
    RETURN_IF_ERROR(content.status());
    out.push_back(*std::move(content));
  }
  return out;
}

std::string State::Breach(const std::vector<uint32_t>& updated) const {
  for (const auto& [i, place] : walls_) {
    const bool update = std::find(updated.begin(), updated.end(), i) != updated.end();
    auto now = place->Get();
    if (!now.ok()) continue;
    if (std::string changed = place->Changed(*now, !update); !changed.empty()) return StrCat(changed, " that is a variable");
  }
  return "";
}

}  // namespace thalweg::conformance
