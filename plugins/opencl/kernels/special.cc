// Digamma, Erfinv and Ndtri in float; the CPU computes those in double.
#include "kernels/elementwise.h"
#include "kernels/register.h"
#include "program_text.h"

namespace thalweg::opencl {
namespace {

class Special {
 public:
  explicit Special(const tw::Node& n)
      : elementwise_(n, {n.type_in(0)}, {n.type_out(0)}, std::string(ProgramPart("special.h")),
                     "y0 = " + std::string(n.node->op, n.node->op_len) + "_of(x0);") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    elementwise_.Run(f, DimsOf(f->out[0]), {Broadcast(f->in[0], DimsOf(f->out[0]))}, {At(f->out[0])});
  }

 private:
  Elementwise elementwise_;
};

}  // namespace

void register_special(tw::Plugin& p) {
  for (const char* op : {"Digamma", "Erfinv", "Ndtri"})
    for (const char* type : {"float", "half", "bfloat16"})
      p.kernel<Special>(std::string(op) + "(" + type + " -> " + type + ") @OPENCL; inplace y=x");
}

}  // namespace thalweg::opencl
