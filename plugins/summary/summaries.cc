// Ops that make Summary messages.
#include <vector>

#include "api.h"
#include "register.h"

namespace thalweg::summary {
namespace {

void Give(tw::Out<tw_string> out, const Message& m) { out.set(0, m.bytes); }

// One element of a tensor as a scalar.
tw_view ElementOf(const tw_view& all, uint64_t i) {
  tw_view one = all;
  const uint64_t each = all.bytes / all.count;
  one.data = static_cast<char*>(all.data) + i * each;
  one.dims = nullptr;
  one.rank = 0;
  one.count = 1;
  one.bytes = each;
  one.tensor = nullptr;
  return one;
}

void Scalars(tw::Frame f, tw::In<tw_string> tags, tw::In<tw::Any> values, tw::Out<tw_string> out) {
  if (tags.size() != values.size() || tags.rank() != values.rank()) {
    Invalid("tags are " + tw::text(tags.v->dims, tags.v->rank) + ", values are " + tw::text(values.v->dims, values.v->rank) +
            "; each value needs a tag, so their shapes must agree");
  }
  Message m;
  for (uint64_t i = 0; i < tags.size(); ++i) {
    const tw_view value = ElementOf(*values.v, i);
    tw::check(Api(f.f->host).scalar(tags[i].data, tags[i].size, &value, &m));
  }
  Give(out, m);
}

void Histogram(tw::Frame f, tw::In<tw_string> tag, tw::In<tw::Any> values, tw::Out<tw_string> out) {
  Message m;
  const std::string_view name = Tag(tag);
  tw::check(Api(f.f->host).histogram(name.data(), name.size(), values.v, &m));
  Give(out, m);
}

class Images {
 public:
  explicit Images(const tw::Node& n) : most_(uint32_t(n.i("max_images"))) {
    const tw_view& color = *n.host()->tensor->view(n.tensor("bad_color"));
    if (color.dtype != TW_UINT8) Invalid("'bad_color' is " + tw::dtype_text(color.dtype) + "; it must be uint8");
    color_.assign(static_cast<const char*>(color.data), color.bytes);
  }
  void operator()(tw::Frame f, tw::In<tw_string> tag, tw::In<tw::Any> images, tw::Out<tw_string> out) const {
    if (images.rank() != 4)
      Invalid("'tensor' is " + tw::text(images.v->dims, images.v->rank) + "; images are [n, height, width, channels]");
    Message m;
    const std::string_view name = Tag(tag);
    tw::check(Api(f.f->host).images(name.data(), name.size(), images.v, most_, color_.data(), color_.size(), &m));
    Give(out, m);
  }

 private:
  const uint32_t most_;
  std::string color_;
};

void PutSound(tw::Frame f, const tw::In<tw_string>& tag, const tw::In<float>& sounds, double rate, uint32_t most, tw::Out<tw_string> out) {
  Message m;
  const std::string_view name = Tag(tag);
  tw::check(Api(f.f->host).audio(name.data(), name.size(), sounds.v, rate, most, &m));
  Give(out, m);
}

class Sound {
 public:
  explicit Sound(const tw::Node& n) : most_(uint32_t(n.i("max_outputs"))), rate_(n.f("sample_rate")) {}
  void operator()(tw::Frame f, tw::In<tw_string> tag, tw::In<float> sounds, tw::Out<tw_string> out) const {
    PutSound(f, tag, sounds, rate_, most_, out);
  }

 private:
  const uint32_t most_;
  const double rate_;
};

class SoundV2 {
 public:
  explicit SoundV2(const tw::Node& n) : most_(uint32_t(n.i("max_outputs"))) {}
  void operator()(tw::Frame f, tw::In<tw_string> tag, tw::In<float> sounds, tw::In<float> rate, tw::Out<tw_string> out) const {
    PutSound(f, tag, sounds, One(rate, "sample_rate"), most_, out);
  }

 private:
  const uint32_t most_;
};

class Tensor {
 public:
  explicit Tensor(const tw::Node& n) : name_(n.name()) {}
  void operator()(tw::Frame f, tw::In<tw::Any> tensor, tw::Out<tw_string> out) const {
    Message m;
    tw::check(Api(f.f->host).tensor(name_.data(), name_.size(), tensor.v, nullptr, 0, &m));
    Give(out, m);
  }

 private:
  const std::string name_;
};

void TensorV2(tw::Frame f, tw::In<tw_string> tag, tw::In<tw::Any> tensor, tw::In<tw_string> metadata, tw::Out<tw_string> out) {
  Message m;
  const std::string_view name = Tag(tag), about = TextOf(One(metadata, "serialized_summary_metadata"));
  tw::check(Api(f.f->host).tensor(name.data(), name.size(), tensor.v, about.data(), about.size(), &m));
  Give(out, m);
}

void Merge(tw::Frame f, tw::Many<tw_string> inputs, tw::Out<tw_string> out) {
  std::vector<tw_string> all;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    for (uint64_t k = 0; k < inputs[i].size(); ++k) all.push_back(inputs[i][k]);
  }
  Message m;
  tw::check(Api(f.f->host).merge(all.data(), all.size(), &m));
  Give(out, m);
}

}  // namespace

void register_summaries(tw::Plugin& p) {
  p.kernel<Scalars>("ScalarSummary @CPU");
  p.kernel<Histogram>("HistogramSummary @CPU");
  p.kernel<Images>("ImageSummary @CPU");
  p.kernel<Sound>("AudioSummary @CPU");
  p.kernel<SoundV2>("AudioSummaryV2 @CPU");
  p.kernel<Tensor>("TensorSummary @CPU");
  p.kernel<TensorV2>("TensorSummaryV2 @CPU");
  p.kernel<Merge>("MergeSummary @CPU");
}

}  // namespace thalweg::summary
