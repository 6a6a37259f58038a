#include "binding.h"
#include "slots11.h"

namespace ei {

static const Binding<Abi11> binding;
const Family& family11 = binding;

}  // namespace ei
