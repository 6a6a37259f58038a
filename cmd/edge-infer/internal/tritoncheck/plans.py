# A backend in the place of TensorRT's for a server that has none: it takes the plan of compute capability 8.9 as that one takes the plan of
# its GPU, requires that it is the file that was exported, and answers zeros. What the server itself checks of a repository of plans, the
# configuration, labels and warm-up, it checks in earnest.
import json
import os

import numpy
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        file = os.path.join(args["model_repository"], args["model_version"], config["cc_model_filenames"]["8.9"])
        with open(file, "rb") as plan:
            if plan.read(4) != b"ftrt":
                raise triton.TritonModelException(file + " is no plan")
        self.outputs = [(tensor["name"], [int(size) for size in tensor["dims"]]) for tensor in config["output"]]
        print("plan of 8.9:", os.path.basename(file), flush=True)

    def execute(self, requests):
        answers = []
        for request in requests:
            batch = request.inputs()[0].shape()[0]
            answers.append(triton.InferenceResponse(
                [triton.Tensor(name, numpy.zeros([batch, *sizes], numpy.float32)) for name, sizes in self.outputs]))
        return answers
