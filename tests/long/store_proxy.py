"""store_proxy.py PORT FOLDER: an S3 server (moto) behind a connection that can be made bad.

FOLDER/mode says how, and may be rewritten at any time:
  pass       everything goes through
  slow       40 kB/s, 20 ms before each answer
  some-busy  every third request is answered with 503 SlowDown
  busy       every request is
  stall      connections are taken, and nothing is answered
FOLDER/requests gets the first line of each request that the server saw.
"""

import pathlib
import socket
import sys
import threading
import time

from moto.server import ThreadedMotoServer

folder = pathlib.Path(sys.argv[2])
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
lock = threading.Lock()
n_requests = 0

BODY = b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please slow down</Message></Error>'
BUSY = (b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n"
        % len(BODY)) + BODY


def mode():
    return (folder / "mode").read_text().strip()


def admit(data):
    """Notes a request; False: this one is refused."""
    global n_requests
    line = data.split(b"\r\n", 1)[0]
    if not line.endswith(b"HTTP/1.1"):
        return True
    with lock:
        n_requests += 1
        if mode() == "busy" or (mode() == "some-busy" and n_requests % 3 == 0):
            return False
        with open(folder / "requests", "ab") as out:
            out.write(line + b"\n")
    return True


def client_to_server(client, upstream):
    try:
        while data := client.recv(65536):
            while mode() == "stall":
                time.sleep(0.05)
            if admit(data):
                upstream.sendall(data)
            else:
                client.sendall(BUSY[: -len(BODY)] if data.startswith(b"HEAD") else BUSY)
    except OSError:
        pass
    for end in (client, upstream):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def server_to_client(client, upstream):
    try:
        while data := upstream.recv(4096):
            if mode() == "slow":
                time.sleep(0.02 + len(data) / 40000)
            while mode() == "stall":
                time.sleep(0.05)
            client.sendall(data)
    except OSError:
        pass
    client.close()
    upstream.close()


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(listener.getsockname()[1], flush=True)
while True:
    accepted, _ = listener.accept()
    other = socket.create_connection((host, port))
    for pump in (client_to_server, server_to_client):
        threading.Thread(target=pump, args=(accepted, other), daemon=True).start()
