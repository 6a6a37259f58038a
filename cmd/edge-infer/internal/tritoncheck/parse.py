# Parses configurations with the protocol buffers of Triton's own client. usage: parse.py CONFIG...
import sys

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

for path in sys.argv[1:]:
    with open(path) as file:
        config = text_format.Parse(file.read(), model_config_pb2.ModelConfig())
    sizes = list(config.dynamic_batching.preferred_batch_size)
    print(config.name, config.platform or config.backend, config.max_batch_size, sizes, dict(sorted(config.cc_model_filenames.items())))
