"""The Open Inference Protocol with the client that Triton ships: triton.py HOST:PORT

Metadata, and inference of one image as JSON and as binary tensors, as pixels, as a file and as an embedding: all answer alike.
"""

import sys

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException


def bmp(pixels):
    """An uncompressed image file of pixels [height, width, 3]."""
    height, width, _ = pixels.shape
    row = (3 * width + 3) // 4 * 4
    lines = np.zeros((height, row), np.uint8)
    lines[:, : 3 * width] = pixels[::-1, :, ::-1].reshape(height, -1)
    head = np.array([54 + row * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0], "<u4")
    return b"BM" + head.tobytes() + lines.tobytes()


def ask(client, name, array, datatype, binary, outputs):
    given = triton.InferInput(name, list(array.shape), datatype)
    given.set_data_from_numpy(array, binary_data=binary)
    asked = [triton.InferRequestedOutput(output, binary_data=binary) for output in outputs]
    return client.infer("birds", [given], outputs=asked, request_id="7")


def main(address):
    client = triton.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("birds")
    assert client.get_server_metadata()["name"] == "gpn"
    about = client.get_model_metadata("birds")
    assert about["name"] == "birds" and about["inputs"][0]["name"] == "image", about
    assert client.get_model_metadata("birds", about["versions"][0])["platform"] == "gpn"
    assert client.is_model_ready("birds", about["versions"][0])
    assert not client.is_model_ready("none")

    pixels = np.random.default_rng(1).integers(0, 256, (2, 40, 30, 3), dtype=np.uint8)
    outputs = ["class_id", "probabilities", "classes", "embedding"]
    first = ask(client, "image", pixels, "UINT8", True, outputs)
    response = first.get_response()
    assert response["id"] == "7" and response["model_name"] == "birds", response
    best, probabilities = first.as_numpy("class_id"), first.as_numpy("probabilities")
    classes, embedding = first.as_numpy("classes"), first.as_numpy("embedding")
    assert best.shape == (2,) and probabilities.shape == (2, len(classes)) and probabilities.dtype == np.float32
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-4)
    # Of equal probabilities the nearest is the answer.
    for row in range(2):
        column = list(classes).index(best[row])
        assert probabilities[row, column] == probabilities[row].max()

    files = np.array([bmp(image) for image in pixels], dtype=np.object_)
    for name, array, datatype, binary in [
        ("image", pixels, "UINT8", False),
        ("image", files, "BYTES", True),
        ("embedding", embedding, "FP32", True),
        ("embedding", embedding, "FP32", False),
    ]:
        other = ask(client, name, array, datatype, binary, outputs[:2])
        ids = [str(value, "utf-8") if isinstance(value, bytes) else value for value in other.as_numpy("class_id")]
        assert ids == [str(value, "utf-8") for value in best], (name, datatype, binary)
        assert np.array_equal(other.as_numpy("probabilities"), probabilities), (name, datatype, binary)

    # Without outputs, and without any binary part at all.
    given = triton.InferInput("image", list(pixels.shape), "UINT8")
    given.set_data_from_numpy(pixels)
    assert client.infer("birds", [given]).as_numpy("class_id").shape == (2,)
    future = client.async_infer("birds", [given])
    assert future.get_result().as_numpy("probabilities").shape == probabilities.shape

    for name, array, datatype in [("image", pixels[..., :2], "UINT8"), ("x", np.zeros((1, 3), np.float32), "FP32")]:
        try:
            ask(client, name, array, datatype, True, outputs)
        except InferenceServerException as error:
            assert error.status() == "400" and error.message(), error
        else:
            raise AssertionError(f"{datatype} {array.shape} is no input")
    print("tritonclient: metadata and inference in JSON and binary agree")


if __name__ == "__main__":
    main(sys.argv[1])
