"""A FastAPI + PyTorch program that serves the same network as `gpn serve`, for bench/serve.py.

It loads the backbone and the memory of prototypes from model.safetensors (ResNet-08), prepares images as gpn does (shorter side to
round(side * 150 / 112), bilinear; crop of the centre; ImageNet's mean and deviation), and answers with the nearest prototypes.
Requests that arrive together are embedded in one batch, as a good program of this kind would do.

    uvicorn is started by bench/serve.py:  python serve_torch.py MODEL PORT
"""

import asyncio
import io
import json
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F
import uvicorn
from fastapi import FastAPI, UploadFile
from PIL import Image
from torch_step import ResNet08

BATCH, WAIT = 64, 0.002


def read_model(path):
    """Tensors and description of a model file."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, about in head.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            values = np.frombuffer(data[begin:end], dtype="<f4").reshape(about["shape"])
            tensors[name] = torch.from_numpy(values.copy())
    return tensors, json.loads(head["__metadata__"]["gpn"])


class Served:
    """The network with its prototypes."""

    def __init__(self, path):
        tensors, self.about = read_model(path)
        self.network = ResNet08()
        state = {}
        for name in self.network.state_dict():
            if not name.endswith("num_batches_tracked"):
                # stages.0 there is stage_1.0 in the file.
                parts = name.split(".")
                ours = f"stage_{int(parts[1]) + 1}.0." + ".".join(parts[2:]) if parts[0] == "stages" else name
                state[name] = tensors["emb." + ours]
        missing, unexpected = self.network.load_state_dict(state, strict=False)
        assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)
        self.network = self.network.to(memory_format=torch.channels_last).eval()
        self.prototypes = tensors["memory"]
        self.names = [(c["id"], c["name"]) for c in self.about["classes"]]
        self.side = self.about["input"]["image"]["height"]
        self.stored = self.about["stored_size"]
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def prepared(self, data):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        image = fitted(fitted(image, self.stored, self.stored), round(self.side * 150 / 112), self.side)
        planes = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float().div_(255)
        return planes.sub_(self.mean).div_(self.std)

    def answers(self, files):
        with torch.inference_mode():
            batch = torch.stack([self.prepared(data) for data in files]).contiguous(memory_format=torch.channels_last)
            distances = torch.cdist(self.network(batch), self.prototypes).pow(2)
            probabilities = F.softmax(-distances, 1)
            best = probabilities.topk(5, 1)
        return [
            [{"id": self.names[c][0], "name": self.names[c][1], "probability": p} for c, p in zip(row, values)]
            for row, values in zip(best.indices.tolist(), best.values.tolist())
        ]


def fitted(image, short, side):
    """Shorter side to `short`, then the centre square of `side`."""
    width, height = image.size
    size = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
    if size != image.size:
        image = image.resize(size, Image.BILINEAR)
    left, top = round((size[0] - side) / 2), round((size[1] - side) / 2)
    return image.crop((left, top, left + side, top + side))


def app(served):
    api = FastAPI()
    queue = asyncio.Queue()

    async def worker():
        loop = asyncio.get_running_loop()
        while True:
            jobs = [await queue.get()]
            until = loop.time() + WAIT
            while len(jobs) < BATCH and (left := until - loop.time()) > 0:
                try:
                    jobs.append(await asyncio.wait_for(queue.get(), left))
                except asyncio.TimeoutError:
                    break
            answers = await loop.run_in_executor(None, served.answers, [data for data, _ in jobs])
            for (_, future), answer in zip(jobs, answers):
                future.set_result(answer)

    @api.on_event("startup")
    async def start():
        api.state.worker = asyncio.create_task(worker())

    @api.get("/healthz")
    async def health():
        return "ok"

    @api.post("/api/predict")
    async def predict(image: UploadFile):
        future = asyncio.get_running_loop().create_future()
        await queue.put((await image.read(), future))
        return {"predictions": [{"file": image.filename, "classes": await future}]}

    return api


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    uvicorn.run(app(Served(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
