# A network as RT-DETR's own program exports it, but for what it sees: two objects at fixed parts of the size that boxes are asked in, the
# second one as sure as the image is bright.
import numpy
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        images = triton.get_input_tensor_by_name(request, "images").as_numpy()
        sizes = triton.get_input_tensor_by_name(request, "orig_target_sizes").as_numpy()
        parts = numpy.array([[0.25, 0.25, 0.5, 0.75], [0.5, 0.125, 0.75, 0.5]], numpy.float32)
        batch = len(images)
        scores = numpy.stack([numpy.full(batch, 0.875), images.mean(axis=(1, 2, 3))], axis=1)
        outputs = {
            "labels": numpy.tile(numpy.array([[0, 1]], numpy.int64), (batch, 1)),
            "boxes": parts[None] * numpy.tile(sizes, (1, 2))[:, None].astype(numpy.float32),
            "scores": scores.astype(numpy.float32),
        }
        return triton.InferenceResponse([triton.Tensor(name, values) for name, values in outputs.items()])
