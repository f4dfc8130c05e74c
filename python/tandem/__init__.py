"""tandem: from a folder of labelled images to a trained, checked classifier.

    import tandem

    result = tandem.train("photos", "runs/first", epochs=5)
    print(result["val"]["accuracy"])
    tandem.evaluate("runs/first", "new-photos")
    tandem.predict("runs/first", ["cat.jpg", "dog.jpg"], top=1)

    for images, labels in tandem.Loader("photos", size=224, batch=64):   # NumPy arrays, for any framework
        ...

Failures are tandem.Error; that of an option or a call is a UsageError, and that of a file that is not there a
NotFoundError. Progress goes to logging.getLogger("tandem") and to on_event. Nothing is printed, and nothing asks.
"""
from importlib.util import find_spec as _find_spec

if _find_spec(f"{__name__}._declarations") is None:
    raise ImportError(f"tandem is not built: {__path__[0]} has no _declarations.py, as in a checkout; make wheel "
                      "builds the module and its library, and pip install build/wheel/tandem-*.whl installs them")

from . import runs
from ._declarations import TrainOptions
from ._library import Error, Frame, NotFoundError, UsageError, decode as _decode, lib as _lib
from ._loader import Loader, LoaderState
from ._model import Evaluation, Export, Guess, Model, Prediction, evaluate, predict
from ._train import TrainResult, train
from ._work import Event, Score

__version__ = _decode(_lib.tdm_version())

__all__ = ["Error", "Evaluation", "Event", "Export", "Frame", "Guess", "Loader", "LoaderState", "Model",
           "NotFoundError", "Prediction", "Score", "TrainOptions", "TrainResult", "UsageError", "evaluate", "predict",
           "runs", "train"]
