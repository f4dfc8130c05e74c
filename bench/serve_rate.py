#!/usr/bin/env python3
"""Requests a second, latency and processor time of a server of `tandem predict --serve`.

    bench/serve_rate.py URL PICTURE PID [--beside N] [CLIENTS…]        default: 1 8 1 8 clients, 4 seconds each

--beside: one more client sends forms of N times the picture meanwhile, which are not counted. Each client keeps one connection and sends the picture again as soon as it is answered. Processor
time is the server's (PID), all threads, for a request: what a machine shared with others changes
least. Python only: no library is needed.
"""
import http.client, statistics, sys, threading, time
from urllib.parse import urlsplit

url, picture, process = urlsplit(sys.argv[1]), open(sys.argv[2], "rb").read(), int(sys.argv[3])
beside = int(sys.argv.pop(4)) if sys.argv[4:5] == ["--beside"] and sys.argv.pop(4) else 0
SECONDS = 4.0
BOUNDARY = "x-boundary"
form = b"".join(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{i}"\r\n\r\n'.encode() + picture + b"\r\n"
                for i in range(beside)) + f"--{BOUNDARY}--\r\n".encode()


def processor_seconds():
    fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def client(end, latencies, body=picture, kind="application/octet-stream"):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    while time.perf_counter() < end:
        began = time.perf_counter()
        connection.request("POST", "/predict", body, {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"status {answer.status}")
        latencies.append((time.perf_counter() - began) * 1e3)


client(time.perf_counter() + 1, [])  # does not count
for n in [int(text) for text in sys.argv[4:]] or [1, 8, 1, 8]:
    began, used, latencies = time.perf_counter(), processor_seconds(), []
    threads = [threading.Thread(target=client, args=(began + SECONDS, latencies)) for _ in range(n)]
    if beside:
        threads.append(threading.Thread(target=client, args=(began + SECONDS, [], form, f"multipart/form-data; boundary={BOUNDARY}")))
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    latencies.sort()
    print(f"{n} clients: {len(latencies) / seconds:.0f} requests/s, median {statistics.median(latencies):.1f} ms, "
          f"99 % {latencies[int(0.99 * len(latencies))]:.1f} ms, {used / len(latencies) * 1e3:.2f} ms of processor time each")
