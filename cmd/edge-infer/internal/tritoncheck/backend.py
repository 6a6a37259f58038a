# Triton's backend of ONNX Runtime as a Python program, for a server that comes without it: what `edge-infer export triton` writes is loaded
# as it is. A file fault.json beside the versions of a model has every request answered later ("delay", in seconds) or cut ("cut": true).
import json
import os
import time

import onnxruntime
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        directory = args["model_repository"]
        self.fault = os.path.join(directory, "fault.json")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        file = os.path.join(directory, args["model_version"], config["default_model_filename"])
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = [tensor.name for tensor in self.session.get_outputs()]

    def execute(self, requests):
        fault = {}
        if os.path.exists(self.fault):
            with open(self.fault) as file:
                fault = json.load(file)
        time.sleep(fault.get("delay", 0))
        return [self.answer(request, fault.get("cut", False)) for request in requests]

    def answer(self, request, cut):
        inputs = {name: triton.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs}
        tensors = self.session.run(self.outputs, inputs)
        if cut:
            tensors = [tensor[..., :-1].copy() for tensor in tensors]
        return triton.InferenceResponse([triton.Tensor(name, tensor) for name, tensor in zip(self.outputs, tensors)])
