# NVIDIA's client against `edge-infer serve`, over both transports. usage: client.py HOST:PORT MODEL
import sys

import numpy
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException, shared_memory

address, model = sys.argv[1:]
tensor = numpy.random.default_rng(1).random((1, 3, 416, 416), dtype=numpy.float32)


def refused(call):
    try:
        call()
    except InferenceServerException as error:
        return error.message()
    raise SystemExit("not refused")


for kind in (tritonclient.http, tritonclient.grpc):
    name = kind.__name__.split(".")[-1]
    client = kind.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model)
    metadata = client.get_model_metadata(model) if kind is tritonclient.http else client.get_model_metadata(model, as_json=True)
    images = kind.InferInput(metadata["inputs"][0]["name"], tensor.shape, metadata["inputs"][0]["datatype"])
    images.set_data_from_numpy(tensor)
    output = metadata["outputs"][0]["name"]
    answer = client.infer(model, [images]).as_numpy(output)
    if kind is tritonclient.http:
        text = kind.InferInput(images.name(), tensor.shape, "FP32")
        text.set_data_from_numpy(tensor, binary_data=False)
        assert numpy.array_equal(client.infer(model, [text]).as_numpy(output), answer), "as JSON"
        later = [client.async_infer(model, [images]) for _ in range(4)]
        answers = [request.get_result().as_numpy(output) for request in later]
    else:
        import queue

        results = queue.Queue()
        for _ in range(4):
            client.async_infer(model, [images], lambda result, error: results.put(error or result))
        answers = [results.get(timeout=60).as_numpy(output) for _ in range(4)]
    assert all(numpy.allclose(other, answer, atol=1e-4) for other in answers), "async"
    region = shared_memory.create_shared_memory_region("check", "/edge-infer-check", tensor.nbytes)
    try:
        print(name, answer.shape, "async", len(answers))
        print(name, "shared memory:", refused(lambda: client.register_system_shared_memory("check", "/edge-infer-check", tensor.nbytes)))
    finally:
        shared_memory.destroy_shared_memory_region(region)
    images.set_shape((1, 3, 1, 1))
    images.set_data_from_numpy(tensor[:, :, :1, :1])
    print(name, "wrong shape:", refused(lambda: client.infer(model, [images])))
    print(name, "unknown model:", refused(lambda: client.get_model_metadata("other")))
