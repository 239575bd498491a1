#include "rows.h"

#include <atomic>
#include <cstring>

namespace thalweg::data {
namespace {

constexpr uint64_t kWorthSharing = 256 << 10;  // bytes of a batch from which several threads copy it

void CopyStrings(const Call& c, const tw_view& from, uint64_t first, uint64_t n, const Ref& to, uint64_t at) {
  const auto* s = static_cast<const tw_string*>(from.data) + first;
  for (uint64_t i = 0; i < n; ++i) tw::check(c.host()->tensor->set_string(to.get(), at + i, s[i].data, s[i].size));
}

void CopyPart(const Call& c, const tw_view& from, uint64_t first, uint64_t n, const Ref& to, uint64_t at) {
  if (n == 0) return;
  if (from.dtype == TW_STRING) return CopyStrings(c, from, first, n, to, at);
  if (from.dtype == TW_VARIANT || from.dtype == TW_RESOURCE) {
    return tw::check(tw::variants(c.host()).copy(c.host(), &from, first, &to.view(), at, n));
  }
  const uint64_t each = ElementBytes(from.dtype);
  std::memcpy(static_cast<char*>(to.view().data) + at * each, static_cast<const char*>(from.data) + first * each, n * each);
}

}  // namespace

Ref Row(const Call& c, const tw_view& v, int64_t row) {
  const std::vector<int64_t> dims(v.dims + 1, v.dims + v.rank);
  Ref t = c.Make(v.dtype, dims);
  const uint64_t n = t.view().count;
  CopyPart(c, v, uint64_t(row) * n, n, t, 0);
  return t;
}

void CopyInto(const Call& c, const tw_view& from, const Ref& to, uint64_t at) { CopyPart(c, from, 0, from.count, to, at); }

Ref Stacked(const Call& c, const std::vector<Element>& elements, size_t k) {
  const tw_view& first = elements[0][k].view();
  for (size_t i = 1; i < elements.size(); ++i) {
    const tw_view& v = elements[i][k].view();
    if (v.rank == first.rank && std::equal(v.dims, v.dims + v.rank, first.dims)) continue;
    Invalid("component " + std::to_string(k) + " of the elements of a batch differs in shape: element 0 is " + DimsText(first) +
            ", element " + std::to_string(i) + " is " + DimsText(v) + "; use padded_batch, or give them one shape before the batch");
  }
  std::vector<int64_t> dims = {int64_t(elements.size())};
  dims.insert(dims.end(), first.dims, first.dims + first.rank);
  Ref t = c.Make(first.dtype, dims);
  const uint64_t n = first.count;
  if (ElementBytes(first.dtype) == 0 || t.view().bytes < kWorthSharing) {
    for (size_t i = 0; i < elements.size(); ++i) CopyInto(c, elements[i][k].view(), t, i * n);
    return t;
  }
  c.f.parallel(elements.size(), std::max<uint64_t>(1, (64 << 10) / std::max<uint64_t>(1, first.bytes)), [&](uint64_t b, uint64_t e) {
    for (uint64_t i = b; i < e; ++i) CopyInto(c, elements[i][k].view(), t, i * n);
  });
  return t;
}

}  // namespace thalweg::data
