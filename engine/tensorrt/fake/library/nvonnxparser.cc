// The ONNX parser of the fake TensorRT: see nvinfer.cc.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "model.h"
#if FAKE_FAMILY == 8
#include "slots8.h"
using Abi = ei::Abi8;
#elif FAKE_FAMILY == 10
#include "slots10.h"
using Abi = ei::Abi10;
#else
#include "slots11.h"
using Abi = ei::Abi11;
#endif

extern "C" void fakeNetworkFill(void* network, const fake::Model* model);
extern "C" bool fakeHasCreator(const char* name);

namespace {

constexpr int kSlots = 32;

bool fails(const char* what) {
    const char* settings = getenv("FAKE_TRT");
    const char* found = settings != nullptr ? strstr(settings, what) : nullptr;
    return found != nullptr && (found[strlen(what)] == 0 || found[strlen(what)] == ',');
}

template <int N>
void unexpected(void*) {
    fprintf(stderr, "fake parser: slot %d is not for the shim to call\n", N);
    abort();
}

template <int... N>
void fillUnexpected(void** table, std::integer_sequence<int, N...>) {
    ((table[N] = reinterpret_cast<void*>(&unexpected<N>)), ...);
}

template <typename Function>
void set(void** table, ei::Slot slot, Function function) {
    if (slot.in(FAKE_VERSION)) table[slot.index] = reinterpret_cast<void*>(+function);
}

struct Error {
    void** vtable;
    std::string description, name, op;
    int node;

    Error(std::string d, int n, std::string nodeName, std::string nodeOperator)
        : description(std::move(d)), name(std::move(nodeName)), op(std::move(nodeOperator)), node(n) {
        static void* table[kSlots];
        if (table[0] == nullptr) {
            fillUnexpected(table, std::make_integer_sequence<int, kSlots>());
            set(table, Abi::ParserError::code, [](Error*) -> int32_t { return 8; });
            set(table, Abi::ParserError::desc, [](Error* self) -> const char* { return self->description.c_str(); });
            set(table, Abi::ParserError::node, [](Error* self) -> int32_t { return self->node; });
            set(table, Abi::ParserError::nodeName, [](Error* self) -> const char* { return self->name.c_str(); });
            set(table, Abi::ParserError::nodeOperator, [](Error* self) -> const char* { return self->op.c_str(); });
        }
        vtable = table;
    }
};

struct Parser {
    void** vtable;
    void* network;
    std::vector<Error*> errors;

    explicit Parser(void* n) : network(n) {
        static void* table[kSlots];
        if (table[0] == nullptr) {
            fillUnexpected(table, std::make_integer_sequence<int, kSlots>());
            set(table, Abi::Parser::parse,
                [](Parser* self, const void* data, size_t size, const char*) -> bool { return self->parse(data, size); });
            set(table, Abi::Parser::getNbErrors, [](Parser* self) -> int32_t { return static_cast<int32_t>(self->errors.size()); });
            set(table, Abi::Parser::getError, [](Parser* self, int32_t i) -> void* { return self->errors.at(i); });
            set(table, Abi::Parser::destroy, [](Parser* self) { delete self; });
        }
        vtable = table;
    }
    ~Parser() {
        for (Error* e : errors) delete e;
    }

    bool parse(const void* data, size_t size) {
        std::string why;
        const fake::Model model = fake::readModel(std::string(static_cast<const char*>(data), size), &why);
        if (fails("parse")) why = "parse failed on request";
        if (!why.empty()) errors.push_back(new Error(why, -1, "", ""));
        for (size_t i = 0; i < model.operators.size(); i++) {
            const std::string& op = model.operators[i];
            if (op.rfind("Custom", 0) == 0 && !fakeHasCreator(op.c_str())) {
                errors.push_back(new Error("Plugin not found, are the plugin name, version, and namespace correct?", static_cast<int>(i),
                                           "/head/" + op, op));
            }
            if (op.rfind("Unsupported", 0) != 0) continue;
            errors.push_back(new Error("No importer registered for op: " + op, static_cast<int>(i), "/head/" + op, op));
        }
        if (!errors.empty()) return false;
        fakeNetworkFill(network, &model);
        return true;
    }
};

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version) {
    if (network == nullptr || logger == nullptr || version != 100) abort();
    return fails("parser-object") ? nullptr : new Parser(network);
}
__attribute__((visibility("default"))) int getNvOnnxParserVersion() { return 100; }
}
