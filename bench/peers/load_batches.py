"""load_batches.py PEER FOLDER SIZE BATCH WORKERS SECONDS: shuffled batches of (BATCH, SIZE, SIZE, 3)
bytes from all JPEG files below FOLDER, each shrunk to fit (Lanczos) and centred on white, as each peer's
documentation does it. PEER is torch (DataLoader, worker processes, Pillow) or tf (tf.data, WORKERS
threads). Small folders are repeated as `tandem bench loader` does. Prints "images_per_second": N, counted
after the first batches, without the start of the workers.
"""
import glob
import os
import sys
import time

EPOCH_AT_LEAST = 4096
WARM_UP = 8  # batches


def files(folder):
    found = sorted(glob.glob(os.path.join(folder, "**/*.jp*g"), recursive=True))
    return found * (1 if len(found) >= EPOCH_AT_LEAST else EPOCH_AT_LEAST // len(found) + 1)


def torch_batches(paths, size, batch, workers):
    import numpy
    import torch
    from PIL import Image

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, index):
            picture = Image.open(paths[index])
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


def tf_batches(paths, size, batch, workers):
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def load(path):
        picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
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
    data = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat()
    data = data.map(load, num_parallel_calls=workers, deterministic=True).batch(batch).prefetch(2)
    for pixels in data.with_options(options):
        yield pixels.shape[0]


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
    batches = {"torch": torch_batches, "tf": tf_batches}[peer](files(folder), size, batch, workers)
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
