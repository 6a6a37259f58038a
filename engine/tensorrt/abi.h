// The binary interface that all TensorRT versions share: the layout of objects and the call of their methods. Nothing here or in the slot
// tables comes from a TensorRT header; `make abi-check` compares both with real ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ei {

// Object is the layout of every public library object: the methods are in the virtual table of the object that impl points to.
struct Object {
    void* vtable;
    void* impl;
};

// Slot is the index of a method in its virtual table and the first library version with it. Index -1 is a method that the family lacks.
struct Slot {
    int index;
    int since = 0;

    constexpr bool in(int version) const { return index >= 0 && version >= since; }
};

constexpr Slot kAbsent{-1};

// direct calls a virtual method in the object's own table, for the parser.
template <typename Result, typename... Arguments>
Result direct(void* object, Slot slot, Arguments... arguments) {
    auto** table = *static_cast<void***>(object);
    return reinterpret_cast<Result (*)(void*, Arguments...)>(table[slot.index])(object, arguments...);
}

// call calls a method of a library object. Its this is the implementation, not the public object.
template <typename Result, typename... Arguments>
Result call(const void* object, Slot slot, Arguments... arguments) {
    return direct<Result, Arguments...>(static_cast<const Object*>(object)->impl, slot, arguments...);
}

// destroy deletes a public object with its deleting destructor.
inline void destroy(void* object) {
    if (object != nullptr) direct<void>(object, Slot{1});
}

// Dims32 is the shape type up to TensorRT 9, Dims64 the one from 10 on, which the shim uses internally.
struct Dims32 {
    int32_t rank;
    int32_t d[8];
};

struct Dims64 {
    int32_t rank;
    int64_t d[8];
};

struct InterfaceInfo {
    const char* kind;
    int32_t major;
    int32_t minor;
};

// Values that are equal in all versions.
enum Severity : int32_t { kInternalError = 0, kError = 1, kWarning = 2, kInfo = 3, kVerbose = 4 };
enum TensorMode : int32_t { kNoMode = 0, kInput = 1, kOutput = 2 };
enum Type : int32_t { kFloat = 0, kHalf = 1 };
enum Selector : int32_t { kMinShape = 0, kOptShape = 1, kMaxShape = 2 };
enum Pool : int32_t { kWorkspace = 0 };
enum Verbosity : int32_t { kLayerNames = 0, kDetailed = 2 };

}  // namespace ei
