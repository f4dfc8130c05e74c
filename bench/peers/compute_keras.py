"""compute_keras.py MODEL features|train BATCH IMAGE [--jit]: as compute_torch.py with Keras 3 on
TensorFlow, the networks of keras.applications. --jit compiles with XLA.
"""
import os

from measure import arguments, peak_mib, rates, report

OPTIONS = arguments(__doc__, ("--jit", {"action": "store_true"}))
os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")

import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402


def lenet5(classes):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(6, 5, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(16, 5, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(120, activation="relu"), layers.Dense(84, activation="relu"), layers.Dense(classes)])


def build(shape):
    if OPTIONS.model == "lenet5":
        return lenet5(OPTIONS.classes)
    known = {"xception": keras.applications.Xception, "mobilenetv2": keras.applications.MobileNetV2,
             "resnet50": keras.applications.ResNet50}
    if OPTIONS.model not in known:
        raise SystemExit(f"no network {OPTIONS.model}; there are lenet5, {', '.join(known)}")
    base = known[OPTIONS.model](weights=None, include_top=False, pooling="avg", input_shape=shape)
    if OPTIONS.mode == "features":
        return base
    return keras.Model(base.inputs, keras.layers.Dense(OPTIONS.classes)(base.outputs[0]))


def main():
    tf.config.threading.set_intra_op_parallelism_threads(OPTIONS.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    shape = (OPTIONS.image, OPTIONS.image, 1 if OPTIONS.model == "lenet5" else 3)
    model = build(shape)
    x = tf.random.normal((OPTIONS.batch, *shape))
    labels = numpy.random.randint(OPTIONS.classes, size=OPTIONS.batch)
    if OPTIONS.mode == "features":
        forward = tf.function(lambda x: model(x, training=False), jit_compile=OPTIONS.jit)

        def step():
            forward(x).numpy()
    else:
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9), jit_compile=OPTIONS.jit,
                      loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        labels = tf.constant(labels)

        def step():
            model.train_on_batch(x, labels)

    found = rates(step, OPTIONS.batch, OPTIONS.seconds)
    report(f"Keras {keras.__version__} / TensorFlow {tf.__version__}", OPTIONS, found, peak_mib(),
           jit=OPTIONS.jit)


main()
