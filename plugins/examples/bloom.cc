// A plugin's own resource in C++: a Bloom filter (Bloom, 1970), which tells whether a key may have
// been inserted. It is never wrong about an inserted key. It is rarely wrong about others, and more
// rarely the more bits it has. Needs only the public headers:
//
//     c++ -std=c++17 -shared -fPIC -I<prefix>/include -Wl,--version-script=<prefix>/include/thalweg/plugin.map bloom.cc -o libbloom.so
//
// BloomFilter makes the filter and a handle to it. BloomInsert and BloomContains use it under the
// host's locks. With Save and Restore below, savers store it in checkpoints beside a program's
// variables.
#include "thalweg/cpp/plugin.hpp"

namespace {

constexpr char kType[] = "org.example.bloom.filter";
constexpr uint64_t kFormat = 1;

struct Filter {
  uint64_t hashes;
  std::vector<uint64_t> words;

  // Returns the k-th place of a key with hash h. Two halves of one hash make any number of places
  // (Kirsch and Mitzenmacher, 2006).
  uint64_t Place(uint64_t h, uint64_t k) const { return ((h >> 32) + k * (h | 1)) % (words.size() * 64); }
  void Insert(uint64_t h) {
    for (uint64_t k = 0; k < hashes; ++k) words[Place(h, k) / 64] |= uint64_t{1} << Place(h, k) % 64;
  }
  bool Contains(uint64_t h) const {
    for (uint64_t k = 0; k < hashes; ++k) {
      if (!(words[Place(h, k) / 64] >> Place(h, k) % 64 & 1)) return false;
    }
    return true;
  }
};

// The finalizer of SplitMix64: every bit of the result depends on every bit of x.
uint64_t Mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
uint64_t Hash(int64_t key) { return Mixed(uint64_t(key) + 0x9e3779b97f4a7c15); }
uint64_t Hash(int32_t key) { return Hash(int64_t(key)); }
uint64_t Hash(const tw_string& key) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < key.size; ++i) h = (h ^ static_cast<unsigned char>(key.data[i])) * 0x100000001b3;
  return Mixed(h);
}

// ---- As bytes: the number of hashes, then the words, 8 bytes each, lowest first ----

void AddNumber(std::string* bytes, uint64_t n) {
  for (int i = 0; i < 8; ++i) *bytes += char(n >> 8 * i);
}
uint64_t NumberAt(std::string_view bytes, size_t at) {
  uint64_t n = 0;
  for (int i = 0; i < 8; ++i) n |= uint64_t(static_cast<unsigned char>(bytes[at + size_t(i)])) << 8 * i;
  return n;
}
std::string ToBytes(const Filter& f) {
  std::string bytes;
  AddNumber(&bytes, f.hashes);
  for (uint64_t word : f.words) AddNumber(&bytes, word);
  return bytes;
}
// Checks the contents of a file, which may be any bytes.
std::unique_ptr<Filter> FromBytes(std::string_view bytes) {
  const uint64_t hashes = bytes.size() < 16 || bytes.size() % 8 ? 0 : NumberAt(bytes, 0);
  if (hashes < 1 || hashes > 64) throw tw::Error{TW_DATA_LOSS, "these " + std::to_string(bytes.size()) + " bytes are no Bloom filter"};
  auto filter = std::make_unique<Filter>(Filter{hashes, {}});
  for (size_t at = 8; at < bytes.size(); at += 8) filter->words.push_back(NumberAt(bytes, at));
  return filter;
}

// ---- The resource type ----

void Destroy(const tw_host*, void* object) { delete static_cast<Filter*>(object); }
tw_status* Save(const tw_host* h, const void* object, tw_sink* to) {
  return tw::guard(h, [&] {
    const std::string bytes = ToBytes(*static_cast<const Filter*>(object));
    tw::check(to->put(to, bytes.data(), bytes.size()));
  });
}
tw_status* Restore(const tw_host* h, void*, uint64_t format, tw_source* from, void** out_object) {
  return tw::guard(h, [&] {
    if (format != kFormat) throw tw::Error{TW_UNIMPLEMENTED, "there is no format " + std::to_string(format) + " of Bloom filters"};
    std::string bytes;
    char part[4096];
    for (uint64_t n = 1; n > 0; bytes.append(part, n)) tw::check(from->get(from, part, sizeof part, &n));
    *out_object = FromBytes(bytes).release();
  });
}

// ---- Kernels ----

// Makes the filter when the first step asks for its handle.
struct Make {
  std::string container, name;
  uint64_t hashes, words;
  explicit Make(const tw::Node& n)
      : container(n.s("container")),
        name(n.s("shared_name").empty() ? n.name() : n.s("shared_name")),
        hashes(uint64_t(n.i("hashes"))),
        words((uint64_t(n.i("bits")) + 63) / 64) {
    if (n.i("bits") > int64_t{1} << 40) throw tw::Error{TW_INVALID_ARGUMENT, "bits = " + tw::text(n.i("bits")) + " is more than 2^40"};
    if (hashes > 64) throw tw::Error{TW_INVALID_ARGUMENT, "hashes = " + tw::text(n.i("hashes")) + " is more than 64"};
  }
  void operator()(tw::Frame f) const {
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kType), container.data(), container.size(), name.data(), name.size()};
    const auto make = [](const tw_host* h, void* arg, void** out) {
      const Make* self = static_cast<const Make*>(arg);
      return tw::guard(h, [&] { *out = new Filter{self->hashes, std::vector<uint64_t>(self->words)}; });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, const_cast<Make*>(this), 0));
  }
};

// With `update` and `read` in the specs below, the host holds the lock, and the slot gives the
// object. The host itself refuses handles of a type other than the one that the schemas name with
// `resource`.
Filter& Opened(tw::Var<tw::Any> filter) { return *static_cast<Filter*>(filter.handle()); }

template <class T>
void Insert(tw::Var<tw::Any> filter, tw::In<T> keys) {
  for (uint64_t i = 0; i < keys.size(); ++i) Opened(filter).Insert(Hash(keys[i]));
}
template <class T>
void Contains(tw::Var<tw::Any> filter, tw::In<T> keys, tw::Out<bool> found) {
  for (uint64_t i = 0; i < keys.size(); ++i) found[i] = Opened(filter).Contains(Hash(keys[i]));
}

}  // namespace

TW_CPP_PLUGIN("org.example.bloom", "1.0", p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), kFormat, nullptr, Destroy, Save, Restore});
  p.op(R"(BloomFilter() -> (filter: resource[]); bits: int >= 1 = 65536; hashes: int >= 1 = 4; container: string = "";
          shared_name: string = ""; stateful; once; resource filter org.example.bloom.filter; no_gradient "it has no inputs";
          doc "a handle to the Bloom filter of that name")");
  p.op(R"(BloomInsert(filter: resource[], keys: T) -> (); T: {int32, int64, string}; stateful; resource filter org.example.bloom.filter;
          no_gradient "it has no outputs"; doc "inserts all keys")");
  p.op(R"(BloomContains(filter: resource[], keys: T[*s]) -> (found: bool[*s]); T: {int32, int64, string}; stateful;
          resource filter org.example.bloom.filter; no_gradient "truth values have no derivative";
          doc "whether each key may have been inserted")");
  p.kernel<Make>("BloomFilter @CPU");
  p.kernel<Insert<int32_t>, Insert<int64_t>, Insert<tw_string>>("BloomInsert @CPU; update filter");
  p.kernel<Contains<int32_t>, Contains<int64_t>, Contains<tw_string>>("BloomContains @CPU; read filter");
}
