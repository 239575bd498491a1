#include "ops/common/shape.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace thalweg::ops {
namespace {

// Broadcasts two sizes; returns false if they do not fit.
bool BroadcastSize(int64_t a, int64_t b, int64_t* out) {
  if (a == 1 || SameSize(a, b))
    *out = b;
  else if (b == 1)
    *out = a;
  else if (Known(a) && Known(b))
    return false;
  else
    *out = Known(a) ? a : Known(b) ? b : -1;  // a known size other than 1 wins: the other size is 1 or equal
  return true;
}

// Broadcasts sizes aligned at the last axis; a missing axis counts as 1. Returns the first axis of
// the result that does not fit, or -1.
int64_t BroadcastDims(const Dims& a, const Dims& b, Dims* out) {
  const size_t rank = std::max(a.size(), b.size());
  out->assign(rank, 1);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t x = k + a.size() < rank ? 1 : a[k + a.size() - rank];
    const int64_t y = k + b.size() < rank ? 1 : b[k + b.size() - rank];
    if (!BroadcastSize(x, y, &(*out)[k])) return static_cast<int64_t>(k);
  }
  return -1;
}

}  // namespace

bool AllKnown(const MaybeDims& dims) { return dims && std::all_of(dims->begin(), dims->end(), Known); }

bool SameShape(const MaybeDims& a, const MaybeDims& b) {
  return a && b && a->size() == b->size() && std::equal(a->begin(), a->end(), b->begin(), SameSize);
}

void Fail(const std::string& text) { throw tw::Error{TW_INVALID_ARGUMENT, text}; }

std::string Text(const MaybeDims& dims) { return dims ? tw::text(dims->data(), static_cast<int32_t>(dims->size())) : "unknown"; }

std::string Text(const Dims& values) {
  std::string s = "[";
  for (size_t k = 0; k < values.size(); ++k) s += (k ? ", " : "") + tw::text(values[k]);
  return s + "]";
}

std::string Text(double value) {
  char text[32];
  const auto single = static_cast<float>(value);
  char* const end = single == value ? std::to_chars(text, std::end(text), single).ptr : std::to_chars(text, std::end(text), value).ptr;
  return {text, end};
}

std::string TypeName(uint32_t type) {
  if (type > TW_REF) return "ref(" + TypeName(type - TW_REF) + ")";
  return type < std::size(tw::dtype_names) ? std::string(tw::dtype_names[type]) : "type " + std::to_string(type);
}

MaybeDims ToDims(const tw_shape& shape) {
  if (shape.rank < 0) return std::nullopt;
  return Dims(shape.dims, shape.dims + shape.rank);
}

MaybeDims In(const tw::Shape& s, uint32_t i) { return ToDims(s.in(i)); }

void Set(const tw::Shape& s, uint32_t o, const MaybeDims& dims) {
  if (dims)
    s.out(o, *dims);
  else
    s.unknown(o);
}

std::optional<int64_t> ScalarValue(const tw::Shape& s, uint32_t i, const char* name) {
  WantScalar(s, i, name);
  Dims v;
  if (!s.value(i, &v) || v.size() != 1) return std::nullopt;
  return v[0];
}

MaybeDims ShapeValue(const tw::Shape& s, uint32_t i, const char* name) {
  WantVector(s, i, name);
  Dims v;
  if (s.value(i, &v)) {
    for (int64_t size : v)
      if (size < 0) Fail("'" + std::string(name) + "' is " + Text(v) + "; sizes must not be negative");
    Product(s, v);
    return v;
  }
  if (!s.known(i) || !Known(s.dim(i, 0))) return std::nullopt;
  return Dims(static_cast<size_t>(s.dim(i, 0)), -1);
}

void WantRank(const tw::Shape& s, uint32_t i, int32_t rank, const char* name) {
  if (!s.known(i) || s.rank(i) == rank) return;
  const std::string want = rank == 0 ? "a scalar" : rank == 1 ? "a vector" : "of rank " + tw::text(rank);
  Fail("'" + std::string(name) + "' must be " + want + " but has shape " + tw::text(s.in(i)));
}

void WantRankAtLeast(const tw::Shape& s, uint32_t i, int32_t rank, const char* name) {
  if (s.known(i) && s.rank(i) < rank)
    Fail("'" + std::string(name) + "' must have at least rank " + tw::text(rank) + " but has shape " + tw::text(s.in(i)));
}

int64_t Axis(int64_t axis, int64_t rank, const char* name) {
  if (axis < -rank || axis >= rank)
    Fail("'" + std::string(name) + "' is " + tw::text(axis) + ", outside [" + tw::text(-rank) + ", " + tw::text(rank) + ") for rank " +
         tw::text(rank));
  return axis < 0 ? axis + rank : axis;
}

int64_t MergeSize(const tw::Shape& s, int64_t a, int64_t b, const std::string& what) {
  if (Known(a) && Known(b) && a != b) Fail(what + " differ: " + tw::text(a) + " and " + tw::text(b));
  return s.calc('=', a, b);
}

MaybeDims Merge(const tw::Shape& s, const MaybeDims& a, const MaybeDims& b, const std::string& what) {
  if (!a) return b;
  if (!b) return a;
  bool fits = a->size() == b->size();
  for (size_t k = 0; fits && k < a->size(); ++k) fits = !Known((*a)[k]) || !Known((*b)[k]) || (*a)[k] == (*b)[k];
  if (!fits) Fail(what + " differ: " + Text(a) + " and " + Text(b));
  Dims out(a->size());
  for (size_t k = 0; k < out.size(); ++k) out[k] = s.calc('=', (*a)[k], (*b)[k]);
  return out;
}

int64_t Product(const tw::Shape& s, const Dims& dims) {
  int64_t n = 1;
  for (int64_t size : dims) {
    if (n == 0 || size == 0 || !Known(n) || !Known(size))
      n = s.calc('*', n, size);
    else if (__builtin_mul_overflow(n, size, &n))
      Fail("the shape " + Text(dims) + " has more than 2^63-1 elements");
  }
  return n;
}

Dims Sub(const Dims& dims, size_t from, size_t to) { return Dims(dims.data() + from, dims.data() + to); }

Dims Join(const Dims& a, const Dims& b) {
  Dims out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

bool Broadcastable(const MaybeDims& a, const MaybeDims& b) {
  Dims out;
  return !a || !b || BroadcastDims(*a, *b, &out) < 0;
}

MaybeDims Broadcast(const MaybeDims& a, const MaybeDims& b) {
  if (!a || !b) return std::nullopt;
  Dims out;
  if (const int64_t axis = BroadcastDims(*a, *b, &out); axis >= 0) {
    const size_t back = out.size() - static_cast<size_t>(axis);
    Fail("shapes " + Text(a) + " and " + Text(b) + " do not broadcast: sizes " + tw::text((*a)[a->size() - back]) + " and " +
         tw::text((*b)[b->size() - back]) + " at axis -" + std::to_string(back) + " are neither equal nor 1");
  }
  return out;
}

void BinaryRule(const tw::Shape& s) { Set(s, 0, Broadcast(In(s, 0), In(s, 1))); }

void SameShapesRule(const tw::Shape& s) {
  MaybeDims out = In(s, 0);
  for (uint32_t i = 1; i < s.c->n_in; ++i)
    out = Merge(s, out, In(s, i), "the inputs must have one shape; shapes of inputs 0 and " + tw::text(i));
  Set(s, 0, out);
}

}  // namespace thalweg::ops
