#include "binding.h"
#include "slots10.h"

namespace ei {

static const Binding<Abi10> binding;
const Family& family10 = binding;

}  // namespace ei
