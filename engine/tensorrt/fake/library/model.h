// The networks that the fake TensorRT runs, and the text in an ONNX file's producer name that describes one:
//
//     FAKEMODEL
//     network NAME          what it computes: image, tensors, eight, busy, varying, head, fragile, mendable, ranged,
//                           contrary, anything else averages
//     operator NAME         one line per layer; an operator named Unsupported... is refused by the parser,
//                           one named Custom... unless a plugin has registered it
//     input NAME TYPE FORMAT DIMENSION...
//     output NAME TYPE FORMAT DIMENSION...
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fake {

using Shape = std::vector<int64_t>;

struct Tensor {
    std::string name;
    bool input = false;
    int type = 0, format = 0;
    Shape shape;
    Shape range[3];  // minimum, optimum, maximum
};

struct Model {
    std::string network;
    std::vector<std::string> operators;
    std::vector<Tensor> tensors;
    std::vector<std::string> notes;  // build options, for tests
};

inline std::string text(const Shape& shape) {
    std::ostringstream out;
    for (size_t i = 0; i < shape.size(); i++) out << (i > 0 ? "x" : "") << shape[i];
    return out.str();
}

inline Shape readShape(std::istringstream& in) {
    Shape shape;
    for (int64_t d; in >> d;) shape.push_back(d);
    return shape;
}

// readModel sets why if the text is not a model.
inline Model readModel(const std::string& source, std::string* why) {
    Model model;
    const size_t begin = source.find("FAKEMODEL\n");  // after the fields that make it an ONNX file
    std::istringstream lines(begin == std::string::npos ? source : source.substr(begin));
    std::string line;
    if (!std::getline(lines, line) || line != "FAKEMODEL") {
        *why = "ModelImporter.cpp: Failed to parse ONNX model";
        return model;
    }
    while (std::getline(lines, line)) {
        std::istringstream in(line);
        std::string word;
        in >> word;
        if (word == "network") {
            in >> model.network;
        } else if (word == "operator") {
            in >> word;
            model.operators.push_back(word);
        } else if (word == "note") {
            model.notes.push_back(line.substr(5));
        } else if (word == "input" || word == "output") {
            Tensor t;
            t.input = word == "input";
            in >> t.name >> t.type >> t.format;
            t.shape = readShape(in);
            model.tensors.push_back(t);
        } else if (word == "range") {
            int selector = 0;
            std::string name;
            in >> name >> selector;
            for (Tensor& t : model.tensors) {
                if (t.name == name) t.range[selector] = readShape(in);
            }
        }
    }
    if (model.tensors.empty()) *why = "the model has no inputs and outputs";
    return model;
}

inline std::string write(const Model& model) {
    std::ostringstream out;
    out << "FAKEMODEL\nnetwork " << model.network << "\n";
    for (const auto& name : model.operators) out << "operator " << name << "\n";
    for (const auto& note : model.notes) out << "note " << note << "\n";
    for (const auto& t : model.tensors) {
        out << (t.input ? "input " : "output ") << t.name << " " << t.type << " " << t.format;
        for (int64_t d : t.shape) out << " " << d;
        out << "\n";
        for (int selector = 0; selector < 3 && !t.range[selector].empty(); selector++) {
            out << "range " << t.name << " " << selector;
            for (int64_t d : t.range[selector]) out << " " << d;
            out << "\n";
        }
    }
    return out.str();
}

// A plan is TensorRT's header with tag and version, and the model's text.
constexpr size_t kHead = 28;

inline void versionBytes(int version, char* bytes) {
    const int unit = version < 10000 ? 1000 : 10000;
    bytes[0] = static_cast<char>(version / unit);
    bytes[1] = static_cast<char>(version % unit / 100);
    bytes[2] = static_cast<char>(version % 100);
    bytes[3] = 0;
}

inline std::string writePlan(const Model& model, int version) {
    std::string head(kHead, 0);
    memcpy(&head[0], version >= 8600 ? "ftrt" : "ptrt", 4);
    versionBytes(version, &head[24]);
    return head + write(model);
}

inline Model readPlan(const char* data, size_t size, int version, std::string* why) {
    char expected[4];
    versionBytes(version, expected);
    if (size < kHead || memcmp(data, version >= 8600 ? "ftrt" : "ptrt", 4) != 0) {
        *why = "Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed. Version tag does not match.";
        return {};
    }
    if (memcmp(data + 24, expected, 4) != 0) {
        *why = "The engine plan file is not compatible with this version of TensorRT, please rebuild.";
        return {};
    }
    return readModel(std::string(data + kHead, size - kHead), why);
}

inline bool inRange(const Tensor& t, const Shape& shape) {
    if (shape.size() != t.shape.size()) return false;
    for (size_t i = 0; i < shape.size(); i++) {
        if (t.shape[i] >= 0 ? shape[i] != t.shape[i] : t.range[0].empty() || shape[i] < t.range[0][i] || shape[i] > t.range[2][i])
            return false;
    }
    return true;
}

inline int64_t count(const Shape& shape) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
}

inline size_t size(int type) { return type == 8 ? 8 : type == 0 || type == 3 ? 4 : type == 1 || type == 7 ? 2 : 1; }

inline const Tensor* first(const Model& model, bool input) {
    for (const Tensor& t : model.tensors) {
        if (t.input == input) return &t;
    }
    return nullptr;
}

// channelsLast reports whether an image input has the layout NHWC.
inline bool channelsLast(const Shape& shape) { return shape.size() == 4 && shape[3] == 3 && shape[1] != 3; }

// outputShape is derived from the inputs' shapes; -1 if it depends on the data.
inline Shape outputShape(const Model& model, const Tensor& tensor, const std::map<std::string, Shape>& shapes) {
    Shape shape = tensor.shape;
    const auto in = shapes.find(first(model, true)->name);
    const auto values = shapes.find("values");
    for (size_t i = 0; i < shape.size(); i++) {
        if (shape[i] >= 0 || model.network == "varying") continue;
        if (model.network == "tensors") {
            if (values != shapes.end()) shape[i] = values->second[i];
        } else if (in != shapes.end() && i < in->second.size()) {
            const size_t sides = channelsLast(in->second) ? 1 : 2;  // index of the first side
            const bool side = i == sides || i == sides + 1;
            shape[i] = model.network == "image" && side ? in->second[i] / 8 : in->second[i];
        }
    }
    return shape;
}

template <typename T>
T* at(const std::map<std::string, void*>& addresses, const std::string& name) {
    return static_cast<T*>(addresses.at(name));
}

// run computes the network. The fake driver's addresses are host memory.
inline void run(const Model& model, const std::map<std::string, void*>& addresses, const std::map<std::string, Shape>& shapes) {
    if (model.network == "image") {
        const Tensor& in = *first(model, true);
        const Tensor& out = *first(model, false);
        const Shape& shape = shapes.at(in.name);
        const size_t element = size(in.type);
        const char* source = at<char>(addresses, in.name);
        char* target = at<char>(addresses, out.name);
        if (channelsLast(shape)) {
            float* numbers = at<float>(addresses, out.name);
            for (int64_t row = 0; row < shape[0] * shape[1]; row++) {
                if (row % shape[1] % 8 != 3) continue;
                for (int64_t x = 5; x < shape[2]; x += 8) {
                    for (int64_t i = 3 * (row * shape[2] + x), end = i + 3; i < end; i++) {
                        *numbers++ = element == 1 ? at<uint8_t>(addresses, in.name)[i] : at<float>(addresses, in.name)[i];
                    }
                }
            }
            return;
        }
        for (int64_t plane = 0; plane < shape[0] * shape[1]; plane++) {
            for (int64_t y = 3; y < shape[2]; y += 8) {
                for (int64_t x = 5; x < shape[3]; x += 8, target += element) {
                    memcpy(target, source + ((plane * shape[2] + y) * shape[3] + x) * element, element);
                }
            }
        }
        return;
    }
    if (model.network == "tensors") {
        const Shape& shape = shapes.at("values");
        const float* values = at<float>(addresses, "values");
        const int64_t* ids = at<int64_t>(addresses, "ids");
        for (int64_t i = 0; i < count(shape); i++) {
            at<float>(addresses, "product")[i] = values[i] * static_cast<float>(ids[i % shape[2]]);
            at<char>(addresses, "positive")[i] = values[i] > 0;
        }
        memcpy(at<void>(addresses, "size"), shape.data(), 3 * sizeof(int64_t));
        return;
    }
    if (model.network == "eight") {
        for (const Tensor& t : model.tensors) {
            if (t.input) memcpy(at<void>(addresses, t.name + "_out"), at<void>(addresses, t.name), count(shapes.at(t.name)) * size(t.type));
        }
        return;
    }
    if (model.network == "busy") usleep(20000);
    const char* held = getenv("FAKE_TRT_REQUEST_HELD");  // a file: requests of the held network take as long as it exists
    while (model.network == "held" && held != nullptr && access(held, F_OK) == 0) usleep(1000);
    // The held network has boxes, or class scores, the same for each class.
    const bool heldBoxes = model.network == "held" && outputShape(model, *first(model, false), shapes).size() == 3;
    if (heldBoxes || model.network == "head" || model.network == "fragile" || model.network == "mendable" || model.network == "ranged" ||
        model.network == "contrary") {
        // INT8 moves all boxes of the fragile network, of the mendable one unless three layers stay in FP16, and of the ranged one with
        // calibrators only.
        bool quantized = false, calibrated = false;
        int kept = 0;
        const std::string half = " precision 1 output 1";
        for (const std::string& note : model.notes) {
            quantized = quantized || note == "flag 1";
            calibrated = calibrated || note.rfind("calibration", 0) == 0;
            kept += note.size() > half.size() && note.compare(note.size() - half.size(), half.size(), half) == 0;
        }
        const bool spoilt = quantized && (model.network == "fragile" || (model.network == "mendable" && kept < 3) ||
                                          (model.network == "ranged" && calibrated));
        // A box at every anchor with scores that decrease along the anchors, so that the threshold cuts the list at a known place; the
        // contrary network's scores decrease below 0.
        const float lowest = model.network == "contrary" ? -INFINITY : 0.0F;
        const Tensor& out = *first(model, false);
        const Shape& shape = shapes.at(out.name);
        const int64_t anchors = shape[2], fields = shape[1];
        float* target = at<float>(addresses, out.name);
        for (int64_t b = 0; b < shape[0]; b++) {
            for (int64_t f = 0; f < fields; f++) {
                for (int64_t a = 0; a < anchors; a++, target++) {
                    *target = f < 2                       ? static_cast<float>((spoilt ? 30 : 10) + a)
                              : f < 4                     ? 8.0F
                              : f == 4 + a % (fields - 4) ? std::max(lowest, 1.0F - static_cast<float>(a) / 100)
                                                          : 0.0F;
                }
            }
        }
        return;
    }
    for (const Tensor& out : model.tensors) {
        if (out.input || out.type != 0) continue;
        float sum = 0;
        int64_t n = 0;
        for (const Tensor& in : model.tensors) {
            if (!in.input || in.type != 0) continue;
            const float* values = at<float>(addresses, in.name);
            for (int64_t i = 0; i < count(shapes.at(in.name)); i++, n++) sum += values[i];
        }
        float* target = at<float>(addresses, out.name);
        for (int64_t i = 0; i < count(shapes.at(out.name)); i++) target[i] = n > 0 ? sum / static_cast<float>(n) : 0;
    }
}

// nonZero is the network "varying": the indices of non-zero inputs.
inline std::vector<int64_t> nonZero(const Model& model, const std::map<std::string, void*>& addresses,
                                    const std::map<std::string, Shape>& shapes) {
    const Tensor& in = *first(model, true);
    std::vector<int64_t> where;
    for (int64_t i = 0; i < count(shapes.at(in.name)); i++) {
        if (at<float>(addresses, in.name)[i] != 0) where.push_back(i);
    }
    return where;
}

}  // namespace fake
