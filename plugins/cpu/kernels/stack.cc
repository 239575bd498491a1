// The Stack ops: a stack of tensors that one step creates, fills and empties. It can be reached
// only through its handles. Elements stay on the device that made them while there is room.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/register.h"
#include "kernels/tensor_list.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {
namespace {

constexpr char kStack[] = "org.thalweg.stack";

struct Stack {
  std::string name;
  uint32_t dtype = 0;
  int64_t most = -1;  // the largest number of elements; negative: no limit
  bool closed = false;
  std::vector<Kept> elements;
  tw::Holding held;
};

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;
using tw::Var;

Stack& Opened(const Var<Any>& handle, uint32_t dtype) {
  Stack& stack = *static_cast<Stack*>(handle.handle());
  if (stack.closed) Invalid("the stack '" + stack.name + "' is closed");
  if (stack.dtype != dtype) Invalid("the stack '" + stack.name + "' holds " + TypeText(stack.dtype) + ", not " + TypeText(dtype));
  return stack;
}

class StackV2 {
 public:
  explicit StackV2(const tw::Node& n) : name_(n.s("stack_name").empty() ? n.name() : n.s("stack_name")), dtype_(n.type("elem_type")) {}
  void operator()(Frame f, In<int32_t> most) const {
    Stack like{name_, dtype_, most[0], false, {}, {}};
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kStack), nullptr, 0, nullptr, 0};
    const auto make = [](const tw_host* h, void* arg, void** out) {
      return tw::guard(h, [&] { *out = new Stack(*static_cast<const Stack*>(arg)); });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, &like, 0));
  }

 private:
  std::string name_;
  uint32_t dtype_;
};

void Push(Frame f, Var<Any> handle, In<Any> elem, Out<Any>) {
  Stack& stack = Opened(handle, elem.v->dtype);
  if (stack.most >= 0 && stack.elements.size() >= uint64_t(stack.most))
    Invalid("the stack '" + stack.name + "' is full: it has " + std::to_string(stack.elements.size()) + " elements");
  if (stack.elements.size() == stack.elements.capacity()) {
    const size_t room = std::max<size_t>(16, 2 * stack.elements.size());
    stack.held.set(f, (room + stack.elements.size()) * sizeof(Kept));  // during growth the old and the new memory both exist
    stack.elements.reserve(room);
    stack.held.set(f, room * sizeof(Kept));
  }
  stack.elements.push_back(PutAway(f.f, 1));
  GiveTensor(f.f, 0, KeepInput(f.f, 1));
}

void Pop(Frame f, Var<Any> handle, Out<Any>) {
  Stack& stack = Opened(handle, f.f->out[0]->dtype);
  if (stack.elements.empty()) Invalid("the stack '" + stack.name + "' is empty: there is nothing to pop");
  const Kept last = std::move(stack.elements.back());
  stack.elements.pop_back();
  GiveTensor(f.f, 0, Bring(f.f, 0, last));
  // Copies the next element to be popped to the device while the reader of this one runs.
  if (!stack.elements.empty()) stack.elements.back() = Bring(f.f, 0, stack.elements.back());
}

void Close(Var<Any> handle) {
  Stack& stack = *static_cast<Stack*>(handle.handle());
  stack.closed = true;
  std::vector<Kept>().swap(stack.elements);
  stack.held.sub(stack.held.bytes());
}

}  // namespace

void register_stack(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kStack), 1, nullptr, [](const tw_host*, void* object) { delete static_cast<Stack*>(object); },
              nullptr, nullptr});
  p.kernel<StackV2>("StackV2 @CPU; cheap");
  p.kernel<Push>("StackPushV2 @CPU; cheap; update handle; keep elem; gives output; anywhere elem output");
  p.kernel<Pop>("StackPopV2 @CPU; cheap; update handle; gives elem; anywhere elem");
  p.kernel<Close>("StackCloseV2 @CPU; cheap; update handle");
}

}  // namespace thalweg::cpu
