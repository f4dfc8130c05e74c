"""tandem.Loader: batches of images as NumPy arrays, for any framework."""
from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Tuple, TypedDict

from . import _declarations as c
from ._library import (Path, UsageError, call, decode, fill, keywords, lib, part as part_of, sized, spelled_path,
                       spelled_split, stop_flag)
from ._work import run

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Batch = Tuple["NDArray[numpy.uint8]", "NDArray[numpy.int32]"]


class LoaderState(TypedDict):
    """Where a loader stands: of JSON's types, so that any checkpoint can keep it."""
    epoch: int
    position: int
    seed: int
    batch: int
    images: int


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("tandem.Loader makes NumPy arrays: pip install numpy") from None
    return numpy


def _close(pointer: ctypes.c_void_p, process: int) -> None:
    if os.getpid() == process:  # a forked process has none of the threads
        lib.tdm_loader_close(pointer)


_loaders: "weakref.WeakSet[Loader]" = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """The threads of loaders end before Python does."""
    stop_flag.forbid()
    for loader in list(_loaders):
        if loader._process == os.getpid():
            loader.close()


class Loader:
    """Iterate over (images, labels): uint8 (n, size, size, channels), int32 (n,).

    Each `for` loop is an epoch with an order of its own, read ahead by threads. The same options give the same
    batches at any number of threads. Arrays are the caller's: they stay as they are as long as anybody holds them.
    Images are scaled to fit and centred on white. One that is unlabelled or cannot be read has label -1; the pixels of
    the latter are 0.

    source    folder with a folder for each class, archive, list, table, …
    part      "all", "train", "val" or "test": as the source gives it, or as split divides it, which requires one
    split     fractions to train, to validate and perhaps to test on, divided by content: with the same seed the images
              that tandem.train takes
    size      side of the square images; channels: 3, or 1 for grey
    batch     images of a batch; the last one of an epoch may have fewer
    shuffle   another order in each epoch
    augment   random changes, such as "flip,crop:4"; "auto" is for train, which knows the network
    threads   0: all usable CPUs
    memory    bytes for reading ahead; 0: no limit
    image_column, label_column, raw_shape, quarantine, follow   as in train

    A loader belongs to the process that opened it: in PyTorch iterate over it without a DataLoader, which it replaces.
    """

    @keywords()
    def __init__(self, source: Path, *, part: str = "all", split: Optional[Sequence[float]] = None, size: int = 224,
                 channels: int = 3, batch: int = 32, shuffle: bool = True, seed: int = 42,
                 augment: Optional[str] = None, threads: int = 0, memory: int = 0, image_column: Optional[str] = None,
                 label_column: Optional[str] = None, raw_shape: Optional[str] = None,
                 quarantine: Optional[Path] = None, follow: bool = False) -> None:
        self._numpy = _numpy()
        fractions = spelled_split(split) if split is not None else ()
        options = sized(c.tdm_loader_options, source=spelled_path("source", source), part=part_of(part), size=size,
                        channels=channels, batch=batch, is_shuffled=shuffle, seed=seed, augment=augment,
                        threads=threads, memory=memory,
                        **dict(zip(("train_fraction", "val_fraction", "test_fraction"), fractions)))
        fill(options.how, image_column=image_column, label_column=label_column, raw_shape=raw_shape,
             quarantine=quarantine, follow=follow)
        pointer, is_left, lock = ctypes.c_void_p(), False, threading.Lock()

        def work(_sink: Any) -> None:
            opened = ctypes.c_void_p()
            call(lib.tdm_loader_open, options, ctypes.byref(opened), reads=source)
            with lock:
                if is_left:
                    lib.tdm_loader_close(opened)
                else:
                    pointer.value = opened.value

        try:
            run(work)
        except BaseException:
            with lock:
                is_left = True  # after a second Ctrl-C it may not be open yet
            if pointer:
                lib.tdm_loader_close(pointer)
            raise
        self._pointer = pointer
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close, pointer, self._process)
        self._finalizer.atexit = False  # but _leave
        self._lock = threading.Lock()
        self._epoch = self._position = 0
        self._resumes = False  # the next loop continues in the middle of an epoch
        self._is_ahead = False  # Ctrl-C came between a batch of the library's and its delivery
        self._loops = 0
        self._shape = (options.size, options.size, options.channels)
        self.source, self.part = os.fspath(source), part
        self.batch: int = options.batch
        self.seed: int = options.seed
        self.images: int = lib.tdm_loader_images(pointer)
        self.classes: Tuple[str, ...] = tuple(decode(lib.tdm_loader_class(pointer, i))
                                              for i in range(lib.tdm_loader_classes(pointer)))
        self.items: Optional[NDArray[numpy.int64]] = None
        """Number of each image of the last batch in the source."""
        _loaders.add(self)

    def __repr__(self) -> str:
        return (f"<tandem.Loader {self.source!r}, part {self.part}: {self.images} images of {len(self.classes)} "
                f"classes, {len(self)} batches of {self.batch}>")

    def __reduce__(self) -> Any:
        raise UsageError("a loader cannot be given to another process: open it there, or iterate over it here")

    # ---- iteration

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-self.images // self.batch)

    def __iter__(self) -> "Iterator[Batch]":
        """The rest of the epoch after load_state or seek, else a whole one."""
        if self._position > 0 and not self._resumes:
            self.seek(self._epoch + 1)  # the loop before was left early
        elif self._is_ahead:
            self.seek(self._epoch, self._position)
        self._resumes = False
        self._loops += 1
        return self._loop(self._loops)

    def _loop(self, number: int) -> "Iterator[Batch]":
        while True:
            with self._lock:
                if number != self._loops:
                    raise UsageError("another loop over this loader has begun: a loader serves one at a time")
                batch = self._next()
            if batch is None:
                return
            yield batch

    def _next(self) -> "Optional[Batch]":
        pointer = ctypes.POINTER(c.tdm_batch)()
        self._is_ahead = True
        call(lib.tdm_loader_next, self._opened(), ctypes.byref(pointer))
        if not pointer:
            self._go(self._epoch + 1, 0)
            return None
        lent, n = pointer[0], pointer[0].n
        images = self._copy(lent.pixels, (n, *self._shape), "uint8")
        labels = self._copy(lent.labels, (n,), "int32")
        self.items = self._copy(lent.items, (n,), "int64")
        self._position += n
        self._is_ahead = False
        return images, labels

    def _copy(self, lent: Any, shape: Tuple[int, ...], dtype: str) -> Any:
        """The library's memory is lent until its next batch, so it is copied (docs/design/python.md)."""
        array = self._numpy.empty(shape, dtype)
        ctypes.memmove(array.ctypes.data, lent, array.nbytes)
        return array

    # ---- position

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def position(self) -> int:
        """Images of the epoch that were handed out."""
        return self._position

    def seek(self, epoch: int, position: int = 0) -> None:
        """Let the next loop begin at an epoch, after so many of its images (a multiple of batch)."""
        with self._lock:
            self._go(epoch, position)
            self._loops += 1
            self._resumes = True

    def _go(self, epoch: int, position: int) -> None:
        call(lib.tdm_loader_seek, self._opened(), epoch, position)
        self._epoch, self._position, self._is_ahead = epoch, position, False

    def state(self) -> LoaderState:
        """Where the loader stands, to be kept with a checkpoint."""
        is_over = self._position >= self.images
        return {"epoch": self._epoch + is_over, "position": 0 if is_over else self._position, "seed": self.seed,
                "batch": self.batch, "images": self.images}

    def load_state(self, state: LoaderState) -> None:
        """Continue where a loader with the same options and images stood."""
        for name, given, own in (("seed", state["seed"], self.seed), ("batch", state["batch"], self.batch),
                                 ("images", state["images"], self.images)):
            if given != own:
                raise UsageError(f"the state is of a loader whose {name} is {given}, and this one's is {own}: it would "
                                 "continue with other batches")
        self.seek(state["epoch"], state["position"])

    # ---- end

    def _opened(self) -> ctypes.c_void_p:
        if not self._finalizer.alive:
            stop_flag.wait_if_final()
            raise UsageError("the loader is closed")
        if os.getpid() != self._process:
            raise UsageError("a loader cannot be used in a forked process: open it there; it replaces a DataLoader")
        return self._pointer

    def close(self) -> None:
        """Stop the threads. Arrays that were handed out stay."""
        with self._lock:
            self._finalizer()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
