#include "host_sink.h"

#include <deque>

namespace thalweg::importer {
namespace {

// A tensor that ends with the scope.
class Held {
 public:
  Held(const tw_host* host, tw_model_builder* to, const Tensor& value) : host_(host) {
    const Dims& dims = value.dims();
    const auto rank = static_cast<uint32_t>(dims.size());
    if (value.dtype() == TW_STRING) {
      Check(host, tw_make_tensor(host, TW_STRING, dims.data(), rank, &tensor_));
      for (size_t i = 0; i < value.strings().size(); ++i) {
        Check(host, host->tensor->set_string(tensor_, i, value.strings()[i].data(), value.strings()[i].size()));
      }
      return;
    }
    tw_import_memory memory = {TW_SIZED(tw_import_memory),
                               dims.data(),
                               value.data(),
                               value.bytes(),
                               value.dtype(),
                               rank,
                               [](void* user) { delete static_cast<Tensor*>(user); },
                               new Tensor(value)};
    Check(host, to->borrow(to, &memory, &tensor_));
  }
  Held(const Held&) = delete;
  ~Held() { host_->tensor->release(tensor_); }
  tw_tensor* get() const { return tensor_; }

 private:
  const tw_host* host_;
  tw_tensor* tensor_ = nullptr;
};

tw_shape ShapeOf(const ShapeAttr& s) { return {s.dims.data(), s.known_rank ? static_cast<int32_t>(s.dims.size()) : -1, 0}; }

// Attributes as the host takes them, with the values that they point to.
class HostAttrs {
 public:
  HostAttrs(const tw_host* host, tw_model_builder* to, const Attrs& attrs) : host_(host), to_(to) {
    for (const Attr& a : attrs) std::visit([&](const auto& v) { Add(a.name, v); }, a.value);
  }
  const std::vector<tw_attr>& all() const { return all_; }

 private:
  void Put(const std::string& name, uint32_t kind, const void* data, size_t count, bool list) {
    all_.push_back({name.data(), name.size(), data, kind, static_cast<uint32_t>(count), list, 0});
  }
  void Add(const std::string& name, const int64_t& v) { Put(name, TW_ATTR_INT, &v, 1, false); }
  void Add(const std::string& name, const double& v) { Put(name, TW_ATTR_FLOAT, &v, 1, false); }
  void Add(const std::string& name, const bool& v) { Put(name, TW_ATTR_BOOL, &numbers_.emplace_back(v), 1, false); }
  void Add(const std::string& name, const std::string& v) {
    Put(name, TW_ATTR_STRING, &texts_.emplace_back(tw_string{v.data(), v.size()}), 1, false);
  }
  void Add(const std::string& name, const Type& v) { Put(name, TW_ATTR_TYPE, &v.dtype, 1, false); }
  void Add(const std::string& name, const ShapeAttr& v) { Put(name, TW_ATTR_SHAPE, &shapes_.emplace_back(ShapeOf(v)), 1, false); }
  void Add(const std::string& name, const Tensor& v) {
    held_.emplace_back(host_, to_, v);
    Put(name, TW_ATTR_TENSOR, &tensors_.emplace_back(held_.back().get()), 1, false);
  }
  void Add(const std::string& name, const Func& v) {
    Put(name, TW_ATTR_FUNC, &texts_.emplace_back(tw_string{v.name.data(), v.name.size()}), 1, false);
  }
  void Add(const std::string& name, const std::vector<int64_t>& v) { Put(name, TW_ATTR_INT, v.data(), v.size(), true); }
  void Add(const std::string& name, const std::vector<double>& v) { Put(name, TW_ATTR_FLOAT, v.data(), v.size(), true); }
  void Add(const std::string& name, const std::vector<Type>& v) {
    static_assert(sizeof(Type) == sizeof(uint32_t));
    Put(name, TW_ATTR_TYPE, v.data(), v.size(), true);
  }
  void Add(const std::string& name, const std::vector<ShapeAttr>& v) {
    auto& list = shape_lists_.emplace_back();
    for (const ShapeAttr& s : v) list.push_back(ShapeOf(s));
    Put(name, TW_ATTR_SHAPE, list.data(), list.size(), true);
  }
  void Add(const std::string& name, const std::vector<std::string>& v) {
    auto& list = text_lists_.emplace_back();
    for (const std::string& s : v) list.push_back({s.data(), s.size()});
    Put(name, TW_ATTR_STRING, list.data(), list.size(), true);
  }

  const tw_host* host_;
  tw_model_builder* to_;
  std::vector<tw_attr> all_;
  std::deque<uint8_t> numbers_;
  std::deque<tw_string> texts_;
  std::deque<tw_shape> shapes_;
  std::deque<Held> held_;
  std::deque<tw_tensor*> tensors_;
  std::deque<std::vector<tw_shape>> shape_lists_;
  std::deque<std::vector<tw_string>> text_lists_;
};

}  // namespace

std::string TextOf(const tw_host* host, const tw_status* status) {
  std::string text;
  tw_sink sink = {TW_SIZED(tw_sink), &text, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
                    static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
                    return nullptr;
                  }};
  host->status->release(host->status->text(status, &sink));
  return text;
}

void Check(const tw_host* host, tw_status* status) {
  if (!status) return;
  Error e{host->status->code(status), TextOf(host, status)};
  host->status->release(status);
  throw e;
}

Edge HostSink::Made(Edge edge) const {
  if (!edge) throw Error{TW_OK, ""};
  return edge;
}

void HostSink::Place(const std::string& text) { to_->place(to_, text.data(), text.size()); }

Edge HostSink::Emit(const std::string& op, const std::string& name, const std::vector<Edge>& inputs, const Attrs& attrs) {
  const HostAttrs all(host_, to_, attrs);
  to_->name(to_, graph_, name.data(), name.size());
  return Made(host_->graph->emit(graph_, op.data(), op.size(), inputs.data(), static_cast<uint32_t>(inputs.size()), all.all().data(),
                                 static_cast<uint32_t>(all.all().size())));
}

Edge HostSink::Output(Edge node, uint32_t i) { return Made(host_->graph->output(graph_, node, i)); }

Edge HostSink::Constant(const Tensor& value, const std::string& name) {
  const Held held(host_, to_, value);
  to_->name(to_, graph_, name.data(), name.size());
  return Made(to_->constant(to_, graph_, held.get()));
}

Edge HostSink::Argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) {
  const tw_shape s = ShapeOf(shape);
  return Made(to_->input(to_, graph_, name.data(), name.size(), dtype, &s));
}

void HostSink::Describe(Edge edge, uint32_t* dtype, ShapeAttr* shape) {
  tw_shape s = {};
  Check(host_, host_->graph->describe(graph_, edge, dtype, &s));
  shape->known_rank = s.rank >= 0;
  shape->dims.clear();
  for (int32_t i = 0; i < s.rank; ++i) shape->dims.push_back(s.dims[i] < 0 ? -1 : s.dims[i]);
}

std::unique_ptr<Sink> HostSink::Body() {
  tw_builder* body = nullptr;
  Check(host_, to_->begin_function(to_, &body));
  return std::make_unique<HostSink>(host_, to_, body);
}

std::string HostSink::Define(const std::string& name, Sink& body, const std::vector<Edge>& args, const std::vector<Edge>& results) {
  const tw_import_function f = {TW_SIZED(tw_import_function),
                                name.data(),
                                name.size(),
                                args.data(),
                                results.data(),
                                nullptr,
                                static_cast<uint32_t>(args.size()),
                                static_cast<uint32_t>(results.size()),
                                0,
                                0};
  tw_string made = {};
  Check(host_, to_->end_function(to_, static_cast<HostSink&>(body).graph_, &f, &made));
  return std::string(made.data, made.size);
}

}  // namespace thalweg::importer
