// Random numbers: the counter-based generators bit by bit as XLA has them, and rng, whose numbers no specification fixes.
#include <algorithm>
#include <iterator>

#include "common.h"

namespace thalweg::stablehlo {
namespace {

Value Word(Translation& t, uint64_t bits) { return Whole(t, TW_UINT32, bits); }
Value Low(Translation& t, const Value& wide) { return t.cast(wide, TW_UINT32); }
Value High(Translation& t, const Value& wide) { return t.cast(t.op("RightShift", {wide, Whole(t, TW_UINT64, 32)}), TW_UINT32); }
Value Joined(Translation& t, const Value& low, const Value& high) {
  return t.op("BitwiseOr", {t.cast(low, TW_UINT64), t.op("LeftShift", {t.cast(high, TW_UINT64), Whole(t, TW_UINT64, 32)})});
}

Value Turned(Translation& t, const Value& x, uint32_t by) {
  return t.op("BitwiseOr", {t.op("LeftShift", {x, Word(t, by)}), t.op("RightShift", {x, Word(t, 32 - by)})});
}

// Threefry-2x32 with 20 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::vector<Value> Threefry(Translation& t, const Value& key_low, const Value& key_high, Value a, Value b) {
  static constexpr uint32_t kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Value keys[3] = {key_low, key_high, t.op("BitwiseXor", {t.op("BitwiseXor", {key_low, key_high}), Word(t, 0x1bd11bda)})};
  a = t.op("AddV2", {a, keys[0]});
  b = t.op("AddV2", {b, keys[1]});
  for (uint32_t group = 0; group < 5; ++group) {
    for (const uint32_t by : kTurns[group % 2]) {
      a = t.op("AddV2", {a, b});
      b = t.op("BitwiseXor", {Turned(t, b, by), a});
    }
    a = t.op("AddV2", {a, keys[(group + 1) % 3]});
    b = t.op("AddV2", {b, t.op("AddV2", {keys[(group + 2) % 3], Word(t, group + 1)})});
  }
  return {a, b};
}

// Philox-4x32 with 10 rounds, of the same paper.
std::vector<Value> Philox(Translation& t, Value key_low, Value key_high, std::vector<Value> c) {
  const auto product = [&](uint64_t factor, const Value& x) { return t.op("Mul", {t.cast(x, TW_UINT64), Whole(t, TW_UINT64, factor)}); };
  for (int round = 0; round < 10; ++round) {
    const Value first = product(0xd2511f53, c[0]), second = product(0xcd9e8d57, c[2]);
    const auto mixed = [&](const Value& wide, const Value& other, const Value& key) {
      return t.op("BitwiseXor", {t.op("BitwiseXor", {High(t, wide), other}), key});
    };
    c = {mixed(second, c[1], key_low), Low(t, second), mixed(first, c[3], key_high), Low(t, first)};
    key_low = t.op("AddV2", {key_low, Word(t, 0x9e3779b9)});
    key_high = t.op("AddV2", {key_high, Word(t, 0xbb67ae85)});
  }
  return c;
}

Value Entry64(Translation& t, const Value& state, int64_t i) { return t.reshape(t.op("Slice", {state, t.ints({i}), t.ints({1})}), Dims{}); }

// 0, 1, ... as uint64.
Value Numbers(Translation& t, int64_t count) { return t.cast(Count(t, Known(t, count)), TW_UINT64); }

// One axis is cut in two halves whose words come from one counter each: the first even one, else the longest.
struct Halves {
  size_t axis = 0;
  Dims half;  // with the axis halved
  int64_t count = 1;
};

Halves HalvesOf(const Dims& dims) {
  Halves h;
  h.half = dims.empty() ? Dims{1} : dims;
  const Dims& d = h.half;
  const auto even = std::find_if(d.begin(), d.end(), [](int64_t size) { return size % 2 == 0; });
  h.axis = static_cast<size_t>((even != d.end() ? even : std::max_element(d.begin(), d.end())) - d.begin());
  h.half[h.axis] = (h.half[h.axis] + 1) / 2;
  h.count = importer::CountOf(h.half);
  return h;
}

void RngBitGenerator(Translation& t, Op& op) {
  const std::string algorithm = op.s("rng_algorithm");
  const Value& given = op.in(0);
  const Type& type = op.out_type(1);
  if (!type.static_shape()) op.unsupported("the number of random bits is unknown here; export the program with that size");
  if (given.dtype() != TW_UINT64 || given.rank() != 1 || given.dim(0) < 2 || given.dim(0) > 3) {
    op.unsupported("the state must be tensor<2xui64> or tensor<3xui64>");
  }
  const Dims& dims = type.dims;
  const uint32_t dtype = op.out_dtype(1);
  const int64_t count = importer::CountOf(dims);
  constexpr int64_t kMostNumbers = int64_t{1} << 40;
  if (count > kMostNumbers)
    op.unsupported(std::to_string(count) + " numbers are asked for; at most " + std::to_string(kMostNumbers) + " are supported");
  const bool wide = BitsOf(dtype) == 64;
  const Value key = Entry64(t, given, 0), counter = Entry64(t, given, 1);
  Value bits, next;
  if (algorithm == "THREE_FRY") {
    const Halves h = HalvesOf(dims);
    const int64_t counters = wide ? count : h.count;
    const Value inputs = t.op("AddV2", {Numbers(t, counters), counter});
    const std::vector<Value> out = Threefry(t, Low(t, key), High(t, key), Low(t, inputs), High(t, inputs));
    if (wide) {
      bits = t.reshape(Joined(t, out[0], out[1]), dims);
    } else {
      // The two words of a counter stand side by side along the halved axis.
      const Value pairs = t.op("Pack", {t.reshape(out[0], h.half), t.reshape(out[1], h.half)}, {{"axis", h.axis + 1}});
      Dims both = h.half;
      both[h.axis] *= 2;
      bits = t.reshape(pairs, both);
      if (!dims.empty() && both != dims) {
        bits = t.op("Slice", {bits, t.ints(std::vector<int64_t>(dims.size(), 0)), t.ints(dims)});
      } else if (dims.empty()) {
        bits = t.reshape(t.op("Slice", {bits, t.ints({0}), t.ints({1})}), Dims{});
      }
    }
    next = t.op("AddV2", {counter, Whole(t, TW_UINT64, static_cast<uint64_t>(counters))});
  } else if (algorithm == "PHILOX" || algorithm == "DEFAULT") {
    // XLA's processors take Philox if the choice is left to them. A counter has four words; without a third entry the key is its upper
    // half.
    const int64_t words = wide ? 2 * count : count, counters = (words + 3) / 4;
    const Value low = t.op("AddV2", {Numbers(t, counters), counter});
    Value high = given.dim(0) == 3 ? Entry64(t, given, 2) : key;
    high = t.op("AddV2", {high, t.cast(t.op("Less", {low, counter}), TW_UINT64)});  // a carry
    const std::vector<Value> out = Philox(t, Low(t, key), High(t, key), {Low(t, low), High(t, low), Low(t, high), High(t, high)});
    const auto flat = [&](const Value& v, int64_t size) { return t.op("Slice", {t.reshape(v, Dims{-1}), t.ints({0}), t.ints({size})}); };
    bits = wide ? flat(t.op("Pack", {Joined(t, out[0], out[1]), Joined(t, out[2], out[3])}, {{"axis", 1}}), count)
                : flat(t.op("Pack", out, {{"axis", 1}}), count);
    bits = t.reshape(bits, dims);
    next = t.op("AddV2", {counter, Whole(t, TW_UINT64, static_cast<uint64_t>(counters))});
  } else {
    op.unsupported("rng_algorithm is '" + algorithm + "'; DEFAULT, THREE_FRY and PHILOX are supported");
  }
  std::vector<Value> state = {t.reshape(key, Dims{1}), t.reshape(next, Dims{1})};
  if (given.dim(0) == 3) {
    const Value carry = t.cast(t.op("Less", {next, counter}), TW_UINT64);
    state.push_back(t.reshape(t.op("AddV2", {Entry64(t, given, 2), carry}), Dims{1}));
  }
  op.out(0, t.concat(state, 0));
  if (IsReal(t.scalar(dtype, 0))) {
    op.out(1, Bits(t, BitsOf(dtype) < 32 ? t.cast(bits, UnsignedOf(dtype)) : bits, dtype));
  } else {
    op.out(1, t.cast(bits, dtype));
  }
}

// Numbers that no specification fixes: uniform in [a, b), or normal with mean a and standard deviation b.
void Rng(Translation& t, Op& op) {
  const std::string distribution = op.s("rng_distribution");
  const Value &a = op.in(0), &b = op.in(1);
  const uint32_t type = op.out_dtype();
  const Value shape = t.cast(op.in(2), TW_INT64);
  const uint32_t drawn = IsReal(a) ? type : uint32_t{TW_DOUBLE};
  if (distribution != "UNIFORM" && distribution != "NORMAL") op.fail("rng_distribution is '" + distribution + "'");
  if (distribution == "NORMAL" && !IsReal(a)) op.fail("normal numbers must be real");
  const Value x = t.op(distribution == "UNIFORM" ? "RandomUniform" : "RandomStandardNormal", {shape}, {{"dtype", Dtype{drawn}}});
  if (distribution == "NORMAL") return op.out(t.shaped(t.op("AddV2", {t.op("Mul", {x, b}), a}), op.out_shape()));
  const Value low = t.cast(a, drawn), high = t.cast(b, drawn);
  Value y = t.op("AddV2", {t.op("Mul", {x, t.op("Sub", {high, low})}), low});
  if (!IsReal(a)) y = type == TW_BOOL ? t.op("GreaterEqual", {x, t.like(x, 0.5)}) : t.cast(t.op("Floor", {y}), type);
  op.out(t.shaped(y, op.out_shape()));
}

constexpr Entry kRandom[] = {
    {"stablehlo.rng", &Rng},
    {"stablehlo.rng_bit_generator", &RngBitGenerator},
};

}  // namespace

Family random_translators() { return {std::begin(kRandom), std::end(kRandom)}; }

}  // namespace thalweg::stablehlo
