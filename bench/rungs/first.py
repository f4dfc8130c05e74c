"""`tandem train SRC` without options, in an empty home that fetches its weights, beside the usual recipe in Keras.

The recipe: MobileNetV2 of the same weights, frozen, inside the model and run in every epoch; one dense head, Adam with
a rate of 0.001, 20 epochs. It gets decoded pixels in memory and the same split, so choosing a network, the download,
reading and decoding are ours alone. Ours, which takes seconds, runs twice before Keras and once after it; the median
counts. The mirror is a server of this machine; what it serves is the published weights
under the name that the catalogue asks for.
"""
import functools
import http.server
import statistics
import threading

from rungs.steps import SETS, base_options
from rungs.work import points, right, table

EPOCHS = 20
PUBLISHED = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_no_top.h5"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(work, options):
    """The address of a server whose folder holds the weights as Keras' file, made once by an export.

    Its head is of other classes: one of the same names would be kept, and all layers trained.
    """
    folder = work.folder / "mirror"
    if not (folder / PUBLISHED).exists():
        folder.mkdir(exist_ok=True)
        source = str(work.folder / "shapes")
        work.run([work.tandem, "synth", source, "--classes", "2", "--per-class", "10", "--size", "64", "--quiet"])
        made = work.train("mirror", {**options, "source": source, "epochs": 0, "steps": 1})
        work.run([work.tandem, "export", made["run"], "-o", str(folder / PUBLISHED), "--quiet"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def measure(work, which):
    options = base_options(work, which)
    mirror = serve(work, options)

    def train():
        return work.train(f"{which}-first", {"source": options["source"], "weights": "auto", "mirror": mirror},
                          more=["--fetch"])

    trained = [train(), train()]
    folder = work.training_plan(f"{which}-first", {**options, "features": "none"}, EPOCHS)
    peer = work.peer(f"{which}-first-keras", "train_keras.py", folder, "--epochs", EPOCHS, "--optimizer", "adam",
                     "--lr", 0.001)
    trained.append(train())
    ours = {**trained[-1], "seconds_of_runs": [run["seconds"] for run in trained],
            **{key: statistics.median(run[key] for run in trained) for key in ("seconds", "processor_seconds")}}
    peer["comparison"] = work.compare(peer, ours)
    return {"set": which, "title": f"train without options: {SETS[which]['title']}",
            "rows": {"tandem": ours, "Keras": peer}}


def lines(result):
    ours = result["rows"]["tandem"]
    rows = []
    for name, row in result["rows"].items():
        is_peer = "comparison" in row
        rows.append([name, f"{row['seconds']:.2f}", f"{row['processor_seconds']:.2f}", right(row),
                     *([f"{row['seconds'] / ours['seconds']:.1f}",
                        points(row["comparison"]) + ", " + row["comparison"]["verdict"]] if is_peer else ["", ""])])
    return table(result["title"], ["whole process", "s", "processor s", "right", "ours ×", "ours - Keras, points"],
                 rows)
