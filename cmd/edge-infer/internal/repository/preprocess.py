# Makes the images that a client sends into what the network takes: JPEG, levels of 8 bits, or numbers of 16 bits. The images have the
# network's size already: the client knows from that where its boxes lie in its own image. Needs numpy, and Pillow for JPEG.
import io
import json

import numpy
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.input, self.output = config["input"][0]["name"], config["output"][0]["name"]
        self.type = triton.triton_string_to_numpy(config["output"][0]["data_type"])
        how = json.loads(config["parameters"]["numbers"]["string_value"])
        self.jpeg, self.planes, self.bgr = how["wire"] == "jpeg", how["layout"] == "nchw", how["colour"] == "bgr"
        self.gray = how["colour"] == "gray"
        shape = (1, -1, 1, 1) if self.planes else (1, 1, 1, -1)
        self.scale = numpy.array(how["scale"], numpy.float32).reshape(shape)
        self.bias = numpy.array(how["bias"], numpy.float32).reshape(shape)
        self.height, self.width = how["height"], how["width"]

    def execute(self, requests):
        answers = []
        for request in requests:
            try:
                images = triton.get_input_tensor_by_name(request, self.input).as_numpy()
                if self.jpeg:
                    images = numpy.stack([self.decode(data) for data in images.reshape(-1)])
                numbers = (images.astype(numpy.float32) * self.scale + self.bias).astype(self.type)
                answers.append(triton.InferenceResponse([triton.Tensor(self.output, numpy.ascontiguousarray(numbers))]))
            except (OSError, ValueError) as error:
                answers.append(triton.InferenceResponse(error=triton.TritonError(str(error))))
        return answers

    def decode(self, data):
        from PIL import Image

        with Image.open(io.BytesIO(data), formats=["JPEG"]) as image:
            if image.size != (self.width, self.height):
                raise ValueError(f"an image of {image.size[0]}x{image.size[1]}, the network takes {self.width}x{self.height}")
            levels = numpy.asarray(image.convert("L" if self.gray else "RGB"))
        levels = levels.reshape(self.height, self.width, -1)
        if self.bgr:
            levels = levels[:, :, ::-1]
        return levels.transpose(2, 0, 1) if self.planes else levels
