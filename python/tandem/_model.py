"""tandem.Model, evaluate and predict: what a trained model is asked."""
from __future__ import annotations

import ctypes
import io
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple, TypedDict, Union

from . import _declarations as c
from ._library import (Error, Path, UsageError, as_object, call, callback, decode, encode, fill, keywords, lib,
                       part as part_of, plain, sized, spelled_path)
from ._work import EventCallback, run

if TYPE_CHECKING:
    import numpy
    import PIL.Image
    from numpy.typing import NDArray

Image = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "PIL.Image.Image", "NDArray[numpy.uint8]"]


class Guess(TypedDict):
    index: int
    label: str
    probability: float


class _Prediction(TypedDict):
    path: str
    top: List[Guess]


class Prediction(_Prediction, total=False):
    """The likeliest classes of one image; where there is none, "problem" says why."""
    problem: str


# As `tandem evaluate --json` prints it: docs/reference/json.md.
Evaluation = Dict[str, Any]


class Export(TypedDict):
    """What `tandem export --json` prints."""
    path: str
    form: str
    bytes: int
    network: str
    classes: int
    note: Optional[str]


class Model:
    """A trained model: a run folder, a .safetensors file of tandem, or weights of another program.

    Its name, classes (in the order of the labels) and number of parameters are members; as a context manager it closes
    itself.

    device   "cpu", "cuda", "cuda:1" or "ref"
    threads  0: one per core; never changes the results
    model    network of the weights of another program, if the file does not name it ("resnet50")
    classes  file with the names of their classes, one a line
    fit, resample, scale, padding, crop_fraction, size   their preprocessing, if the file does not say it
    """

    @keywords()
    def __init__(self, path: Path, *, device: str = "cpu", threads: int = 0, model: Optional[str] = None,
                 classes: Optional[Path] = None, fit: Optional[str] = None, resample: Optional[str] = None,
                 scale: Optional[str] = None, padding: Optional[str] = None, crop_fraction: float = 0.0,
                 size: int = 0) -> None:
        self.path = spelled_path("path", path)
        options = sized(c.tdm_model_options, device=device, threads=threads, network=model, classes=classes, fit=fit,
                        resample=resample, scale=scale, padding=padding, crop_fraction=crop_fraction, size=size)
        self._lock = threading.Lock()  # the library's model serves one thread at a time
        self._pointer = ctypes.c_void_p()
        self._process = os.getpid()
        run(lambda _sink: call(lib.tdm_model_open, encode(self.path), options, ctypes.byref(self._pointer), reads=path))
        self.name: str = decode(lib.tdm_model_name(self._pointer))
        self.classes: Tuple[str, ...] = tuple(decode(lib.tdm_model_class(self._pointer, i))
                                              for i in range(lib.tdm_model_classes(self._pointer)))
        self.parameters: int = lib.tdm_model_parameters(self._pointer)

    def __repr__(self) -> str:
        return f"<tandem.Model {self.path!r}: {self.name}, {len(self.classes)} classes, {self.parameters} parameters>"

    def __reduce__(self) -> Any:
        raise UsageError("a model cannot be given to another process: open it there")

    def close(self) -> None:
        """Free its memory."""
        with self._lock:
            pointer, self._pointer = self._pointer, ctypes.c_void_p()
            if os.getpid() == self._process:
                lib.tdm_model_close(pointer)

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) and os.getpid() == self._process:
            lib.tdm_model_close(self._pointer)

    def _opened(self) -> ctypes.c_void_p:
        if not self._pointer:
            raise UsageError(f"the model {self.path} is closed")
        if os.getpid() != self._process:  # which has none of the threads
            raise UsageError("a model cannot be used in a forked process: open it there")
        return self._pointer

    @keywords()
    def evaluate(self, source: Path, *, part: str = "all", batch: int = 64, memory: int = 0, cache: str = "none",
                 image_column: Optional[str] = None, label_column: Optional[str] = None,
                 raw_shape: Optional[str] = None, quarantine: Optional[Path] = None, follow: bool = False,
                 on_event: Optional[EventCallback] = None) -> Evaluation:
        """Evaluate every image of a source once, and return what `tandem evaluate --json` prints.

        part    "all", "train", "val" or "test": images as the model's training split them
        batch   images at once; never changes the results
        memory  bytes for prefetching and caches; 0: a part of what is free
        cache   "none", "auto", "encoded", "decoded" or "disk": what is kept of images once read
        image_column, label_column, raw_shape, quarantine, follow   as in train
        """
        options = sized(c.tdm_evaluate_options, source=spelled_path("source", source), part=part_of(part), batch=batch,
                        memory=memory, cache=cache)
        fill(options.how, image_column=image_column, label_column=label_column, raw_shape=raw_shape,
             quarantine=quarantine, follow=follow)

        def work(sink: Any) -> Evaluation:
            result = sized(c.tdm_evaluation)
            with self._lock:
                call(lib.tdm_model_evaluate, self._opened(), options, sink, result, reads=source)
                try:
                    return as_object(lambda writer: lib.tdm_evaluation_to_json(result, writer))
                finally:
                    lib.tdm_evaluation_release(result)

        return run(work, on_event)

    @keywords()
    def predict(self, images: Union[Image, Iterable[Image]], *, top: int = 5) -> List[Prediction]:
        """Classify images; tandem.predict describes the arguments."""
        listed: List[Any] = [images] if _is_one(images) else list(images)  # type: ignore[arg-type]
        if not listed:
            return []
        is_path = [isinstance(image, (str, os.PathLike)) for image in listed]
        if any(is_path) and not all(is_path):
            raise UsageError("images are paths and images in memory; those of one kind are accepted")
        encoded = [] if any(is_path) else [_encoded(image) for image in listed]
        n_top = plain("top", top)
        if not isinstance(n_top, int) or isinstance(n_top, bool):
            raise UsageError(f"option top is {top!r}; a whole number is accepted")
        predictions: List[Prediction] = []

        def take(_self: Any, prediction: Any, _error: Any) -> int:
            predictions.append(_prediction(prediction[0]))
            return c.TDM_OK

        sink = c.tdm_prediction_sink(None, callback(c.tdm_prediction_sink, "prediction", take))

        def work(_sink: Any) -> None:
            with self._lock:
                if encoded:
                    call(lib.tdm_model_predict_pictures, self._opened(), _pictures(encoded), len(encoded), n_top, sink)
                else:
                    paths = (ctypes.c_char_p * len(listed))(*[encode(image) for image in listed])
                    call(lib.tdm_model_predict, self._opened(), paths, len(listed), n_top, sink)

        try:
            run(work)
        except Error as error:
            # After all images the library reports that some have no prediction; each of those says why.
            if error.code != "INPUT" or not any("problem" in prediction for prediction in predictions):
                raise
        return predictions

    @keywords()
    def export(self, path: Path, *, form: Optional[str] = None, preprocess: bool = False) -> Export:
        """Write the model for other programs, and return what `tandem export --json` prints.

        form        "onnx", "safetensors" or "h5"; None: by the extension of path
        preprocess  onnx: take images as bytes
        """
        options = sized(c.tdm_export_options, path=spelled_path("path", path), form=form, preprocess=preprocess)
        result = sized(c.tdm_export_result)

        def work(_sink: Any) -> None:
            with self._lock:
                call(lib.tdm_model_export, self._opened(), options, result)

        run(work)
        return {"path": os.fspath(path), "form": decode(result.form), "bytes": result.bytes, "network": self.name,
                "classes": len(self.classes), "note": decode(result.note) or None}


def _prediction(struct: Any) -> Prediction:
    made: Prediction = {"path": decode(struct.path), "top": [
        {"index": guess.index, "label": decode(guess.label), "probability": guess.probability}
        for guess in struct.guesses[:struct.n_guesses]]}
    if struct.problem is not None:
        made["problem"] = decode(struct.problem)
    return made


_BYTES = (bytes, bytearray, memoryview)


def _is_pillow(image: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(image, pillow.Image)


def _is_one(images: Any) -> bool:
    """One image, or several? An array of one or of four dimensions, such as a column of a table, is several."""
    if isinstance(images, (str, os.PathLike, *_BYTES)) or _is_pillow(images):
        return True
    return getattr(images, "ndim", 1) in (0, 2, 3) or not hasattr(images, "__iter__")


# What Pillow does not write as PNG as it is, or would cut to 16 bits, and what it converts that to.
_CONVERTED = {"I": "I;16", "La": "LA", "PA": "RGBA", "RGBa": "RGBA"}
_OF_PNG = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


def _as_png(image: Any) -> bytes:
    from PIL import ImageOps
    file = io.BytesIO()
    try:
        upright = ImageOps.exif_transpose(image)  # as from its file
        if upright.mode not in _OF_PNG:
            upright = upright.convert(_CONVERTED.get(upright.mode, "RGB"))
        upright.save(file, "PNG", compress_level=1)
    except Exception as error:  # of many types: a cut file, a mode that is not converted, no pixels
        raise UsageError(f"found an image of Pillow, {image.mode} of {image.width} x {image.height}, that it does not "
                         f"write as PNG: {error}") from error
    return file.getvalue()


def _encoded(image: Any) -> bytes:
    """The content of a file with this image."""
    if isinstance(image, _BYTES):
        return bytes(image)
    if _is_pillow(image):
        return _as_png(image)
    shape, kind = getattr(image, "shape", None), str(getattr(image, "dtype", type(image).__name__))
    if shape is None or kind != "uint8" or len(shape) not in (2, 3) or len(shape) == 3 and shape[2] not in (1, 3):
        found = kind if shape is None else f"{kind} of shape {tuple(shape)}"
        raise UsageError(f"found an image of {found}; a path, encoded bytes, an image of Pillow, or an array of uint8 "
                         "of shape (height, width), (height, width, 1) or (height, width, 3) is accepted")
    form = b"P6" if shape[2:] == (3,) else b"P5"
    return b"%s %d %d 255\n%s" % (form, shape[1], shape[0], image.tobytes())


def _pictures(images: List[bytes]) -> Any:
    pictures = (c.tdm_picture * len(images))()
    for i, image in enumerate(images):
        pictures[i].name = b"image %d" % i
        pictures[i].bytes = ctypes.cast(ctypes.c_char_p(image), ctypes.c_void_p)
        pictures[i].length_bytes = len(image)
    return pictures


def _model(model: Union[Model, Path], device: str, threads: int) -> Model:
    return model if isinstance(model, Model) else Model(spelled_path("model", model), device=device, threads=threads)


@keywords()
def evaluate(model: Union[Model, Path], source: Path, *, part: str = "all", device: str = "cpu", threads: int = 0,
             batch: int = 64, memory: int = 0, cache: str = "none", image_column: Optional[str] = None,
             label_column: Optional[str] = None, raw_shape: Optional[str] = None, quarantine: Optional[Path] = None,
             follow: bool = False, on_event: Optional[EventCallback] = None) -> Evaluation:
    """Evaluate every image of a source once, and return what `tandem evaluate --json` prints.

    model            a Model, or a run folder or model file to open
    source           folder with a folder for each class, archive, list, table, …
    part             "all", "train", "val" or "test": images as the model's training split them
    device, threads  for opening it
    The other options are those of Model.evaluate.
    """
    return _model(model, device, threads).evaluate(
        source, part=part, batch=batch, memory=memory, cache=cache, image_column=image_column,
        label_column=label_column, raw_shape=raw_shape, quarantine=quarantine, follow=follow, on_event=on_event)


@keywords()
def predict(model: Union[Model, Path], images: Union[Image, Iterable[Image]], *, top: int = 5, device: str = "cpu",
            threads: int = 0) -> List[Prediction]:
    """Classify images, in order, and return the likeliest classes of each.

    model            a Model, or a run folder or model file to open; keep a Model to ask more than once
    images           one or several: paths of files and folders; or images in memory, as the bytes of a file, an image
                     of Pillow, or an array of uint8 of shape (height, width, 3) or (height, width)
    top              number of classes for each image
    device, threads  for opening it
    """
    return _model(model, device, threads).predict(images, top=top)
