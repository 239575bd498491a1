#include "fuse/fuse.h"

#include <string>

#include "common/setting.h"
#include "fuse/catalogue.h"
#include "fuse/claim.h"
#include "fuse/product_sum.h"
#include "fuse/program.h"

namespace thalweg::cpu {
namespace {

FuseKinds KindsIn(const std::string& setting) {
  if (setting.empty() || setting == "all") return {};
  FuseKinds kinds{false, false, false};
  if (setting == "none") return kinds;
  for (size_t at = 0; at <= setting.size();) {
    const size_t end = std::min(setting.find(',', at), setting.size());
    const std::string word = setting.substr(at, end - at);
    if (word == "elementwise")
      kinds.elementwise = true;
    else if (word == "rows")
      kinds.rows = true;
    else if (word == "sums")
      kinds.sums = true;
    else
      throw tw::Error{TW_INVALID_ARGUMENT, "setting 'fuse' names '" + word + "'; known: all, none, or some of elementwise,rows,sums"};
    at = end + 1;
  }
  return kinds;
}

}  // namespace

Fusion::Fusion() = default;
Fusion::~Fusion() = default;

void Fusion::Register(tw::Plugin& p) {
  kinds_ = KindsIn(common::Setting(p.h, "fuse"));
  if (kinds_.sums) RegisterProductSums(p);
  if (!kinds_.elementwise && !kinds_.rows) return;
  tw_compiler_def d{TW_SIZED(tw_compiler_def), TW_S("fuse"), TW_S("CPU"), this};
  d.claim = Claim;
  d.compile = Compile;
  d.execute = Execute;
  d.destroy = Destroy;
  d.prepare = Prepare;
  d.inplace = InPlace;
  tw::check(tw_add_compiler(p.r, &d));
}

const Catalogue& Fusion::catalogue(const tw_host* h) {
  std::call_once(once_, [&] { catalogue_ = std::make_unique<Catalogue>(h); });
  return *catalogue_;
}

tw_status* Fusion::Claim(const tw_host* h, void* user, void*, const tw_part* part, tw_claims* to) {
  return tw::guard(h, [&] {
    auto* self = static_cast<Fusion*>(user);
    if (HasLargeTensors(*part)) ClaimSets(*part, self->catalogue(h), self->kinds_, to);
  });
}

tw_status* Fusion::Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] { *out_state = new Program(*c, static_cast<Fusion*>(c->user)->catalogue(c->host)); });
}

tw_status* Fusion::Execute(const tw_frame* f) {
  return tw::guard(f->host, [&] { RunProgram(f, *static_cast<const Program*>(f->state)); });
}

void Fusion::Destroy(const tw_host*, void* state) { delete static_cast<Program*>(state); }

uint32_t Fusion::InPlace(const tw_host*, const void* state, uint32_t out, uint32_t in) {
  return static_cast<const Program*>(state)->MayOverwrite(out, in);
}

tw_status* Fusion::Prepare(const tw_compile_call* c, void* state, uint64_t* out_scratch) {
  return tw::guard(c->host, [&] {
    const auto& p = *static_cast<const Program*>(state);
    *out_scratch = p.TilingFor(*c->part, static_cast<Fusion*>(c->user)->catalogue(c->host)).bytes;
  });
}

}  // namespace thalweg::cpu
