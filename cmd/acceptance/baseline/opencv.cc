// Baseline for OpenCV's DNN module: a network on a prepared input.
//
// usage: opencv NET.onnx SIDE THREADS SECONDS
// Prints one JSON line.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <opencv2/core.hpp>
#include <opencv2/dnn.hpp>
#include <vector>

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double percentile(const std::vector<double>& sorted, double p) {
    return sorted[std::min(static_cast<size_t>(p * static_cast<double>(sorted.size())), sorted.size() - 1)] * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        fputs("usage: opencv NET.onnx SIDE THREADS SECONDS\n", stderr);
        return 2;
    }
    try {
        const int side = atoi(argv[2]);
        cv::setNumThreads(atoi(argv[3]));
        cv::dnn::Net net = cv::dnn::readNetFromONNX(argv[1]);
        net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
        net.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
        cv::Mat input({1, 3, side, side}, CV_32F), output;
        cv::randu(input, 0, 1);
        for (int i = 0; i < 2; i++) {
            net.setInput(input);
            output = net.forward();
        }
        std::vector<double> took;
        const double limit = atof(argv[4]), used = processor(), begun = seconds();
        double now = begun;
        while (now - begun < limit) {
            net.setInput(input);
            output = net.forward();
            const double done = seconds();
            took.push_back(done - now);
            now = done;
        }
        const double elapsed = now - begun, cpu = processor() - used, runs = static_cast<double>(took.size());
        std::sort(took.begin(), took.end());
        printf(
            "{\"what\": \"baseline\", \"opencv\": \"%s\", \"threads\": %d, \"frames_per_second\": %.2f, \"cpu_us_per_frame\": %.1f, "
            "\"latency_us_p50\": %.1f, \"latency_us_p99\": %.1f, \"latency_us_p999\": %.1f, \"n\": %zu}\n",
            CV_VERSION, atoi(argv[3]), runs / elapsed, cpu / runs * 1e6, percentile(took, 0.5), percentile(took, 0.99),
            percentile(took, 0.999), took.size());
    } catch (const std::exception& e) {
        fprintf(stderr, "opencv baseline: %s\n", e.what());
        return 1;
    }
    return 0;
}
