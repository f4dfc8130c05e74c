"""The usual recipe in Keras: a base of known weights, frozen or not, inside the model and run in every epoch.

    train_keras.py FOLDER -o RUN [--epochs N] [--batch B] [--optimizer NAME] [--lr X] [--dropout P] …
    train_keras.py FOLDER --make-features FILE.npz
    train_keras.py FOLDER --losses FILE --steps N --same-head [--width X] [--binary] [--schedule ramp:…] …

FOLDER is the folder that bench_training wrote (training_plan.py): pixels, split, order and first weights. The head begins as
Keras begins it; --same-head takes tandem's. --features FILE trains the head alone on rows that the base
made once (--make-features; pixels may be a pipe), for data that the usual recipe would take hours for.
--losses writes the loss of each step and stops after N. Otherwise prints one line of JSON.
"""
import argparse
import json
import os
import time

BEGAN = time.perf_counter()
PARSER = argparse.ArgumentParser(description=__doc__)
PARSER.add_argument("folder")
PARSER.add_argument("-o", "--out")
PARSER.add_argument("--make-features")
PARSER.add_argument("--features")
PARSER.add_argument("--epochs", type=int, default=20)
PARSER.add_argument("--batch", type=int, default=32)
PARSER.add_argument("--optimizer", default="nadam", choices=["nadam", "adam", "sgd"])
PARSER.add_argument("--lr", type=float, default=0.001)
PARSER.add_argument("--schedule", default="constant", help="constant or ramp:key=value,…, by epochs")
PARSER.add_argument("--losses")
PARSER.add_argument("--steps", type=int, default=0)
PARSER.add_argument("--width", type=float, default=1.0, help="of MobileNetV2")
PARSER.add_argument("--binary", action="store_true", help="one logit for two classes")
PARSER.add_argument("--dropout", type=float, default=0.0)
PARSER.add_argument("--patience", type=int, default=0)
PARSER.add_argument("--trainable", action="store_true", help="the base is trained too")
PARSER.add_argument("--momentum", type=float, help="of batch norms; tandem's where not given")
PARSER.add_argument("--same-head", action="store_true")
PARSER.add_argument("--threads", type=int, default=2)
PARSER.add_argument("--seed", type=int, default=1)
OPTIONS = PARSER.parse_args()
os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import training_plan  # noqa: E402


def fill(base, first):
    """The base from tandem's file, layer by layer: names and layouts are the same."""
    for layer in base.layers:
        kind = type(layer).__name__
        if kind == "BatchNormalization":
            layer.epsilon = first.nodes[layer.name]["epsilon"]
            layer.momentum = OPTIONS.momentum or 1.0 - first.nodes[layer.name]["momentum"]
            layer.set_weights([first[f"{layer.name}.{part}"]
                               for part in ("weight", "bias", "running_mean", "running_var")])
        elif kind == "DepthwiseConv2D":
            layer.set_weights([first[f"{layer.name}.weight"].transpose(0, 1, 3, 2)])
        elif kind == "Conv2D":
            layer.set_weights([first[f"{layer.name}.weight"]])


def new_base(plan, first):
    base = keras.applications.MobileNetV2(input_shape=plan.shape, alpha=OPTIONS.width, weights=None,
                                          include_top=False, pooling="avg")
    fill(base, first)
    base.trainable = OPTIONS.trainable
    return base


def make_features(plan, first):
    base = new_base(plan, first)
    forward = tf.function(lambda x: base(x, training=False), reduce_retracing=True)
    rows = [forward(training_plan.scaled(pixels, first.scale)).numpy() for pixels in plan.stream(64)]
    np.savez(OPTIONS.make_features, contents=plan.contents, rows=np.concatenate(rows))


def new_head(first):
    """(layers, those with weights): the dense layers of tandem's graph, with ReLU but for the last."""
    nodes = [node for node in first.nodes.values() if node["op"] == "dense"]
    dense = [keras.layers.Dense(node["channels"], activation=None if node is nodes[-1] else "relu", name=node["name"])
             for node in nodes]
    dropout = [keras.layers.Dropout(OPTIONS.dropout)] if OPTIONS.dropout else []
    return [*dense[:-1], *dropout, dense[-1]], dense


def new_model(plan, first, width):
    layers, dense = new_head(first)
    if OPTIONS.features:
        model = keras.Sequential([keras.Input((width,)), *layers])
    else:
        inputs = keras.Input(plan.shape)
        base = new_base(plan, first)
        x = base(inputs, training=None if OPTIONS.trainable else False)
        for layer in layers:
            x = layer(x)
        model = keras.Model(inputs, x)
    if OPTIONS.same_head:
        for layer in dense:
            layer.set_weights([first[f"{layer.name}.weight"], first[f"{layer.name}.bias"]])
    return model


def optimizer():
    if OPTIONS.optimizer == "sgd":
        return keras.optimizers.SGD(OPTIONS.lr, momentum=0.9, nesterov=True)
    if OPTIONS.optimizer == "adam":
        return keras.optimizers.Adam(OPTIONS.lr, epsilon=1e-7)
    return keras.optimizers.Nadam(OPTIONS.lr, epsilon=1e-7)


def feed(plan, x, first):
    """tf.data over what lies in memory: (training, validation)."""
    is_rows = x.ndim == 2
    shape = [None, *x.shape[1:]]

    def pick(indices):
        return tf.gather(held, indices), tf.gather(labels, indices)

    def scale(batch, wanted):
        divisor, mean, deviation = training_plan.SCALES[first.scale]
        return (tf.cast(batch, tf.float32) / divisor - mean) / deviation, wanted

    def training():
        for epoch in range(OPTIONS.epochs):
            yield from plan.batches(epoch, OPTIONS.batch)

    with tf.device("CPU:0"):
        held, labels = tf.constant(x), tf.constant(plan.labels)
    signature = tf.TensorSpec([None], tf.int64)
    sets = [tf.data.Dataset.from_generator(training, output_signature=signature),
            tf.data.Dataset.from_tensor_slices(np.arange(plan.n_train, plan.n, dtype=np.int64)).batch(64)]
    for i, data in enumerate(sets):
        data = data.map(pick, num_parallel_calls=1)
        data = data if is_rows else data.map(scale, num_parallel_calls=1)
        sets[i] = data.map(lambda a, b: (tf.ensure_shape(a, shape), b)).prefetch(2)
    return sets


class Losses(keras.callbacks.Callback):
    """Of each batch alone: what Keras reports is a mean since the last reset."""

    def __init__(self, path):
        super().__init__()
        self.rows, self.path = [], path

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        rate = float(np.asarray(self.model.optimizer.learning_rate))
        self.rows.append(f"{len(self.rows) + 1} {rate:.9g} {logs['loss']:.9g}\n")
        if len(self.rows) >= OPTIONS.steps:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(self.rows[:OPTIONS.steps])


class Keep(keras.callbacks.Callback):
    def __init__(self, plan, validation):
        super().__init__()
        self.best, self.validation, self.plan = training_plan.Best(OPTIONS.patience), validation, plan
        self.logits, self.epochs, self.ends = None, 0, []

    def on_epoch_end(self, epoch, logs=None):
        logits = self.model.predict(self.validation, verbose=0)
        if OPTIONS.binary:  # class 1 is "yes"
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        self.epochs = epoch + 1
        self.ends.append(time.perf_counter() - BEGAN)
        if self.best.take(epoch + 1, *training_plan.evaluate(logits, self.plan.labels[self.plan.n_train:])):
            self.logits, self.weights = logits, self.model.get_weights()
        if self.best.is_over():
            self.model.stop_training = True


def train(plan, first):
    x = training_plan.Features(OPTIONS.features).of(plan.contents) if OPTIONS.features else plan.pixels()
    model = new_model(plan, first, x.shape[1])
    loss = keras.losses.BinaryCrossentropy if OPTIONS.binary else keras.losses.SparseCategoricalCrossentropy
    model.compile(optimizer(), loss(from_logits=True))
    training, validation = feed(plan, x, first)
    steps = -(-plan.n_train // OPTIONS.batch)
    part = training_plan.schedule_of(OPTIONS.schedule, 0.0, steps, OPTIONS.epochs)
    keep = Losses(OPTIONS.losses) if OPTIONS.losses else Keep(plan, validation)
    callbacks = [keras.callbacks.LearningRateScheduler(lambda epoch: OPTIONS.lr * part(epoch * steps)), keep]
    ready = time.perf_counter() - BEGAN
    model.fit(training, epochs=OPTIONS.epochs, steps_per_epoch=steps, callbacks=callbacks, verbose=0)
    if OPTIONS.losses:
        return
    training_plan.write_run(OPTIONS.out, plan, keep.best.epoch, keep.logits)
    print(json.dumps({
        "peer": f"Keras {keras.__version__} / TensorFlow {tf.__version__}", "epochs": keep.epochs,
        "best_epoch": keep.best.epoch, "n": plan.n_val, "correct": keep.best.correct, "loss": keep.best.loss,
        "ready_seconds": round(ready, 2), "epoch_ends": [round(end, 2) for end in keep.ends],
        "seconds": round(time.perf_counter() - BEGAN, 2), "processor_seconds": round(time.process_time(), 2)}))


def main():
    keras.utils.set_random_seed(OPTIONS.seed)
    tf.config.threading.set_intra_op_parallelism_threads(OPTIONS.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    plan, first = training_plan.Plan(OPTIONS.folder), training_plan.First(OPTIONS.folder)
    if OPTIONS.make_features:
        make_features(plan, first)
    else:
        train(plan, first)


main()
