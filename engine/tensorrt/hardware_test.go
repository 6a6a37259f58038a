package tensorrt_test

// hardwareEnvironment names the folder of a real TensorRT library; with it the test binary runs against real hardware instead of fakes.
const hardwareEnvironment = "EDGE_INFER_TEST_TENSORRT"
