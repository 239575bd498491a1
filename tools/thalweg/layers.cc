#include "layers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace thalweg::cli {
namespace {

constexpr double kGap = 18, kLane = 12;             // between boxes; beside an arrow that passes a layer
constexpr double kLayerGap = 40, kWidestGap = 140;  // between layers: wider if arrows go far to the side
constexpr int kSweeps = 16;

// A box, or the point at which an arrow passes a layer.
struct Item {
  double width = 0, x = 0;
  size_t layer = 0, place = 0;  // place: position within the layer
  bool lane = false;
  std::vector<size_t> above, below;  // items of the neighbouring layers
};

class Layering {
 public:
  explicit Layering(Layout* layout) : l_(*layout), n_(layout->boxes.size()) {}

  void Run() {
    if (n_ == 0) return;
    TurnCycles();
    ChooseLayers();
    AddItems();
    OrderLayers();
    PlaceItems();
    PlaceBoxes();
  }

 private:
  // Depth first; an arrow to a box that is still being visited closes a cycle.
  void TurnCycles() {
    std::vector<std::vector<size_t>> out(n_);
    for (size_t e = 0; e < l_.arrows.size(); ++e) out[l_.arrows[e].from].push_back(e);
    std::vector<int> state(n_);  // 0: new, 1: being visited, 2: done
    std::vector<std::pair<size_t, size_t>> path;
    for (size_t root = 0; root < n_; ++root) {
      if (state[root] == 0) path.emplace_back(root, 0);
      state[root] = std::max(state[root], 1);
      while (!path.empty()) {
        auto& [box, next] = path.back();
        if (next == out[box].size()) {
          state[box] = 2;
          path.pop_back();
          continue;
        }
        LayoutArrow& arrow = l_.arrows[out[box][next++]];
        if (arrow.from == arrow.to) continue;
        arrow.upwards = state[arrow.to] == 1;
        if (state[arrow.to] != 0) continue;
        state[arrow.to] = 1;
        path.emplace_back(arrow.to, 0);
      }
    }
  }
  size_t Top(const LayoutArrow& a) const { return a.upwards ? a.to : a.from; }
  size_t Bottom(const LayoutArrow& a) const { return a.upwards ? a.from : a.to; }

  // Puts each box as high as possible, then moves boxes without inputs down to just above their
  // first reader.
  void ChooseLayers() {
    std::vector<std::vector<size_t>> below(n_);
    std::vector<size_t> waits(n_), ready;
    for (const LayoutArrow& a : l_.arrows) {
      if (a.from == a.to) continue;
      below[Top(a)].push_back(Bottom(a));
      ++waits[Bottom(a)];
    }
    layer_.assign(n_, 0);
    std::vector<char> source(n_);
    for (size_t i = 0; i < n_; ++i) {
      if ((source[i] = waits[i] == 0)) ready.push_back(i);
    }
    for (size_t k = 0; k < ready.size(); ++k) {
      for (const size_t to : below[ready[k]]) {
        layer_[to] = std::max(layer_[to], layer_[ready[k]] + 1);
        if (--waits[to] == 0) ready.push_back(to);
      }
    }
    for (size_t i = 0; i < n_; ++i) {
      if (!source[i] || below[i].empty()) continue;
      size_t first = layer_[below[i][0]];
      for (const size_t to : below[i]) first = std::min(first, layer_[to]);
      layer_[i] = first - 1;
    }
  }

  size_t AddItem(double width, size_t layer, bool lane) {
    items_.push_back({width, 0, layer, 0, lane, {}, {}});
    return items_.size() - 1;
  }
  void Join(size_t above, size_t below) {
    items_[above].below.push_back(below);
    items_[below].above.push_back(above);
  }
  void AddItems() {
    for (size_t i = 0; i < n_; ++i) AddItem(l_.boxes[i].width, layer_[i], false);
    lanes_.resize(l_.arrows.size());
    std::vector<std::vector<size_t>> lanes_below(n_);  // arrows from one box share their lanes
    for (size_t e = 0; e < l_.arrows.size(); ++e) {
      const LayoutArrow& a = l_.arrows[e];
      if (a.from == a.to) continue;
      std::vector<size_t>& shared = lanes_below[Top(a)];
      const size_t first = layer_[Top(a)] + 1, lanes = layer_[Bottom(a)] - first;
      while (shared.size() < lanes) {
        const size_t lane = AddItem(0, first + shared.size(), true);
        Join(shared.empty() ? Top(a) : shared.back(), lane);
        shared.push_back(lane);
      }
      lanes_[e].assign(shared.begin(), shared.begin() + ptrdiff_t(lanes));
      Join(lanes ? shared[lanes - 1] : Top(a), Bottom(a));
    }
    layers_.resize(*std::max_element(layer_.begin(), layer_.end()) + 1);
    StartOrder();
  }

  // Visits the items depth first from the bottom up, which gives neighbours near places.
  void StartOrder() {
    std::vector<char> seen(items_.size());
    std::vector<size_t> roots(items_.size()), path;
    std::iota(roots.begin(), roots.end(), size_t(0));
    std::stable_sort(roots.begin(), roots.end(), [&](size_t a, size_t b) { return items_[a].layer > items_[b].layer; });
    for (const size_t root : roots) {
      path.push_back(root);
      while (!path.empty()) {
        const size_t i = path.back();
        path.pop_back();
        if (seen[i]) continue;
        seen[i] = 1;
        items_[i].place = layers_[items_[i].layer].size();
        layers_[items_[i].layer].push_back(i);
        path.insert(path.end(), items_[i].above.rbegin(), items_[i].above.rend());
      }
    }
  }

  // Sweeps down and up; each sweep sorts a layer by the mean place of the neighbours of each item.
  // Keeps the best order met.
  void OrderLayers() {
    std::vector<std::vector<size_t>> best = layers_;
    size_t fewest = Crossings();
    for (int sweep = 0; sweep < kSweeps && fewest > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 1; k < layers_.size(); ++k) SortLayer(down ? k : layers_.size() - 1 - k, down);
      const size_t crossings = Crossings();
      if (crossings >= fewest) continue;
      fewest = crossings;
      best = layers_;
    }
    layers_ = best;
    for (const auto& layer : layers_) Number(layer);
  }
  void Number(const std::vector<size_t>& layer) {
    for (size_t k = 0; k < layer.size(); ++k) items_[layer[k]].place = k;
  }
  void SortLayer(size_t layer, bool by_above) {
    std::vector<std::pair<double, size_t>> order;
    for (const size_t i : layers_[layer]) {
      const std::vector<size_t>& others = by_above ? items_[i].above : items_[i].below;
      double sum = 0;
      for (const size_t other : others) sum += double(items_[other].place);
      order.emplace_back(others.empty() ? double(items_[i].place) : sum / double(others.size()), i);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t k = 0; k < order.size(); ++k) layers_[layer][k] = order[k].second;
    Number(layers_[layer]);
  }

  // Counts the pairs of connections between neighbouring layers whose ends are in opposite order,
  // with a Fenwick tree.
  size_t Crossings() const {
    size_t crossings = 0;
    for (size_t k = 0; k + 1 < layers_.size(); ++k) {
      std::vector<size_t> tree(layers_[k + 1].size() + 1), ends;
      size_t added = 0;
      for (const size_t i : layers_[k]) {
        ends.clear();
        for (const size_t other : items_[i].below) ends.push_back(items_[other].place);
        for (const size_t end : ends) {
          size_t before = 0;  // ends so far at or left of this one
          for (size_t at = end + 1; at > 0; at -= at & (~at + 1)) before += tree[at];
          crossings += added - before;
        }
        for (const size_t end : ends) {
          for (size_t at = end + 1; at < tree.size(); at += at & (~at + 1)) ++tree[at];
          ++added;
        }
      }
    }
    return crossings;
  }

  void PlaceItems() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (size_t k = 0; k < layer.size(); ++k) {
        if (k > 0) x += Distance(layer[k - 1], layer[k]);
        items_[layer[k]].x = x;
      }
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0, both = sweep + 2 >= kSweeps;
      for (size_t k = 0; k < layers_.size(); ++k) Straighten(layers_[down ? k : layers_.size() - 1 - k], down || both, !down || both);
    }
  }
  double Distance(size_t left, size_t right) const {
    const Item &a = items_[left], &b = items_[right];
    return (a.width + b.width) / 2 + (a.lane && b.lane ? kLane : kGap);
  }

  // Moves the items of a layer towards the positions of their neighbours, as near as their order
  // and distances allow: least squares under order constraints, solved by merging items that would
  // overtake each other.
  void Straighten(const std::vector<size_t>& layer, bool above, bool below) {
    struct Block {
      double sum, weight;
      size_t size;
      double Mean() const { return sum / weight; }
    };
    std::vector<Block> blocks;
    std::vector<double> offsets;
    for (size_t k = 0; k < layer.size(); ++k) {
      const Item& item = items_[layer[k]];
      offsets.push_back(k == 0 ? 0 : offsets.back() + Distance(layer[k - 1], layer[k]));
      double sum = 0, count = 0;
      for (const auto* others : {above ? &item.above : nullptr, below ? &item.below : nullptr}) {
        if (!others) continue;
        for (const size_t other : *others) {
          sum += items_[other].x;
          ++count;
        }
      }
      // Straight long arrows matter more than centred boxes.
      const double weight = count == 0 ? 0.01 : item.lane ? 8 : 1;
      blocks.push_back({weight * ((count > 0 ? sum / count : item.x) - offsets.back()), weight, 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].Mean() > blocks.back().Mean()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back() = {blocks.back().sum + last.sum, blocks.back().weight + last.weight, blocks.back().size + last.size};
      }
    }
    size_t k = 0;
    for (const Block& block : blocks) {
      for (size_t i = 0; i < block.size; ++i, ++k) items_[layer[k]].x = block.Mean() + offsets[k];
    }
  }

  void PlaceBoxes() {
    double left = items_[0].x, right = left, y = 0;
    for (const Item& item : items_) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    for (Item& item : items_) item.x -= left;
    std::vector<Point> spans;  // upper and lower edge of each layer
    for (const auto& layer : layers_) {
      double height = 0;
      for (const size_t i : layer) height = std::max(height, i < n_ ? l_.boxes[i].height : 0);
      for (const size_t i : layer) {
        if (i < n_) l_.boxes[i].centre = {items_[i].x, y + height / 2};
      }
      spans.push_back({y, y + height});
      l_.height = y + height;
      y += height + GapBelow(layer);
    }
    l_.width = right - left;
    const std::vector<double> starts = SpreadEnds(true), ends = SpreadEnds(false);
    for (size_t e = 0; e < l_.arrows.size(); ++e) {
      LayoutArrow& a = l_.arrows[e];
      if (a.from == a.to) continue;
      const LayoutBox &top = l_.boxes[Top(a)], &bottom = l_.boxes[Bottom(a)];
      a.points = {{starts[e], top.centre.y + top.height / 2}, {starts[e], spans[layer_[Top(a)]].y}};
      for (const size_t lane : lanes_[e]) {
        a.points.push_back({items_[lane].x, spans[items_[lane].layer].x});
        a.points.push_back({items_[lane].x, spans[items_[lane].layer].y});
      }
      a.points.push_back({ends[e], spans[layer_[Bottom(a)]].x});
      a.points.push_back({ends[e], bottom.centre.y - bottom.height / 2});
    }
  }

  double GapBelow(const std::vector<size_t>& layer) const {
    double furthest = 0;
    for (const size_t i : layer) {
      for (const size_t other : items_[i].below) furthest = std::max(furthest, std::fabs(items_[i].x - items_[other].x));
    }
    return std::min(kLayerGap + furthest / 16, kWidestGap);
  }

  // Returns the point at which each arrow leaves its upper box, or reaches its lower one. The
  // points are spread along the edge in the order of the arrows' directions, so that the arrows do
  // not cross there. Arrows that share lanes leave together.
  std::vector<double> SpreadEnds(bool upper) const {
    std::vector<std::vector<std::pair<double, size_t>>> of(n_);  // per box: the items its arrows go to, by x
    std::vector<size_t> next(l_.arrows.size());
    for (size_t e = 0; e < l_.arrows.size(); ++e) {
      const LayoutArrow& a = l_.arrows[e];
      if (a.from == a.to) continue;
      next[e] = lanes_[e].empty() ? (upper ? Bottom(a) : Top(a)) : upper ? lanes_[e].front() : lanes_[e].back();
      of[upper ? Top(a) : Bottom(a)].emplace_back(items_[next[e]].x, next[e]);
    }
    for (auto& ends : of) {
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    }
    std::vector<double> x(l_.arrows.size());
    for (size_t e = 0; e < l_.arrows.size(); ++e) {
      const LayoutArrow& a = l_.arrows[e];
      if (a.from == a.to) continue;
      const size_t box = upper ? Top(a) : Bottom(a);
      const auto& ends = of[box];
      const std::pair<double, size_t> end = {items_[next[e]].x, next[e]};
      const auto place = double(std::lower_bound(ends.begin(), ends.end(), end) - ends.begin());
      const double steps = double(ends.size() - 1), width = std::min(l_.boxes[box].width * 0.7, 16 * steps);
      x[e] = items_[box].x + (steps == 0 ? 0 : width * (place / steps - 0.5));
    }
    return x;
  }

  Layout& l_;
  const size_t n_;
  std::vector<size_t> layer_;               // per box
  std::vector<Item> items_;                 // boxes, then lanes
  std::vector<std::vector<size_t>> lanes_;  // per arrow, from the top
  std::vector<std::vector<size_t>> layers_;
};

}  // namespace

void LayOut(Layout* layout) { Layering(layout).Run(); }

}  // namespace thalweg::cli
