/* C++17 sugar over the set "variant" (thalweg/plugin/variant.h): objects of a class of the plugin
 * in elements of type variant. Header only; nothing here crosses the boundary.
 *
 *   struct Pair {
 *     float a, b;
 *     static constexpr std::string_view variant_name = "org.example.pair";
 *     uint64_t bytes() const { return sizeof *this; }               // of the object, for the session's memory_limit
 *     Pair plus(const tw_frame*, const Pair& o) const { ... }       // optional: sums, for gradients
 *     Pair zeros(const tw_frame*) const { ... }                     // optional
 *   };
 *   static void swap(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any> y) {
 *     std::unique_ptr<Pair> p = tw::own_or_copy<Pair>(f.f, 0);
 *     std::swap(p->a, p->b);
 *     tw::put(f.f, y.v(), 0, std::move(p));
 *   }
 *
 * Errors: thrown, as in plugin.hpp. Threads: as the C API. */
#ifndef THALWEG_CPP_VARIANT_HPP
#define THALWEG_CPP_VARIANT_HPP
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/variant.h"

namespace tw {
inline namespace TW_CAT(TW_CAT(m, TW_MINOR), TW_CAT(t, THALWEG_TARGET_MINOR)) {

inline const tw_variant_api& variants(const tw_host* h) {
  auto* api = static_cast<const tw_variant_api*>(h->query(h, TW_S(TW_VARIANT_SET), 1));
  if (!api) throw Error{TW_UNIMPLEMENTED, "this runtime offers no variants"};
  return *api;
}

template <class T, class = void>
struct VariantSum {
  static constexpr decltype(tw_variant_type::add) add = nullptr;
};
template <class T>
struct VariantSum<T, std::void_t<decltype(&T::plus)>> {
  static tw_status* add(const tw_frame* f, const void* x, const void* y, void** out, uint64_t* bytes) {
    return guard(f->host, [&] {
      auto sum = std::make_unique<T>(static_cast<const T*>(x)->plus(f, *static_cast<const T*>(y)));
      *bytes = sum->bytes();
      *out = sum.release();
    });
  }
};
template <class T, class = void>
struct VariantZeros {
  static constexpr decltype(tw_variant_type::zeros) zeros = nullptr;
};
template <class T>
struct VariantZeros<T, std::void_t<decltype(&T::zeros)>> {
  static tw_status* zeros(const tw_frame* f, const void* x, void** out, uint64_t* bytes) {
    return guard(f->host, [&] {
      auto zero = std::make_unique<T>(static_cast<const T*>(x)->zeros(f));
      *bytes = zero->bytes();
      *out = zero.release();
    });
  }
};

/* The type of the objects of class T. */
template <class T>
inline constexpr tw_variant_type variant_type = {
    TW_SIZED(tw_variant_type), T::variant_name.data(),
    T::variant_name.size(),    [](const tw_host*, void* object) { delete static_cast<T*>(object); },
    VariantSum<T>::add,        VariantZeros<T>::zeros};

/* Returns the object of element i of a view. */
template <class T>
const T& get(const tw_frame* f, const tw_view* v, uint64_t i = 0) {
  const void* object = nullptr;
  check(variants(f->host).get(f->host, v, i, &variant_type<T>, &object));
  return *static_cast<const T*>(object);
}
/* Returns the object of element i of flat input `in`, for changes: the input's own object if nobody
 * else can see it any more, else a copy. */
template <class T>
std::unique_ptr<T> own_or_copy(const tw_frame* f, uint32_t in, uint64_t i = 0) {
  if (void* object = variants(f->host).own(f, in, i, &variant_type<T>)) return std::unique_ptr<T>(static_cast<T*>(object));
  return std::make_unique<T>(get<T>(f, f->in[in], i));
}
/* Makes element i of an output, or of a tensor of the caller's own, refer to the object. */
template <class T>
void put(const tw_frame* f, const tw_view* to, uint64_t i, std::unique_ptr<T> object) {
  check(variants(f->host).make(f, to, i, &variant_type<T>, object.get(), object->bytes()));
  (void)object.release();
}

/* clang-format off */
}  // the inline namespace
/* clang-format on */
}  // namespace tw
#endif
