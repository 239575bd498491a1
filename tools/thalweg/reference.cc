#include "reference.h"

#include <cmath>
#include <cstdio>

#include "feed.h"
#include "handles.h"
#include "utf8.h"
#include "words.h"

namespace thalweg::cli {
namespace {

constexpr double kRelative = 1e-4, kAbsolute = 1e-5;

struct Tolerance {
  double relative, absolute;
};

struct Found {
  bool equal = true;
  uint64_t differing = 0, first = 0;  // the number of elements out of tolerance, and the first one
  double largest = 0;                 // the largest difference
};

// NaN equals NaN, and an infinity itself.
void Compare(double got, double expected, const Tolerance& t, uint64_t i, Found* found) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return;
  const double error = std::abs(got - expected);
  if (!(error <= found->largest)) found->largest = error;
  if (std::isfinite(error) && error <= t.absolute + t.relative * std::abs(expected)) return;
  if (found->differing++ == 0) found->first = i;
  found->equal = false;
}

bool IsComplex(uint32_t dtype) { return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128; }

Found CompareNumbers(const tw::Runtime& runtime, const tw::Tensor& got, const tw::Tensor& expected, const Tolerance& t) {
  Found found;
  const uint32_t type = IsComplex(expected.dtype()) ? TW_COMPLEX128 : TW_DOUBLE;
  const tw::Tensor a = Cast(runtime, got, type), b = Cast(runtime, expected, type);
  const auto *x = static_cast<const double*>(tw_tensor_data(a.c())), *y = static_cast<const double*>(tw_tensor_data(b.c()));
  const uint64_t parts = IsComplex(type) ? 2 : 1, n = tw_tensor_count(a.c()) * parts;
  for (uint64_t i = 0; i < n; ++i) Compare(x[i], y[i], t, i / parts, &found);
  return found;
}

// Texts and whole numbers, which a double may not hold.
Found CompareTexts(const tw::Tensor& got, const tw::Tensor& expected) {
  Found found;
  const std::vector<std::string> a = ElementTexts(got), b = ElementTexts(expected);
  for (uint64_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (found.differing++ == 0) found.first = i;
    found.equal = false;
  }
  return found;
}

bool IsFloating(uint32_t dtype) {
  return IsComplex(dtype) || dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16;
}

std::string DimsOf(const tw::Tensor& t) {
  std::string text;
  for (int64_t dim : t.dims()) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return DTypeText(t.dtype()) + " [" + text + "]";
}

bool CheckOne(const tw::Runtime& runtime, const std::string& name, const tw::Tensor& got, const tw::Tensor& expected, const Tolerance& t) {
  const std::string shown = OneLine(name);
  if (got.dtype() != expected.dtype() || got.dims() != expected.dims()) {
    std::printf("%s: differs: it is %s, expected is %s\n", shown.c_str(), DimsOf(got).c_str(), DimsOf(expected).c_str());
    return false;
  }
  const bool numbers = IsFloating(got.dtype());
  const Found found = numbers ? CompareNumbers(runtime, got, expected, t) : CompareTexts(got, expected);
  if (found.equal) {
    std::printf("%s: equal", shown.c_str());
    if (numbers) std::printf(", largest difference %.2g", found.largest);
    std::printf("\n");
    return true;
  }
  std::printf("%s: differs at %llu of %llu elements", shown.c_str(), static_cast<unsigned long long>(found.differing),
              static_cast<unsigned long long>(tw_tensor_count(got.c())));
  if (numbers) std::printf(", by %.2g at most", found.largest);
  std::printf("; element %llu is %s, expected is %s\n", static_cast<unsigned long long>(found.first),
              OneLine(ElementTexts(got)[found.first]).c_str(), OneLine(ElementTexts(expected)[found.first]).c_str());
  return false;
}

}  // namespace

bool CheckReference(const Args& args, const tw::Runtime& runtime, const Signature& signature) {
  if (!args.has("--check")) {
    if (args.has("--rtol") || args.has("--atol")) throw UsageError{"--rtol and --atol are for --check"};
    return true;
  }
  const Tolerance tolerance{args.number("--rtol", kRelative, 0), args.number("--atol", kAbsolute, 0)};
  const auto expected = ReadArchive(args.get("--check"));
  if (expected.empty()) throw std::runtime_error("'" + args.get("--check") + "' has no arrays to compare with");
  bool good = true;
  for (const auto& [name, array] : expected) {
    const Value* found = nullptr;
    std::string names;
    for (const Value& fetch : signature.fetches) {
      if (fetch.name == name) found = &fetch;
      names += (names.empty() ? "'" : ", '") + OneLine(fetch.name) + "'";
    }
    if (!found)
      throw std::runtime_error("'" + args.get("--check") + "' has an array '" + OneLine(name) +
                               "', which is not fetched; fetched: " + names);
    good &= CheckOne(runtime, name, found->tensor, array, tolerance);
  }
  return good;
}

std::vector<Option> ReferenceOptions() {
  return {{"--check", "FILE.npz", "compare what is fetched with the arrays of these names; the exit status is 1 if one differs"},
          {"--rtol", "X", "of --check: how far a number may be off, relative to the expected one; 1e-4"},
          {"--atol", "X", "of --check: what is added to that; 1e-5"}};
}

}  // namespace thalweg::cli
