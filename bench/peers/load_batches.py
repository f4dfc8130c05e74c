"""load_batches.py PEER PICTURES SIZE BATCH WORKERS SECONDS: shuffled batches of (BATCH, SIZE, SIZE, 3)
bytes, each picture shrunk to fit (Lanczos) and centred on white where it is of another size, as each
peer's documentation does it. PICTURES is a folder of JPEG files, or a table that `tandem prepare` made.

PEER          reads
torch         DataLoader, worker processes, Pillow. Files; of a table its column, read once by pyarrow
              into memory that all workers share
tf            tf.data with WORKERS threads. Files; of a table a TFRecord file with the same bytes,
              written before the clock starts, shuffled through a buffer that holds all of it
torch-files   the same two; of a table from files with its bytes, one a picture, written before
tf-files
folder        DataLoader over torchvision's ImageFolder, worker processes; a folder of class folders, resized to SIZE
tandem        the Python module's loader, WORKERS threads; the same folder

Small sets are repeated as `tandem bench loader` does. Prints "images_per_processor_second": N and
"images_per_second": N, counted after the first batches, without the start of the workers.
"""
import glob
import io
import os
import sys
import time

EPOCH_AT_LEAST = 4096
WARM_UP = 8  # batches


def repeated(found):
    return found * (1 if len(found) >= EPOCH_AT_LEAST else EPOCH_AT_LEAST // len(found) + 1)


def files(folder):
    return sorted(glob.glob(os.path.join(folder, "**/*.jp*g"), recursive=True))


def column(folder):
    """The pictures of a prepared table as one Arrow column, or None where the folder is none."""
    parts = sorted(glob.glob(os.path.join(folder, "part-*.parquet")))
    if not parts:
        return None
    import pyarrow
    import pyarrow.parquet
    return pyarrow.chunked_array(
        [chunk for part in parts
         for chunk in pyarrow.parquet.read_table(part, columns=["image"]).column(0).chunks])


def unpacked(table):
    os.makedirs("unpacked", exist_ok=True)
    for number, value in enumerate(table):
        with open(f"unpacked/{number:05}.jpg", "wb") as file:
            file.write(value.as_buffer())
    return files("unpacked")


def torch_batches(pictures, size, batch, workers):
    """pictures: paths, or an Arrow column of encoded ones."""
    import numpy
    import torch
    from PIL import Image

    numbers = repeated(list(range(len(pictures))))

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return len(numbers)

        def __getitem__(self, index):
            picture = pictures[numbers[index]]
            picture = Image.open(picture if isinstance(picture, str) else
                                 io.BytesIO(picture.as_buffer()))
            if picture.size != (size, size):
                picture = picture.convert("RGB")
                picture.thumbnail((size, size), Image.LANCZOS)
                white = Image.new("RGB", (size, size), (255, 255, 255))
                white.paste(picture, ((size - picture.width) // 2, (size - picture.height) // 2))
                picture = white
            return torch.from_numpy(numpy.array(picture.convert("RGB")))

    loader = torch.utils.data.DataLoader(Pictures(), batch_size=batch, shuffle=True,
                                         num_workers=workers, persistent_workers=True)
    while True:
        for pixels in loader:
            yield len(pixels)


def tf_batches(pictures, size, batch, workers):
    """pictures: paths, or an Arrow column of encoded ones."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def load(encoded):
        picture = tf.io.decode_jpeg(encoded, channels=3)
        shape = tf.shape(picture)
        if shape[0] != size or shape[1] != size:
            picture = tf.image.resize(picture, (size, size), method="lanczos3", antialias=True,
                                      preserve_aspect_ratio=True)
            picture = tf.cast(tf.clip_by_value(tf.round(picture), 0, 255), tf.uint8)
            shape = tf.shape(picture)
            top, left = (size - shape[0]) // 2, (size - shape[1]) // 2
            picture = 255 - tf.image.pad_to_bounding_box(255 - picture, top, left, size, size)
        picture.set_shape((size, size, 3))
        return picture

    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    if isinstance(pictures, list):
        paths = repeated(pictures)
        data = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat()
        data = data.map(lambda path: load(tf.io.read_file(path)), num_parallel_calls=workers,
                        deterministic=True)
    else:
        with tf.io.TFRecordWriter("pictures.tfrecord") as writer:
            for value in pictures:
                writer.write(value.as_buffer().to_pybytes())
        data = tf.data.TFRecordDataset("pictures.tfrecord").shuffle(len(pictures)).repeat()
        data = data.map(load, num_parallel_calls=workers, deterministic=True)
    for pixels in data.batch(batch).prefetch(2).with_options(options):
        yield pixels.shape[0]


def folder_batches(folder, size, batch, workers):
    """As torchvision's documentation shows it; bytes, which is less work than ToTensor's floats."""
    import torch
    from torchvision import datasets, transforms

    steps = transforms.Compose([transforms.Resize((size, size)), transforms.PILToTensor()])
    data = datasets.ImageFolder(folder, steps)
    data.samples = repeated(data.samples)
    loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers,
                                         persistent_workers=True)
    while True:
        for images, _ in loader:
            yield touched(images)


def tandem_batches(folder, size, batch, workers):
    import tandem

    loader = tandem.Loader(folder, size=size, batch=batch, threads=workers)
    while True:
        for images, _ in loader:
            yield touched(images)


def touched(images):
    """The number of images, after a look at each."""
    int(images[:, 0, 0, 0].sum())
    return len(images)


def processor_seconds():
    """Of this process and its workers."""
    pids = [str(os.getpid())]
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path, encoding="ascii") as file:
            pids += file.read().split()
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            ticks += sum(int(text) for text in file.read().rsplit(")", 1)[1].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    peer, folder = sys.argv[1:3]
    size, batch, workers = (int(text) for text in sys.argv[3:6])
    seconds = float(sys.argv[6])
    framework, _, form = peer.partition("-")
    pictures = folder if framework in ("folder", "tandem") else column(folder)
    if pictures is None:
        pictures = files(folder)
    elif form == "files":
        pictures = unpacked(pictures)
    batches = {"torch": torch_batches, "tf": tf_batches, "folder": folder_batches,
               "tandem": tandem_batches}[framework](pictures, size, batch, workers)
    for _ in range(WARM_UP):
        next(batches)
    n, begin, processor = 0, time.monotonic(), processor_seconds()
    while time.monotonic() - begin < seconds:
        n += next(batches)
    print(f'"images_per_processor_second": {n / (processor_seconds() - processor):.1f}')
    print(f'"images_per_second": {n / (time.monotonic() - begin):.1f}', flush=True)
    os._exit(0)  # workers and threads that load ahead are of no use any more


if __name__ == "__main__":
    main()
