#!/usr/bin/env python3
"""Train a classifier on a folder of class folders, ask it about one picture, read its metrics.

    python3 train.py photos/ run/ photos/cats/1.jpg [libtandem.so.0]

Only the library is needed: options and answers are JSON (tdm_text_train in include/tandem/train.h)."""
import ctypes, json, os, sys


class Sink(ctypes.Structure):  # of events; this program listens to none
    _fields_ = [("self", ctypes.c_void_p), ("event", ctypes.c_void_p)]


class Tandem:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.tdm_text_train.argtypes = [ctypes.c_char_p, Sink, ctypes.c_void_p]
        self.library.tdm_text_predict.argtypes = [
            ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.library.tdm_text_free.argtypes = [ctypes.c_void_p]

    def answer(self, function, *arguments):
        text = ctypes.c_void_p()
        failed = function(*arguments, ctypes.byref(text))
        words = ctypes.string_at(text.value).decode() if text.value else "out of memory"
        self.library.tdm_text_free(text)
        if failed:
            raise RuntimeError(words)
        return json.loads(words)

    def train(self, **options):
        return self.answer(self.library.tdm_text_train, json.dumps(options).encode(), Sink())

    def predict(self, model, *paths, top=5):
        files = (ctypes.c_char_p * len(paths))(*[path.encode() for path in paths])
        return self.answer(self.library.tdm_text_predict, model.encode(), files, len(paths), top)["predictions"]


def main(pictures, run, picture, library="libtandem.so.0"):
    tandem = Tandem(library)
    result = tandem.train(source=pictures, run=run, epochs=3)
    print(f"validation: {result['val']['correct']} of {result['val']['n']} right")
    for line in open(os.path.join(run, "metrics.jsonl"), encoding="utf-8"):
        event = json.loads(line)
        if event.get("event") == "epoch":
            print(f"epoch {event['epoch']}: validation loss {event['val']['loss']:.4f}")
    best = tandem.predict(run, picture, top=1)[0]["top"][0]
    print(f"{picture}: {best['label']} ({100 * best['probability']:.1f} %)")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit("usage: train.py PICTURES RUN PICTURE [LIBRARY]")
    main(*sys.argv[1:])
