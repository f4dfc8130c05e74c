#!/usr/bin/env python3
"""What Keras answers with an exported .h5: for export_check.py.

    bench/peers/checks/export_keras.py NETWORK FILE.h5 ARRAYS.npz

Reads x (n, height, width, channels) from ARRAYS and writes logits of the model that load_model makes of
FILE; application, the probabilities of keras.applications' class with FILE's weights, where it has one.
"""
import sys

import keras
import numpy as np


def application_of(name, classes, side):
    shape = {"weights": None, "classes": classes, "input_shape": (side, side, 3)}
    if name == "xception":
        return keras.applications.Xception(**shape)
    if name.startswith("mobilenetv2"):
        return keras.applications.MobileNetV2(alpha=float(name[12:] or 1), **shape)
    return None


def run(model, x):
    return np.concatenate([np.asarray(model(x[i:i + 10])) for i in range(0, len(x), 10)])


def main():
    name, file, arrays = sys.argv[1:]
    x = np.load(arrays)["x"]
    whole = keras.models.load_model(file, compile=False)
    answer = {"logits": run(keras.Model(whole.inputs, whole.layers[-1].input), x)}
    application = application_of(name, answer["logits"].shape[1], x.shape[1])
    if application:
        application.load_weights(file)
        answer["application"] = run(application, x)
    np.savez(arrays, **answer)


if __name__ == "__main__":
    main()
