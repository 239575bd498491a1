#include "dnn_graph.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "dnn_values.h"

using namespace dnn_stub;

namespace {

float OfBfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float v;
  std::memcpy(&v, &wide, sizeof v);
  return v;
}
uint16_t ToBfloat16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return v != v ? uint16_t(0x7fc0) : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The tensors of an operation in the order that Compute uses; outputs come last.
struct Form {
  int64_t type;
  std::vector<int64_t> in, out;
};
const std::vector<Form>& Forms() {
  static const std::vector<Form> all = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
       {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC}},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
       {CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, {CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
      {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC},
       {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC}},
      {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC},
       {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC}},
      {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC,
        CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
       {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}},
      {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC,
        CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC},
       {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC}},
  };
  return all;
}
const Form* FormOf(int64_t type) {
  const auto found = std::find_if(Forms().begin(), Forms().end(), [&](const Form& f) { return f.type == type; });
  return found == Forms().end() ? nullptr : &*found;
}

// Returns the number of inputs of a pointwise operation of that mode.
size_t PointwiseInputs(int64_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_RELU_FWD:
    case CUDNN_POINTWISE_GEN_INDEX: return 1;
    case CUDNN_POINTWISE_BINARY_SELECT: return 3;
    default: return 2;
  }
}

int64_t PlaceOf(const DnnStubTensor& t, const Index& i) {
  int64_t at = 0;
  for (size_t k = 0; k < i.size(); ++k) at += i[k] * t.steps[k];
  return at;
}

bool Broadcasts(const Index& from, const Index& to) {
  if (from.size() != to.size()) return false;
  for (size_t k = 0; k < from.size(); ++k)
    if (from[k] != to[k] && from[k] != 1) return false;
  return true;
}

}  // namespace

int64_t DnnStubTensor::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
int64_t DnnStubTensor::reach() const {
  int64_t last = 0;
  for (size_t k = 0; k < dims.size(); ++k) last += (dims[k] - 1) * steps[k];
  return last + 1;
}
size_t DnnStubTensor::element() const { return type == CUDNN_DATA_FLOAT ? 4 : type == CUDNN_DATA_DOUBLE ? 8 : 2; }
double DnnStubTensor::Get(const void* memory, int64_t at) const {
  switch (type) {
    case CUDNN_DATA_FLOAT: return static_cast<const float*>(memory)[at];
    case CUDNN_DATA_DOUBLE: return static_cast<const double*>(memory)[at];
    case CUDNN_DATA_HALF: return double(static_cast<const _Float16*>(memory)[at]);
    default: return OfBfloat16(static_cast<const uint16_t*>(memory)[at]);
  }
}
void DnnStubTensor::Put(void* memory, int64_t at, double value) const {
  switch (type) {
    case CUDNN_DATA_FLOAT: static_cast<float*>(memory)[at] = float(value); break;
    case CUDNN_DATA_DOUBLE: static_cast<double*>(memory)[at] = value; break;
    case CUDNN_DATA_HALF: static_cast<_Float16*>(memory)[at] = static_cast<_Float16>(value); break;
    default: static_cast<uint16_t*>(memory)[at] = ToBfloat16(float(value));
  }
}

bool DnnStubGraph::Makes(int64_t name) const {
  for (const DnnStubOperation& o : operations)
    for (int64_t out : FormOf(o.type)->out)
      if (const auto found = o.tensors.find(out); found != o.tensors.end() && found->second == name) return true;
  return false;
}

std::string DnnStubGraph::Wrong() const {
  std::map<int64_t, bool> made;
  for (const auto& [name, t] : tensors) {
    if (t.dims.size() != t.steps.size() || t.dims.empty()) return "a tensor has not as many steps as axes";
    if (t.is_virtual && t.is_number) return "a tensor is virtual and comes by value";
    if (t.aligned < int64_t(t.element()) || t.aligned & (t.aligned - 1)) return "a tensor's alignment is not one of its elements";
    // Dense in some order: each axis's stride is the size of the axes below it.
    std::vector<std::pair<int64_t, int64_t>> axes;
    for (size_t k = 0; k < t.dims.size(); ++k)
      if (t.dims[k] > 1) axes.emplace_back(t.steps[k], t.dims[k]);
    std::sort(axes.begin(), axes.end());
    int64_t at = 1;
    for (const auto& [step, size] : axes) {
      if (step < at) return "a tensor's elements lie on each other";
      at = step * size;
    }
    made[name] = !t.is_virtual && !Makes(name);
  }
  for (const DnnStubOperation& o : operations) {
    const Form& form = *FormOf(o.type);
    for (const auto& [attribute, name] : o.tensors)
      if (!tensors.count(name)) return "an operation has a tensor that is not there";
    const auto of = [&](int64_t attribute) -> const DnnStubTensor* {
      const auto found = o.tensors.find(attribute);
      return found == o.tensors.end() ? nullptr : &tensors.at(found->second);
    };
    for (size_t k = 0; k < form.in.size(); ++k) {
      const int64_t in = form.in[k];
      const bool pointwise = o.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, wanted = !pointwise || k < PointwiseInputs(o.mode);
      if (!of(in) && wanted) return "an operation lacks a tensor";
      if (of(in) && !wanted) return "an operation has a tensor too many";
      if (of(in) && !made[of(in)->name]) return "an operation reads what none before it made";
    }
    for (int64_t out : form.out) {
      if (!of(out)) return "an operation lacks a result";
      if (of(out)->is_number || made[of(out)->name]) return "a result is made twice, or is an input";
      made[of(out)->name] = true;
    }
    const DnnStubTensor &x = *of(form.in[0]), &y = *of(form.out.back());
    if (o.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      for (int64_t in : form.in)
        if (of(in) && !Broadcasts(of(in)->dims, y.dims)) return "a pointwise operation's inputs do not broadcast";
      const bool selects = o.mode == CUDNN_POINTWISE_BINARY_SELECT, compares = o.mode == CUDNN_POINTWISE_CMP_GE;
      if (selects && of(form.in[2])->type != CUDNN_DATA_BOOLEAN) return "a choice is made by what is no truth value";
      if (compares != (y.type == CUDNN_DATA_BOOLEAN)) return "truth values are not what a comparison makes";
      if ((o.mode == CUDNN_POINTWISE_GEN_INDEX) != (y.type == CUDNN_DATA_INT32)) return "whole numbers are not what counts places makes";
      if (o.axis < 0 || o.axis >= int64_t(y.dims.size())) return "an operation counts along an axis that is not there";
    } else if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      if (x.count() != y.count() || x.reach() != x.count() || y.reach() != y.count()) return "a tensor is not dense, or gets another size";
    } else if (o.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      if (!Broadcasts(y.dims, x.dims)) return "a reduction's result has other axes";
    } else if (o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      const DnnStubTensor& b = *of(form.in[1]);
      const size_t r = x.dims.size();
      if (b.dims.size() != r || y.dims.size() != r || x.dims[r - 1] != b.dims[r - 2] || x.dims[r - 2] != y.dims[r - 2] ||
          b.dims[r - 1] != y.dims[r - 1])
        return "a product's matrices do not fit";
    } else if (!o.window.empty()) {
      const bool forward =
          o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR || o.type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR;
      const bool of_filter = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
      const DnnStubTensor &images = forward || of_filter ? x : y, &results = forward ? y : of_filter ? *of(form.in[1]) : x;
      const bool pool =
          o.type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR || o.type == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
      const Window w(o);
      for (size_t k = 0; k < 2; ++k) {
        const int64_t size = pool ? w.size(k) : (of_filter ? y : *of(form.in[1])).dims[2 + k];
        const int64_t reach = (size - 1) * w.dilation(k) + 1;
        if ((images.dims[2 + k] + w.before(k) + w.after(k) - reach) / w.stride(k) + 1 != results.dims[2 + k])
          return "the results have another size than their windows say";
        if (pool && (w.before(k) >= size || w.after(k) >= size)) return "a window lies beside the image";
      }
      if (images.dims[0] != results.dims[0] || (pool && images.dims[1] != results.dims[1])) return "images and results are not as many";
    } else {  // normalisation
      for (const auto& [attribute, name] : o.tensors)
        if (!Broadcasts(tensors.at(name).dims, x.dims)) return "a normalisation's parameters do not fit its images";
      const bool forward = o.type == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR;
      const DnnStubTensor& mean = *of(forward ? CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC : CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC);
      const DnnStubTensor& inverse =
          *of(forward ? CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC : CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
      if (mean.dims != inverse.dims || mean.steps != inverse.steps || mean.aligned != inverse.aligned)
        return "a normalisation's mean and deviation are not alike";
    }
  }
  return "";
}

std::string DnnStubGraph::Text() const {
  std::ostringstream s;
  const auto list = [&](const std::vector<int64_t>& values) {
    s << values.size() << " ";
    for (int64_t v : values) s << v << " ";
  };
  s << tensors.size() << " ";
  for (const auto& [name, t] : tensors) {
    s << name << " " << t.type << " " << t.aligned << " " << t.is_virtual << " " << t.is_number << " ";
    list(t.dims), list(t.steps);
  }
  s << operations.size() << " ";
  for (const DnnStubOperation& o : operations) {
    s << o.type << " " << o.mode << " " << o.axis << " ";
    list(o.window);
    s << o.tensors.size() << " ";
    for (const auto& [attribute, name] : o.tensors) s << attribute << " " << name << " ";
  }
  return s.str();
}

DnnStubGraph DnnStubGraph::OfText(const std::string& text) {
  std::istringstream s(text);
  const auto number = [&] {
    int64_t v = 0;
    s >> v;
    return v;
  };
  const auto list = [&] {
    std::vector<int64_t> values;
    values.resize(size_t(number()));
    for (int64_t& v : values) v = number();
    return values;
  };
  DnnStubGraph g;
  for (int64_t k = number(); k > 0; --k) {
    DnnStubTensor t;
    t.name = number(), t.type = number(), t.aligned = number(), t.is_virtual = number(), t.is_number = number();
    t.dims = list(), t.steps = list();
    g.tensors[t.name] = t;
  }
  for (int64_t k = number(); k > 0; --k) {
    DnnStubOperation o;
    o.type = number(), o.mode = number(), o.axis = number(), o.window = list();
    for (int64_t n = number(); n > 0; --n) {
      const int64_t attribute = number();
      o.tensors[attribute] = number();
    }
    g.operations.push_back(o);
  }
  return g;
}

void DnnStubGraph::Run(const std::map<int64_t, void*>& memory) const {
  std::map<int64_t, Value> values;
  for (const auto& [name, t] : tensors) {
    Value& v = values[name];
    v.dims = t.dims;
    v.at.assign(size_t(t.count()), 0);
    if (t.is_virtual || Makes(name)) continue;
    ForEach(t.dims, [&](const Index& i) { v(i) = t.Get(memory.at(name), PlaceOf(t, i)); });
  }
  for (const DnnStubOperation& o : operations) {
    const Form& form = *FormOf(o.type);
    if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      const DnnStubTensor &x = tensors.at(o.tensors.at(form.in[0])), &y = tensors.at(o.tensors.at(form.out[0]));
      std::vector<double> lying(size_t(x.count()));
      ForEach(x.dims, [&](const Index& i) { lying[size_t(PlaceOf(x, i))] = values.at(x.name)(i); });
      ForEach(y.dims, [&](const Index& i) { values.at(y.name)(i) = lying[size_t(PlaceOf(y, i))]; });
      continue;
    }
    std::vector<const Value*> in;
    std::vector<Value*> out;
    for (int64_t attribute : form.in) {
      const auto found = o.tensors.find(attribute);
      in.push_back(found == o.tensors.end() ? nullptr : &values.at(found->second));
    }
    for (int64_t attribute : form.out) out.push_back(&values.at(o.tensors.at(attribute)));
    Compute(o, in, out);
  }
  for (const auto& [name, t] : tensors)
    if (!t.is_virtual && Makes(name)) ForEach(t.dims, [&](const Index& i) { t.Put(memory.at(name), PlaceOf(t, i), values.at(name)(i)); });
}
