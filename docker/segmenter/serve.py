"""Put a segmentation model behind the `remote` protocol: copy this one file beside the model's own code.

    # my_model.py
    def load():
        ...                                  # once, at start
        return model

    def segment(model, image, prompt):       # image: upright RGB uint8 (H, W, 3); prompt: text
        ...
        return mask                          # bool or 0/1 (H, W); or (mask, text), or (mask, text, score)

    INFO = {"name": "my-model", "version": "1.0", "prompt": "sentence"}     # optional, see GET /v1/info

    python serve.py my_model --port 9000

It needs Python 3.7 or later, numpy and Pillow, because it has to run where old research code runs.

The protocol (version nest-segmenter/1), JSON over HTTP:

GET  /v1/info      {"protocol", "name", "version", "weights_sha256", "prompt": "sentence" or "phrase", "max_chars",
                    "max_batch"}
POST /v1/segment   {"items": [{"image": base64 of a PNG or JPEG, "prompt": text}, ...]}
                -> {"results": [{"mask": base64 of a PNG with 0 and 255 of the image's size, or null,
                                 "failure": {"kind", "detail"} or null, "text": "", "score": 1.0}, ...]}

One result per item and in order, each with a mask or a failure. `kind` is one of out_of_memory, no_reply, bad_reply,
refused, no_mask_token, no_mask, no_box, timeout, error. A request that is not understood is answered 400 with
{"error": text}, one with more than `max_batch` items 413. An exception in `segment` is that item's failure, never an
empty mask.
"""

import argparse
import base64
import importlib
import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

PROTOCOL = "nest-segmenter/1"
MAX_BODY_BYTES = 256 * 1024 * 1024
KINDS = ("out_of_memory", "no_reply", "bad_reply", "refused", "no_mask_token", "no_mask", "no_box", "timeout", "error")


class Failed(Exception):
    """Raise this in `segment` to say which kind of failure it is."""

    def __init__(self, kind, detail=""):
        super().__init__(detail)
        self.kind = kind if kind in KINDS else "error"
        self.detail = detail


def failure_of(error):
    if isinstance(error, Failed):
        return {"kind": error.kind, "detail": error.detail}
    told = f"{type(error).__name__}: {error}"
    memory = isinstance(error, MemoryError) or "out of memory" in told.lower()
    return {"kind": "out_of_memory" if memory else "error", "detail": told[:300]}


def answer(model, segment, item):
    """One item's result."""
    try:
        picture = Image.open(io.BytesIO(base64.b64decode(item["image"]))).convert("RGB")
        image = np.asarray(picture, dtype=np.uint8)
        made = segment(model, image, str(item["prompt"]))
        parts = list(made) if isinstance(made, tuple) else [made]
        text = parts[1] if len(parts) > 1 else ""
        score = parts[2] if len(parts) > 2 else 1.0
        mask = np.asarray(parts[0]).astype(bool)
        if mask.shape != image.shape[:2]:
            raise Failed("error", f"a mask of {mask.shape} for an image of {image.shape[:2]}")
        out = io.BytesIO()
        Image.fromarray(mask.astype(np.uint8) * 255).save(out, "PNG")
        packed = base64.b64encode(out.getvalue()).decode("ascii")
        return {"mask": packed, "failure": None, "text": str(text), "score": float(score)}
    except Exception as error:  # noqa: BLE001 - whatever the model raises is this item's failure
        return {"mask": None, "failure": failure_of(error), "text": "", "score": 0.0}


def make_server(model, segment, info, port, host="127.0.0.1"):
    """A server that is ready to `serve_forever`; one item at a time goes to the model."""
    told = {
        "protocol": PROTOCOL,
        "name": "model",
        "version": "",
        "weights_sha256": "",
        "prompt": "sentence",
        "max_chars": 600,
        "max_batch": 8,
    }
    told.update(info)
    busy = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # headers and body leave in one packet: Nagle's wait for an acknowledgement costs 40 ms otherwise
        wbufsize = -1
        disable_nagle_algorithm = True

        def reply(self, status, value):
            body = json.dumps(value).encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path == "/v1/info":
                self.reply(200, told)
            else:
                self.reply(404, {"error": "there are GET /v1/info and POST /v1/segment"})

        def do_POST(self):
            try:
                length = int(self.headers.get("Content-Length", "0"))
            except ValueError:
                length = -1
            if self.path != "/v1/segment" or not 0 <= length <= MAX_BODY_BYTES:
                self.close_connection = True
                self.reply(404 if self.path != "/v1/segment" else 413, {"error": "no such place, or too long a body"})
                return
            try:
                items = json.loads(self.rfile.read(length).decode("utf-8"))["items"]
                if not isinstance(items, list) or not all(
                    isinstance(i, dict) and isinstance(i.get("image"), str) and isinstance(i.get("prompt"), str)
                    for i in items
                ):
                    raise ValueError("'items' has to be a list of objects with 'image' and 'prompt'")
            except (ValueError, KeyError, TypeError) as error:
                self.reply(400, {"error": f"not a request: {error}"})
                return
            if len(items) > told["max_batch"]:
                self.reply(413, {"error": f"more than {told['max_batch']} items"})
                return
            with busy:
                results = [answer(model, segment, item) for item in items]
            self.reply(200, {"results": results})

        def log_message(self, format, *args):
            pass

    return ThreadingHTTPServer((host, port), Handler)


def main():
    parser = argparse.ArgumentParser(description="Serve a model's segment() over the nest-segmenter/1 protocol.")
    parser.add_argument("module", help="module with load() and segment(model, image, prompt)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args()
    module = importlib.import_module(options.module)
    server = make_server(module.load(), module.segment, getattr(module, "INFO", {}), options.port, options.host)
    sys.stderr.write(f"serving {options.module} on http://{options.host}:{server.server_address[1]}\n")
    server.serve_forever()


if __name__ == "__main__":
    main()
