"""Cases of tests/cli/test_python.sh: the Python module as its users meet it. Prints TAP lines."""
import contextlib
import ctypes
import gc
import http.server
import importlib.util
import itertools
import json
import logging
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import numpy

import tandem
from tandem import _declarations, _library, _loader, _names, _work

TANDEM, SOURCE, BUILD = (os.environ[name] for name in ("TANDEM", "SOURCE", "BUILD"))
COMPILER = os.environ.get("CC", "cc")
LOADER = dict(size=24, batch=7, seed=5, augment="flip,crop:2")
SMALL = dict(model="lenet5", size=12, batch=8, patience=0)


def command(*arguments):
    """The JSON that the command prints."""
    return json.loads(subprocess.run([TANDEM, *arguments, "--json"], check=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout)


def without(value, *keys):
    return {key: value[key] for key in value if key not in keys}


def copies(batches):
    return [(images.copy(), labels.copy()) for images, labels in batches]


def in_new_model(path):
    with tandem.Model("run", threads=1) as model:
        return model.predict(path, top=1)[0]["top"]


def setUpModule():
    command("synth", "pictures", "--classes", "3", "--per-class", "20", "--size", "32", "--seed", "3")


class Batches(unittest.TestCase):
    def assert_same(self, a, b):
        self.assertEqual(len(a), len(b))
        for (images, labels), (others, other_labels) in zip(a, b):
            numpy.testing.assert_array_equal(images, others)
            numpy.testing.assert_array_equal(labels, other_labels)

    @unittest.skipUnless(shutil.which(COMPILER), "no C compiler")
    def test_batches_are_those_of_the_c_loader(self):
        subprocess.run([COMPILER, "-I", f"{SOURCE}/include", f"{SOURCE}/tests/cli/dump_batches.c", "-o", "dump",
                        "-L", BUILD, "-l:libtandem.so.0"], check=True)
        expected = subprocess.run(["./dump", "pictures", "2"], check=True, stdout=subprocess.PIPE).stdout
        loader = tandem.Loader("pictures", threads=1, **LOADER)
        found = b"".join(images.tobytes() + labels.tobytes() + loader.items.tobytes()
                         for _ in range(2) for images, labels in loader)
        self.assertGreater(len(expected), 2 * 60 * 24 * 24 * 3)
        self.assertEqual(found, expected)

    def test_a_loader_says_what_it_holds(self):
        loader = tandem.Loader(pathlib.Path("pictures"), **LOADER)
        self.assertEqual((loader.images, len(loader), loader.epoch, loader.position), (60, 9, 0, 0))
        self.assertEqual(loader.classes, tuple(sorted(os.listdir("pictures"))))
        images, labels = next(iter(loader))
        self.assertEqual((images.shape, images.dtype), ((7, 24, 24, 3), numpy.uint8))
        self.assertEqual((labels.shape, labels.dtype), ((7,), numpy.int32))
        self.assertTrue(images.flags.writeable and images.flags.c_contiguous)
        grey = tandem.Loader("pictures", channels=1, size=8)
        self.assertEqual(next(iter(grey))[0].shape, (32, 8, 8, 1))

    def test_arrays_stay_when_the_loader_is_gone(self):
        loader = tandem.Loader("pictures", **LOADER)
        held, kept = [], []
        for images, labels in loader:
            held.append((images, labels))
            kept.append((images.copy(), labels.copy()))
        loader.close()
        del loader
        gc.collect()
        self.assert_same(held, kept)

    def test_each_loop_is_an_epoch_with_its_own_order(self):
        loader = tandem.Loader("pictures", **LOADER)
        first, second = copies(loader), copies(loader)
        self.assertEqual((loader.epoch, loader.position), (2, 0))
        self.assertFalse(all(numpy.array_equal(a[1], b[1]) for a, b in zip(first, second)))
        loader = tandem.Loader("pictures", **LOADER)
        for _ in itertools.islice(loader, 3):  # left early
            pass
        self.assertEqual(loader.position, 21)
        self.assert_same(copies(loader), second)

    def test_an_interrupted_first_batch_is_not_lost(self):
        loader = tandem.Loader("pictures", **LOADER)
        expected = copies(loader)
        loader.seek(0)
        with mock.patch.object(loader, "_copy", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            next(iter(loader))
        self.assert_same(copies(loader), expected)

    def test_a_state_continues_in_the_middle_of_an_epoch(self):
        loader = tandem.Loader("pictures", threads=1, **LOADER)
        for _ in loader:
            pass
        loop = iter(loader)
        for _ in range(4):
            next(loop)
        state = json.loads(json.dumps(loader.state()))
        self.assertEqual(state, {"epoch": 1, "position": 28, "seed": 5, "batch": 7, "images": 60})
        rest = copies(loop)
        resumed = tandem.Loader("pictures", threads=2, **LOADER)
        resumed.load_state(state)
        self.assert_same(copies(resumed), rest)
        self.assertEqual(resumed.state()["epoch"], 2)
        for _ in itertools.islice(resumed, 9):  # all batches, but not the end of the loop
            pass
        self.assertEqual((resumed.state()["epoch"], resumed.state()["position"]), (3, 0))
        with self.assertRaisesRegex(tandem.Error, "whose seed is 6"):
            resumed.load_state({**state, "seed": 6})
        with self.assertRaisesRegex(tandem.Error, "multiple of the batch of 7") as raised:
            resumed.seek(0, 5)
        self.assertEqual(raised.exception.code, "USAGE")

    def test_two_loaders_run_at_once(self):
        expected = [copies(tandem.Loader("pictures", **{**LOADER, "seed": seed})) for seed in (1, 2)]
        loaders = [tandem.Loader("pictures", **{**LOADER, "seed": seed}) for seed in (1, 2)]
        found = copies(itertools.chain(*zip(*loaders)))
        self.assert_same(found, list(itertools.chain(*zip(*expected))))
        results = {}
        threads = [threading.Thread(target=lambda seed=seed: results.update(
            {seed: copies(tandem.Loader("pictures", **{**LOADER, "seed": seed}))})) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assert_same(results[1] + results[2], expected[0] + expected[1])

    def test_what_cannot_go_on_is_an_error(self):
        loader = tandem.Loader("pictures", **LOADER)
        old = iter(loader)
        next(old)
        next(iter(loader))
        with self.assertRaisesRegex(tandem.Error, "another loop"):
            next(old)
        child = os.fork()
        if child == 0:
            try:
                next(iter(loader))
            except tandem.Error as error:
                os._exit(7 if "forked" in str(error) else 1)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        loader.close()
        loader.close()
        with self.assertRaisesRegex(tandem.Error, "closed"):
            next(iter(loader))
        for wrong in (dict(size=0), dict(size=2**40), dict(size="x"), dict(part="some"), dict(augment="flop"),
                      dict(part="test"), dict(seed=-1)):
            with self.assertRaises(tandem.Error, msg=str(wrong)):
                tandem.Loader("pictures", **wrong)
        with self.assertRaises(TypeError):
            tandem.Loader("pictures", shufle=True)

    def test_a_loader_that_nobody_waits_for_is_closed(self):
        closed, is_left = [], threading.Event()
        really_open, really_close = _library.lib.tdm_loader_open, _library.lib.tdm_loader_close
        threads = []

        def open_late(*arguments):
            self.assertTrue(is_left.wait(60))
            return really_open(*arguments)

        def close(pointer):
            closed.append(bool(pointer))
            really_close(pointer)

        def leave_early(work):  # as at a second Ctrl-C
            threads.append(threading.Thread(target=work, args=(None,)))
            threads[0].start()
            raise KeyboardInterrupt

        def leave_late(work):  # as at a Ctrl-C after the library's answer
            is_left.set()
            work(None)
            raise KeyboardInterrupt

        with mock.patch.object(_library.lib, "tdm_loader_open", open_late), \
                mock.patch.object(_library.lib, "tdm_loader_close", close):
            with mock.patch.object(_loader, "run", leave_early), self.assertRaises(KeyboardInterrupt):
                tandem.Loader("pictures", size=8)
            self.assertEqual(closed, [])
            is_left.set()
            threads[0].join()
            self.assertEqual(closed, [True])
            with mock.patch.object(_loader, "run", leave_late), self.assertRaises(KeyboardInterrupt):
                tandem.Loader("pictures", size=8)
            self.assertEqual(closed, [True, True])
            with self.assertRaises(tandem.NotFoundError):
                tandem.Loader("nowhere")
            self.assertEqual(closed, [True, True])

    def test_a_loader_shows_itself_and_stays_in_its_process(self):
        loader = tandem.Loader("pictures", part="train", split=(0.8, 0.2), batch=numpy.int64(32), size=8)
        self.assertEqual(repr(loader),
                         "<tandem.Loader 'pictures', part train: 48 images of 3 classes, 2 batches of 32>")
        with self.assertRaisesRegex(TypeError, "another process"):
            pickle.dumps(loader)


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.events, cls.threads = [], set()

        def on_event(event):
            cls.events.append(event)
            cls.threads.add(threading.current_thread())

        cls.result = tandem.train("pictures", "run", epochs=4, lr=0.02, split=(0.8, 0.2), on_event=on_event, **SMALL)

    def test_the_result_is_typed_and_recorded(self):
        result = self.result
        self.assertEqual(set(result), set(tandem.TrainResult.__annotations__))
        self.assertEqual(set(result["val"]), set(tandem.Score.__annotations__))
        self.assertEqual((result["epochs"], result["val"]["n"], result["run"]), (4, 12, "run"))
        options = json.load(open("run/run.json", encoding="utf-8"))["options"]
        self.assertEqual((options["lr"], options["size"], options["split-train"]), (0.02, 12, 0.8))
        with self.assertRaisesRegex(tandem.UsageError, ": resume continues it, or give another out$"):
            tandem.train("pictures", "run", **SMALL)

    def test_events_come_in_the_callers_thread(self):
        epochs = [event for event in self.events if event.kind == "epoch"]
        self.assertEqual([event.epoch for event in epochs], [1, 2, 3, 4])
        best = next(event for event in epochs if event.epoch == self.result["best_epoch"])
        self.assertEqual(best.val, self.result["val"])
        self.assertLessEqual({"phase_begin", "epoch", "checkpoint"}, {event.kind for event in self.events})
        self.assertEqual(self.threads, {threading.main_thread()})

    def test_answers_are_those_of_the_command(self):
        self.assertEqual(tandem.evaluate("run", "pictures", batch=9), command("evaluate", "run", "pictures"))
        self.assertEqual(tandem.evaluate("run", "pictures", part="val")["correct"], self.result["val"]["correct"])
        paths = sorted(str(path) for path in pathlib.Path("pictures").rglob("*.jpg"))[:5]
        expected = command("predict", "run", *paths, "--top", "2")["predictions"]
        with tandem.Model("run", threads=1) as model:
            self.assertEqual(model.classes, tuple(sorted(os.listdir("pictures"))))
            found = model.predict(paths, top=2)
            in_memory = model.predict([pathlib.Path(path).read_bytes() for path in paths], top=2)
        rounded = [[(guess["index"], guess["label"], round(guess["probability"], 6)) for guess in one["top"]]
                   for one in expected]
        for answers in (found, in_memory):
            self.assertEqual([[(guess["index"], guess["label"], round(guess["probability"], 6)) for guess in one["top"]]
                              for one in answers], rounded)
        self.assertEqual([one["path"] for one in found], paths)
        with self.assertRaisesRegex(tandem.Error, "closed"):
            model.predict(paths)

    def test_an_image_without_an_answer_says_why(self):
        pathlib.Path("broken.jpg").write_bytes(b"no image")
        good = next(str(path) for path in pathlib.Path("pictures").rglob("*.jpg"))
        first, second = tandem.predict("run", ["broken.jpg", good], top=1)
        self.assertEqual((first["top"], len(second["top"]), "problem" in second), ([], 1, False))
        self.assertTrue(first["problem"])

    def test_images_in_memory_are_answered_as_their_files(self):
        numbers = numpy.random.default_rng(1)
        colour, grey = (numbers.integers(0, 256, shape, numpy.uint8) for shape in ((20, 30, 3), (20, 30)))
        pathlib.Path("colour.ppm").write_bytes(b"P6 30 20 255\n" + colour.tobytes())
        pathlib.Path("grey.pgm").write_bytes(b"P5 30 20 255\n" + grey.tobytes())
        with tandem.Model("run", threads=1) as model:
            of_files = [one["top"] for one in model.predict(["colour.ppm", "grey.pgm"])]
            in_memory = [colour[:, ::-1][:, ::-1], grey, grey[..., None]]
            self.assertEqual([one["top"] for one in model.predict(in_memory)], of_files + of_files[1:])
            self.assertEqual([one["top"] for one in model.predict(numpy.stack([colour, colour]))], of_files[:1] * 2)
            self.assertEqual(model.predict(colour, top=1)[0]["top"], of_files[0][:1])
            names = numpy.array(["colour.ppm", "grey.pgm"])
            self.assertEqual([one["path"] for one in model.predict(names)], ["colour.ppm", "grey.pgm"])
            self.assertEqual([one["top"] for one in model.predict(names.astype(object))], of_files)
            content = pathlib.Path("colour.ppm").read_bytes()
            for one in (content, bytearray(content), memoryview(content)):
                self.assertEqual([one["top"] for one in model.predict(one)], of_files[:1])
            self.assertEqual(model.predict([]), [])
            for wrong, words in ((["colour.ppm", colour], "one kind"), (colour / 255, "float64 of shape"),
                                 (colour.transpose(2, 0, 1), r"uint8 of shape \(3, 20, 30\)"),
                                 ([3], "image of int"), (3, "image of int")):
                with self.assertRaisesRegex(tandem.UsageError, words):
                    model.predict(wrong)
            with self.assertRaisesRegex(tandem.UsageError, "option top"):
                model.predict(colour, top="x")
            with self.assertRaisesRegex(tandem.UsageError, "option top is True; a whole number"):
                model.predict(colour, top=True)
            self.assertRegex(repr(model), r"^<tandem.Model 'run': lenet5, 3 classes, \d+ parameters>$")
            with self.assertRaisesRegex(TypeError, "another process"):
                pickle.dumps(model)

    @unittest.skipUnless(importlib.util.find_spec("PIL"), "no Pillow")
    def test_images_of_pillow_are_answered_upright(self):
        from PIL import Image
        turned = Image.fromarray(numpy.random.default_rng(2).integers(0, 256, (20, 30, 3), numpy.uint8))
        turned.getexif()[0x112] = 6
        turned.save("turned.png", exif=turned.getexif())
        expected = tandem.predict("run", "turned.png")[0]["top"]
        with Image.open("turned.png") as image:
            self.assertEqual(tandem.predict("run", image)[0]["top"], expected)
            self.assertEqual(tandem.predict("run", [image, image])[1]["top"], expected)

    @unittest.skipUnless(importlib.util.find_spec("PIL"), "no Pillow")
    def test_images_of_pillow_have_any_mode(self):
        from PIL import Image
        colour = Image.fromarray(numpy.random.default_rng(3).integers(0, 256, (20, 30, 3), numpy.uint8))
        grey = Image.fromarray(numpy.arange(600, dtype=numpy.int32).reshape(20, 30) * 100)
        with tandem.Model("run", threads=1) as model:
            for image in (colour.convert("CMYK"), colour.convert("YCbCr"), colour.convert("HSV"),
                          colour.convert("F"), colour.convert("RGBA").convert("RGBa"), colour.convert("RGBX")):
                expected = model.predict(image.convert("RGB"))[0]["top"]
                self.assertEqual(model.predict(image)[0]["top"], expected, image.mode)
            grey.save("grey16.png")
            self.assertEqual(model.predict(grey)[0]["top"], model.predict("grey16.png")[0]["top"])
            with self.assertRaisesRegex(tandem.UsageError, "image of Pillow, RGB of 0 x 3, that"):
                model.predict(Image.new("RGB", (0, 3)))

    def test_a_forked_process_opens_models_of_its_own(self):
        paths = sorted(str(path) for path in pathlib.Path("pictures").rglob("*.jpg"))[:3]
        with tandem.Model("run", threads=2) as model:
            expected = [one["top"] for one in model.predict(paths, top=1)]
            with multiprocessing.get_context("fork").Pool(2) as pool:
                self.assertEqual(pool.map(in_new_model, paths), expected)
                with self.assertRaisesRegex(TypeError, "another process"):
                    pool.apply(model.predict, (paths,))

    def test_a_model_is_exported_as_by_the_command(self):
        expected = command("export", "run", "-o", "expected.onnx")
        with tandem.Model("run") as model:
            self.assertEqual(model.export("model.onnx"), {**without(expected, "exit", "command"), "path": "model.onnx"})
            with self.assertRaisesRegex(tandem.UsageError, "no option format; use form$"):
                model.export("model.onnx", format="onnx")
        self.assertEqual(*[pathlib.Path(name).read_bytes() for name in ("model.onnx", "expected.onnx")])

    def test_none_is_no_path(self):
        with tandem.Model("run") as model:
            for function, arguments, name in ((tandem.Model, [None], "path"), (tandem.Loader, [None], "source"),
                                              (tandem.predict, [None, "pictures"], "model"),
                                              (tandem.evaluate, ["run", None], "source"),
                                              (model.evaluate, [None], "source"), (model.export, [None], "path")):
                with self.assertRaisesRegex(tandem.UsageError, f"^option {name} is None; a path is accepted$"):
                    function(*arguments)
            with self.assertRaisesRegex(tandem.UsageError, "no source of images is given"):
                model.evaluate("")
            with self.assertRaisesRegex(tandem.UsageError, "no path of a file is given"):
                model.export("")

    def test_runs_are_those_of_the_command(self):
        tandem.train("pictures", "other/run", epochs=2, split=(0.8, 0.2), **SMALL)
        self.assertEqual(tandem.runs.list("other"), command("runs", "list", "other")["runs"])
        self.assertEqual(tandem.runs.show("run"), command("runs", "show", "run")["runs"][0])
        self.assertEqual(tandem.runs.compare("run", "other/run"), command("runs", "compare", "run", "other/run"))
        tandem.runs.report("page.html", "run", "other/run")
        self.assertIn("other/run", open("page.html", encoding="utf-8").read())
        with self.assertRaisesRegex(tandem.UsageError, "^option run is of type list; a path is accepted$"):
            tandem.runs.report("page.html", ["run", "other/run"])

    def test_the_loader_divides_as_training_does(self):
        parts = [tandem.Loader("pictures", part=part, split=(0.8, 0.2), size=8) for part in ("train", "val")]
        self.assertEqual([loader.images for loader in parts], [48, 12])
        evaluated = tandem.evaluate("run", "pictures", part="val")
        labels = numpy.concatenate([labels for _, labels in parts[1]])
        self.assertEqual([one["n"] for one in evaluated["per_class"]], numpy.bincount(labels).tolist())

    def test_other_threads_run_while_it_trains(self):
        count, is_over = 0, False

        def advance():
            nonlocal count
            while not is_over:
                count += 1
                time.sleep(0.001)

        thread = threading.Thread(target=advance)
        thread.start()
        began = time.monotonic()
        tandem.train("pictures", "counted", epochs=30, threads=1, **SMALL)
        seconds, n = time.monotonic() - began, count
        is_over = True
        thread.join()
        self.assertGreater(n, 100 * seconds, f"{n} turns in {seconds:.2f} s")

    def test_an_exception_of_the_callback_stops_after_a_checkpoint(self):
        def on_event(event):
            if event.kind == "epoch" and event.epoch == 2:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough") as raised:
            tandem.train("pictures", "left", epochs=300, on_event=on_event, **SMALL)
        self.assertEqual(raised.exception.__cause__.code, "STOPPED")
        run = tandem.runs.show("left")
        self.assertEqual(run["state"], "stopped")
        result = tandem.train("pictures", "left", resume=True)  # the stop is over
        self.assertEqual((result["epochs"], tandem.runs.show("left")["state"]), (300, "finished"))

    def test_an_exception_after_the_work_stops_nothing_else(self):
        def on_event(_event):
            while _library.stop_flag._running:
                time.sleep(0.01)
            raise LookupError("late")

        with self.assertRaisesRegex(LookupError, "late"):
            tandem.train("pictures", "late", epochs=1, on_event=on_event, **SMALL)
        self.assertFalse(_library.lib.tdm_stop_is_requested())
        self.assertEqual(tandem.train("pictures", "after", epochs=1, **SMALL)["epochs"], 1)

    def test_a_path_need_not_be_text(self):
        folder = os.fsdecode(b"caf\xe9")
        shutil.copytree("pictures", folder)
        result = tandem.train(folder, folder + "-run", epochs=1, **SMALL)
        self.assertEqual(result["run"], folder + "-run")
        self.assertEqual(tandem.train(folder, folder + "-run", resume=True)["epochs"], 1)
        with self.assertRaisesRegex(tandem.UsageError, r"^option weights is 'caf\\udce9', which is not UTF-8"):
            tandem.train("pictures", "none", weights=folder, **SMALL)

    def test_ctrl_c_stops_as_in_the_command(self):
        program = ("import tandem\n"
                   "def on_event(event):\n"
                   "    if event.kind == 'epoch' and event.epoch == 3: print('now', flush=True)\n"
                   f"tandem.train('pictures', 'stopped', epochs=1000000, on_event=on_event, **{SMALL})\n")
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        self.assertEqual(child.stdout.readline(), "now\n")
        child.send_signal(signal.SIGINT)
        _, text = child.communicate(timeout=60)
        self.assertEqual(child.returncode, -signal.SIGINT, text)
        self.assertRegex(text, "KeyboardInterrupt\n$")
        self.assertRegex(text, r"tandem.Error: .*\n.*stopped on request")
        run = tandem.runs.show("stopped")
        self.assertEqual(run["state"], "stopped")
        self.assertGreaterEqual(run["epochs"], 3)
        self.assertTrue(os.path.exists("stopped/last.safetensors"), os.listdir("stopped"))


    def test_pretrained_weights_are_fetched_where_that_is_allowed(self):
        published = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_no_top.h5"
        command("synth", "photos", "--classes", "2", "--per-class", "10", "--size", "80", "--seed", "1")
        tandem.train("photos", "maker", model="mobilenetv2", size=32, epochs=0, steps=1, batch=8)
        command("export", "maker", "-o", f"served/{published}")
        requests = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory="served")

            def log_message(self, form, *values):
                requests.append(self.path)

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        mirror = f"http://127.0.0.1:{server.server_address[1]}"
        options = dict(epochs=1, batch=8, size=32)
        with mock.patch.dict(os.environ, TANDEM_HOME=os.path.abspath("fresh"), no_proxy="127.0.0.1"):
            tandem.train("photos", "asked-nothing", mirror=mirror, **options)
            with self.assertLogs("tandem", "WARNING") as offline:
                tandem.train("photos", "offline", fetch=True, mirror="http://127.0.0.1:9/", **options)
            with self.assertRaisesRegex(tandem.Error, "127.0.0.1:9/mobilenet_v2"):
                tandem.train("photos", "named", weights="mobilenetv2-notop", fetch=True, mirror="http://127.0.0.1:9/",
                             **options)
            self.assertEqual(requests, [])
            with self.assertLogs("tandem", "INFO") as fetched:
                tandem.train("photos", "fetched", fetch=True, mirror=mirror, **options)
        server.shutdown()
        server.server_close()
        self.assertIn("training goes on without them", offline.output[0])
        self.assertEqual(requests, [f"/{published}"])
        self.assertRegex("\n".join(fetched.output), "fetched .*no_top.h5")
        network = json.load(open("fetched/run.json", encoding="utf-8"))
        self.assertIn("mobilenetv2", json.dumps(network))

    def test_a_second_ctrl_c_does_not_wait(self):
        release, ended = threading.Event(), threading.Event()

        def work(_sink):
            release.wait(30)
            ended.set()

        timers = [threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)) for seconds in (0.2, 0.6)]
        for timer in timers:
            timer.start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            _work.run(work)
        self.assertGreater(time.monotonic() - began, 0.5)
        self.assertFalse(ended.is_set())
        self.assertTrue(_library.lib.tdm_stop_is_requested())
        release.set()
        for thread in threading.enumerate():
            if thread.name == "tandem":
                thread.join()
        self.assertFalse(_library.lib.tdm_stop_is_requested())


class Page(unittest.TestCase):
    def run_blocks(self, *modules):
        """Run the blocks of docs/how-to/python.md that import those modules."""
        os.makedirs("page", exist_ok=True)
        pictures = sorted(pathlib.Path("pictures").rglob("*.jpg"))
        for name, target in (("photos", pathlib.Path("pictures")), ("new-photos", pathlib.Path("pictures")),
                             ("cat.jpg", pictures[0]), ("dog.jpg", pictures[-1])):
            with contextlib.suppress(FileExistsError):
                os.symlink(target.resolve(), f"page/{name}")
        text = pathlib.Path(SOURCE, "docs/how-to/python.md").read_text(encoding="utf-8")
        blocks = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.S)
                  if {word for word in ("torch", "keras") if f"import {word}" in block or f", {word}" in block}
                  == set(modules)]
        self.assertTrue(blocks)
        done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd="page", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_page_for_users_works(self):
        self.run_blocks()

    # Only bench/peers/setup brings these two.
    if importlib.util.find_spec("torch"):
        def test_the_page_works_in_pytorch(self):
            self.run_blocks("torch")

    if importlib.util.find_spec("keras"):
        def test_the_page_works_in_keras(self):
            self.run_blocks("keras")


class Failures(unittest.TestCase):
    def test_errors_carry_their_chain(self):
        with self.assertRaises(tandem.Error) as raised:
            tandem.train("nowhere", "none", epochs=1)
        error = raised.exception
        self.assertEqual(error.code, "INPUT")
        self.assertGreaterEqual(len(error.frames), 2)
        self.assertIn("nowhere", error.frames[0].text)
        self.assertRegex(error.frames[0].file, r"\.c$")
        self.assertTrue(str(error).startswith(error.frames[-1].text))
        self.assertIn(error.frames[0].text, str(error))
        self.assertTrue(error.advice)

    def test_wrong_options_are_named_as_they_were_typed(self):
        for options, words in ((dict(epoch=3), "has no option epoch; did you mean epochs\\?$"),
                               (dict(learning_rate=0.1), "tandem.train has no option learning_rate; use lr$"),
                               (dict(num_workers=2), "no option num_workers; use threads$"),
                               (dict(validation_split=0.2), r"; use split=\(0.8, 0.2\) "),
                               (dict(hflip=True), '; use augment="flip"$'), (dict(data="pictures"), "; use source$"),
                               (dict(verbose=1), r"; help\(tandem.train\) lists its options$"),
                               (dict(epochs="3"), "^option epochs is a string; a number or None is accepted$"),
                               (dict(lr=float("nan")), "^option lr is nan"),
                               (dict(lr=[0.1]), "^option lr is of type list"),
                               (dict(epochs={"n": 3}), "^option epochs is of type dict"),
                               (dict(epochs=True), "^option epochs is True; a number or None is accepted$"),
                               (dict(batch=0), '^option batch is 0; 1 to 65536 or "auto" is accepted$'),
                               (dict(fetch=["yes"]), "^option fetch is of type list; True, False or None is accepted$"),
                               (dict(mirror=3), "^option mirror is 3; a text or None is accepted$"),
                               (dict(resume=1), "^option resume is 1; True or False is accepted$"),
                               (dict(eval_only=True), r"; use tandem.evaluate\(model, source\)$"),
                               (dict(weight_decay=-0.5), "option weight_decay is -0.5; 0 to 1 is accepted"),
                               (dict(eval_every=1.5), "option eval_every is 1.5; a whole number is accepted"),
                               (dict(image_column=4), "option image_column is a number; a string is accepted"),
                               (dict(split="0.8,0.2"), "^option split is '0.8,0.2'"),
                               (dict(split=(0.9, "x")), "^option split is a string"),
                               (dict(on_event=3), "^option on_event is 3; a function"),
                               (dict(out=["a"]), "^option out is of type list; a path is accepted$"),
                               (dict(bn="all"), "option bn is 'all'; shard, batch or frozen"),
                               (dict(split=(0.9, 0.3)), "option split is 0.9,0.3"),
                               (dict(unfreeze_layers=2), "option unfreeze_layers is 2, .*: unfreeze=N, ")):
            with self.assertRaisesRegex(tandem.UsageError, words) as raised:
                tandem.train("pictures", **{"out": "none", **options})
            self.assertEqual(raised.exception.code, "USAGE")
            self.assertIsInstance(raised.exception, ValueError)
            self.assertIsInstance(raised.exception, TypeError)
            self.assertIsInstance(pickle.loads(pickle.dumps(raised.exception)), tandem.UsageError)
        for function, options, words in (
                (tandem.Loader, dict(batch_size=8), "^tandem.Loader has no option batch_size; use batch$"),
                (tandem.Loader, dict(shuffle=2), "^option shuffle is 2; True or False is accepted$"),
                (tandem.Loader, dict(shuffle="False"), "^option shuffle is 'False'; True or False is accepted$"),
                (tandem.Loader, dict(size=8.5), "^option size is 8.5; a whole number"),
                (tandem.Loader, dict(batch=True), "^option batch is True; a whole number"),
                (tandem.Loader, dict(augment="auto"), "option augment is auto, .*; none or a list such as flip,"),
                (tandem.Loader, dict(part="valid"), "^option part is 'valid'; all, train, val or test is accepted$"),
                (tandem.evaluate, dict(num_workers=2), "^tandem.evaluate has no option num_workers; use threads$"),
                (tandem.Model, dict(arch="resnet50"), "^tandem.Model has no option arch; use model$"),
                (tandem.Model, dict(model=5), "^option model is 5; a text or a path is accepted$")):
            with self.assertRaisesRegex(tandem.UsageError, words):
                function("pictures", **options)
        for name in ("epochs", "weight_decay", "image_column", "crop_fraction", "split"):
            self.assertIn(f"    {name}: ", tandem.train.__doc__)
        self.assertFalse(os.path.exists("none"))
        self.assertIn("passes over the training images; 0: no limit (int or None, default: 20)", tandem.train.__doc__)

    def test_words_of_other_tools_are_answered_in_python(self):
        names = {*_declarations.TRAIN_HELP, "source", "out", "resume"}
        self.assertGreater(len(_declarations.HINTS), 60)
        for word, _, _ in _declarations.HINTS:
            self.assertNotRegex(_names.meant(word, names, "tandem.train"), r"(^|\s)--?\w")
        hints = [("one", "optimizer", "--optimizer adam:beta1=0.9,beta2=0.999"), ("two", "resume", "-o RUN --resume"),
                 ("three", "batch", "--batch N (memory follows --shard, not the batch)"),
                 ("four", "SRC", "one folder for each class in SRC")]
        with mock.patch.object(_declarations, "HINTS", hints):
            self.assertEqual([_names.meant(word, names, "tandem.train") for word, _, _ in hints],
                             ['use optimizer="adam:beta1=0.9,beta2=0.999"', "use out=RUN resume=True",
                              "use batch=N (memory follows shard, not the batch)",
                              "use one folder for each class in source"])

    def test_options_in_sentences_are_assignments(self):
        for text, expected in (
                ("with --weights mobilenetv2-notop --fetch (9 MB) it starts",
                 'with weights="mobilenetv2-notop", fetch=True (9 MB) it starts'),
                ("; --augment none switches it off", '; augment="none" switches it off'),
                ("--unfreeze 2 --bn frozen --epochs 10 trains", 'unfreeze=2, bn="frozen", epochs=10 trains'),
                ("use --lr 1e-05, not 0.1; --resume continues", "use lr=1e-05, not 0.1; resume continues"),
                ("a test (--split 0.8,0.1,0.1) is", "a test (split=(0.8, 0.1, 0.1)) is"),
                ("one of --epochs, --steps and --minutes must", "one of epochs, steps and minutes must"),
                ("option --weight-decay is -0.5; --weights gives", "option weight_decay is -0.5; weights gives"),
                ("such as --augment flip, or leave --views out", "such as augment flip, or leave views out"),
                ("--model NAME (tandem train --help lists them)", "model=NAME (tandem train --help lists them)"),
                ("after tandem weights fetch x (9 MB), or with --fetch, it", "after tandem weights fetch x (9 MB), or "
                 "with fetch=True, it"),
                ("  tandem train photos --fetch", "  tandem train photos --fetch"),
                ("the file of 'tandem train x --trace' is", "the file of 'tandem train x --trace' is"),
                ("give another -o", "give another out")):
            self.assertEqual(_names.spelled(text), expected)

    def test_what_is_not_there_is_a_file_not_found(self):
        for function, arguments in ((tandem.train, ["nowhere", "none"]), (tandem.Loader, ["nowhere"]),
                                    (tandem.Model, ["nowhere"]), (tandem.runs.show, ["nowhere"])):
            with self.assertRaises(FileNotFoundError, msg=function) as raised:
                function(*arguments)
            self.assertIsInstance(raised.exception, tandem.NotFoundError)
            self.assertIn("nowhere", str(raised.exception))

    def test_nothing_is_printed_and_logging_has_it_all(self):
        program = ("import os, sys, logging, tandem\n"
                   "if len(sys.argv) > 1: logging.basicConfig(level=logging.INFO, stream=sys.stdout)\n"
                   "tandem.Loader('warned', part='val', split=(0.9, 0.1), size=8)\n"
                   f"tandem.train('warned', 'run-' + str(os.getpid()), epochs=1, **{SMALL})\n")
        subprocess.run(["cp", "-r", "pictures", "warned"], check=True)
        folder = sorted(os.listdir("warned"))[0]
        os.symlink("nowhere", f"warned/{folder}/nothing.jpg")  # an image that cannot be read
        quiet, shown = [subprocess.run([sys.executable, "-c", program, *more], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, timeout=120) for more in ([], ["show"])]
        self.assertEqual((quiet.stdout, quiet.stderr, quiet.returncode), ("", "", 0))
        self.assertEqual((shown.stderr, shown.returncode), ("", 0))
        self.assertRegex(shown.stdout, "(?m)^WARNING:tandem:.*nothing.jpg")
        self.assertRegex(shown.stdout, r"(?m)^INFO:tandem:epoch 1: \d+ of \d+ validation images right")


class Ends(unittest.TestCase):
    """Python ends while the library's threads work and report."""

    BEGIN = ("import logging, os, sys, threading, time, tandem\n"
             "class Slow(logging.Handler):\n"
             "    def emit(self, record): time.sleep(0.002)\n"
             "logging.basicConfig(level=logging.DEBUG, handlers=[Slow()])\n"
             "begun = threading.Event()\n"
             "def in_daemon(function):\n"
             "    threading.Thread(target=function, daemon=True).start()\n"
             "    begun.wait()\n"
             "def load():\n"
             "    for n, batch in enumerate(loader):\n"
             "        if n == 2: begun.set()\n"
             "def train(on_event):\n"
             f"    tandem.train('broken', 'end-' + str(os.getpid()), epochs=1000000, on_event=on_event, **{SMALL})\n")
    LOADER = "loader = tandem.Loader('broken', size=16, batch=4, threads=2)\n"

    def end(self, program, status, text=""):
        children = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", self.BEGIN + program],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        for child in children:
            printed, complaint = child.communicate(timeout=120)
            self.assertEqual((child.returncode, printed), (status, ""), complaint)
            self.assertRegex(complaint, text or "^$")
        return [run for run in (f"end-{child.pid}" for child in children) if os.path.exists(run)]

    @classmethod
    def setUpClass(cls):
        shutil.copytree("pictures", "broken")
        for i, folder in enumerate(sorted(os.listdir("broken"))):
            for n in range(10):
                pathlib.Path(f"broken/{folder}/{i}{n}.jpg").write_bytes(b"\xff\xd8 no image %d %d" % (i, n))

    def test_by_sys_exit_in_a_callback(self):
        runs = self.end("train(lambda event: sys.exit(7) if event.kind == 'epoch' else None)", 7)
        self.assertEqual([tandem.runs.show(run)["state"] for run in runs], ["stopped"] * 4)

    def test_by_an_exception_in_a_callback(self):
        self.end("train(lambda event: 1 // 0 if event.kind == 'epoch' else None)", 1, "ZeroDivisionError: .*\n$")

    def test_while_a_daemon_trains(self):
        runs = self.end("in_daemon(lambda: train(lambda event: event.kind == 'epoch' and begun.set()))", 0)
        self.assertEqual([tandem.runs.show(run)["state"] for run in runs], ["stopped"] * 4)

    def test_while_another_thread_trains(self):
        self.end("thread = threading.Thread(target=lambda: tandem.train('broken', 'end-' + str(os.getpid()), epochs=3, "
                 f"**{SMALL}))\nthread.start()", 0)

    def test_in_the_epoch_of_a_loader(self):
        self.end(self.LOADER + "for batch in loader: sys.exit(7)", 7)
        self.end(self.LOADER + "next(iter(loader))\n1 // 0", 1, "ZeroDivisionError: .*\n$")
        self.end(self.LOADER + "for batch in loader: pass\nnext(iter(loader))", 0)

    def test_while_a_daemon_loads(self):
        self.end(self.LOADER + "in_daemon(lambda: [load() for _ in range(1000000)])", 0)

    def test_in_a_forked_process(self):
        self.end(self.LOADER + "next(iter(loader))\nchild = os.fork()\nif child == 0: sys.exit(0)\n"
                 "sys.exit(os.waitpid(child, 0)[1])", 0)

    def test_by_more_ctrl_c_than_can_wait(self):
        program = ("from tandem import _work\nimport signal\n"
                   "def interrupt():\n"
                   "    for _ in range(200):\n"  # the third of a quiet machine is enough
                   "        time.sleep(0.4)\n"
                   "        os.kill(os.getpid(), signal.SIGINT)\n"
                   "threading.Thread(target=interrupt, daemon=True).start()\n"
                   "_work.run(lambda _sink: time.sleep(200))")
        self.end(program, -signal.SIGINT, "KeyboardInterrupt")


class Declarations(unittest.TestCase):
    @unittest.skipUnless(shutil.which(COMPILER), "no C compiler")
    def test_structs_have_the_layout_of_the_c_compiler(self):
        structs = [(name, kind) for name, kind in vars(_declarations).items()
                   if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure]
        self.assertGreater(len(structs), 30)
        headers = sorted(name for name in os.listdir(f"{SOURCE}/include/tandem") if name.endswith(".h"))
        lines = [f"#include <tandem/{header}>" for header in headers] + ["#include <stdio.h>", "int main(void) {"]
        expected = []
        for name, kind in structs:
            lines.append(f'printf("%zu\\n", sizeof(struct {name}));')
            expected.append((name, ctypes.sizeof(kind)))
            for member, _ in kind._fields_:
                lines.append(f'printf("%zu\\n", offsetof(struct {name}, {member}));')
                expected.append((f"{name}.{member}", getattr(kind, member).offset))
        pathlib.Path("layout.c").write_text("\n".join(lines + ["}"]), encoding="utf-8")
        subprocess.run([COMPILER, "-I", f"{SOURCE}/include", "layout.c", "-o", "layout"], check=True)
        found = subprocess.run(["./layout"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        self.assertEqual(expected, [(name, int(value)) for (name, _), value in zip(expected, found)])
        self.assertEqual(len(expected), len(found))

    def test_options_are_those_of_the_command(self):
        listed = {option["name"].replace("-", "_") for option in command("help", "train")["commands"][0]["options"]}
        own = set(_declarations.TRAIN_HELP)
        self.assertEqual(own, set(tandem.TrainOptions.__annotations__))
        self.assertLessEqual(own, listed)
        self.assertEqual(listed - own - {"out", "resume", "fetch", "mirror", "trace"}, set())


class Tap(unittest.TestResult):
    def line(self, word, test, error=None):
        print(f"{word} - Python: {test._testMethodName[5:].replace('_', ' ')}", flush=True)
        if error:
            print("".join(f"# {line}\n" for line in self._exc_info_to_string(error, test).splitlines()), end="")

    def addSuccess(self, test):
        self.line("ok", test)

    def addSkip(self, test, reason):
        print(f"skip - Python: {test._testMethodName[5:].replace('_', ' ')}: {reason}", flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        if isinstance(test, unittest.TestCase):
            self.line("not ok", test, error)
        else:
            print(f"not ok - Python: {test}\n{self._exc_info_to_string(error, test)}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.line("not ok", test, error)


if __name__ == "__main__":
    logging.raiseExceptions = True
    result = Tap()
    with contextlib.suppress(BrokenPipeError):
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]).run(result)
    sys.exit(not result.wasSuccessful())
