/* Two of its statistics have the same name. */
#include "toy_sets.h"

static tw_status* numbers(const tw_host* h, void* self, tw_number_list* to) {
  TW_TRY(toy_read_numbers(h, self, to));
  return to->add(to, TW_S("busy"), 40);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.statistics.read = numbers;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
