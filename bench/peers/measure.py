"""What the compute peers share: options, the clock, and the line of JSON."""
import argparse
import json
import os
import resource
import statistics
import sys
import time


def arguments(description, *more):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model")
    parser.add_argument("mode", choices=["features", "train"])
    parser.add_argument("batch", type=int)
    parser.add_argument("image", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--classes", type=int, default=0, help="default: 1000, lenet5 10")
    parser.add_argument("--tuned", action="store_true",
                        help="glibc keeps freed memory and takes huge pages (GLIBC_TUNABLES)")
    for name, settings in more:
        parser.add_argument(name, **settings)
    options = parser.parse_args()
    options.classes = options.classes or (10 if options.model == "lenet5" else 1000)
    if options.tuned:
        tune()
    return options


def tune():
    """glibc reads its tunables when a program starts, so start again with them."""
    wanted = ":".join(f"glibc.malloc.{name}" for name in (
        "hugetlb=1", "mmap_threshold=17179869184", "trim_threshold=17179869184", "top_pad=268435456"))
    if os.environ.get("GLIBC_TUNABLES") != wanted:
        os.environ["GLIBC_TUNABLES"] = wanted
        os.execv(sys.executable, [sys.executable] + sys.argv)


def rates(step, images, seconds):
    """Images per second of each call of step, after warming up; and of all for a second of processor time,
    every thread of this process counted, which other programs change least (but threads that spin)."""
    began = time.perf_counter()
    calls = 0
    while calls < 2 and (calls < 1 or time.perf_counter() - began < 10.0) or \
            time.perf_counter() - began < min(2.0, seconds):
        step()
        calls += 1
    found = []
    began, processor = time.perf_counter(), time.process_time()
    while len(found) < 3 or time.perf_counter() - began < seconds:
        then = time.perf_counter()
        step()
        found.append(images / (time.perf_counter() - then))
    return found, images * len(found) / (time.process_time() - processor)


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def report(peer, options, measured, mib, **more):
    found, for_processor = measured
    print(json.dumps({
        "peer": peer, "model": options.model, "mode": options.mode, "batch": options.batch,
        "image": options.image, "threads": options.threads, "tuned": options.tuned,
        "images_per_second": round(statistics.median(found), 2),
        "low": round(min(found), 2), "high": round(max(found), 2),
        "images_per_processor_second": round(for_processor, 2), "steps": len(found),
        "peak_bytes": mib << 20, "load": round(os.getloadavg()[0], 1), **more}), flush=True)
