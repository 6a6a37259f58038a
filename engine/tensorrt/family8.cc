#include "binding.h"
#include "slots8.h"

namespace ei {

static const Binding<Abi8> binding;
const Family& family8 = binding;

}  // namespace ei
