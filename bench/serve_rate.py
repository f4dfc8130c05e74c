#!/usr/bin/env python3
"""Requests a second and latency of a server of `tandem predict --serve`, asked by several clients.

    bench/serve_rate.py URL PICTURE [CLIENTS…]        default: 1 2 4 8 clients, 5 seconds each

Each client keeps one connection and sends the picture again as soon as it is answered. After a
second that does not count, latencies are collected. Python only: no library is needed.
"""
import http.client, statistics, sys, threading, time
from urllib.parse import urlsplit

url, picture = urlsplit(sys.argv[1]), open(sys.argv[2], "rb").read()
SECONDS, WARM = 5.0, 1.0


def client(end, latencies):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    while time.perf_counter() < end:
        began = time.perf_counter()
        connection.request("POST", "/predict", picture, {"Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"status {answer.status}")
        latencies.append((began, time.perf_counter() - began))


for n in [int(text) for text in sys.argv[3:]] or [1, 2, 4, 8]:
    began, latencies = time.perf_counter(), []
    threads = [threading.Thread(target=client, args=(began + WARM + SECONDS, latencies)) for _ in range(n)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    counted = sorted(took for at, took in latencies if at >= began + WARM)
    at = lambda part: counted[min(len(counted) - 1, int(part * len(counted)))] * 1e3
    print(f"{n} clients: {len(counted) / SECONDS:.0f} requests/s, median {statistics.median(counted) * 1e3:.1f} ms, "
          f"90 % {at(0.9):.1f} ms, 99 % {at(0.99):.1f} ms")
