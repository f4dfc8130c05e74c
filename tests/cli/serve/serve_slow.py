"""Clients of `tandem predict --serve` that are gone, or slow, or many at one address; test_serve_slow.sh calls it.

    serve_slow.py TANDEM MODEL PICTURES     starts servers of its own, says ok / not ok
"""
import socket, time

from serve_ask import *

post = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/x\r\n"
sized = post + b"Content-Length: %d\r\n\r\n"
chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
picture = b"P6 25 25 255\n" + bytes(1875)  # 2 kB
heavy_picture = png(3000)
heavy, heavy_headers = form((f"{n}.png", heavy_picture) for n in range(256))
endless = "--request-pixel-limit", "1000000000000"


def connect(server, address="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", server.port), timeout=60, source_address=(address, 0))


def start(server, sent, address="127.0.0.1"):
    client = connect(server, address)
    client.sendall(sent)
    return client


def leave(server, sent, how):
    """Sends, and ends the connection in the same packet."""
    client = connect(server)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    client.sendall(sent)
    client.close() if how == "close" else client.shutdown(socket.SHUT_WR)
    return client


def fast(server, address="127.0.0.1"):
    """status and seconds of one small picture."""
    began = time.time()
    client = start(server, post + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(first) + first, address)
    said = b""
    while chunk := client.recv(65536):
        said += chunk
    return int(said.split()[1]), time.time() - began


def status_of(client, seconds):
    """The status that a client gets within that time; 0: closed without one, None: nothing yet."""
    client.settimeout(seconds)
    try:
        said = client.recv(65536)
    except socket.timeout:
        return None
    except OSError:
        return 0
    return int(said.split()[1]) if said else 0


# ---- who is gone -----------------------------------------------------------------------------------
server = Server()
fast(server)
for name, sent in (("a part of a body", sized % len(picture) + picture[:1500]),
                   ("a part of a chunk", chunked + b"400\r\n" + bytes(100)),
                   ("a whole chunk", chunked + b"64\r\n" + bytes(100) + b"\r\n"),
                   ("a part of a body that is refused", b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"),
                   ("a part of a head", b"GET /healthz HTTP/1.1\r\nHost: loc"),
                   ("no byte", b"")):
    for how in "close", "half":
        gone = [leave(server, sent, how) for _ in range(16)]
        got, seconds = fast(server)
        check(got == 200 and seconds < 1, f"sixteen that end behind {name} ({how}) stop nobody", (got, seconds))
        began = time.time()
        is_free = until(lambda: server.open() == 0, 20)
        took = time.time() - began
        check(is_free and took < 0.5, "and have lost their places at once", took)
        if how == "half":
            began = time.time()
            check(all(status_of(client, 20) in (0, 404) for client in gone) and time.time() - began < 0.6, "and are hung up on",
                  time.time() - began)
        [client.close() for client in gone]
page = b"GET /model HTTP/1.1\r\nHost: localhost\r\n\r\n"
gone = [leave(server, page, "half") for _ in range(16)]
began = time.time()
said = []
for client in gone:
    bytes_of = b""
    while chunk := client.recv(65536):
        bytes_of += chunk
    said.append(bytes_of)
took = time.time() - began
check(all(b" 200 " in one[:20] for one in said) and took < 0.6, "a kept connection whose client has closed its half is closed", took)
check(server.end() == 0, "it ends")

# ---- who is slow -----------------------------------------------------------------------------------
server = Server()
fast(server)
slow = [start(server, sized % len(picture) + picture[:100]) for _ in range(50)]
for pause in 0, 0.3, 1:
    time.sleep(pause)
    for address in "127.0.0.1", "127.0.0.2":
        got, seconds = fast(server, address)
        check(got == 200 and seconds < 1, f"50 slow bodies do not stop a fast client of {address}", (got, seconds))
slow[0].sendall(picture[100:])
check(status_of(slow[0], 10) == 200, "and have the time that every body has")
[client.close() for client in slow]
slow = [start(server, sized % len(picture) + picture[:100], f"127.0.0.{2 + i % 3}") for i in range(150)]
got, seconds = fast(server)
check(got == 200 and seconds < 8, f"slow bodies on every connection, and more that wait, are outlived ({seconds:.1f} s)", (got, seconds))
check(status_of(slow[0], 1) == 503, "the ones that gave way get 503")
[client.close() for client in slow]
check(until(lambda: server.open() == 0, 5), "all are gone")
# Answers of 8 MB that nobody takes: more than a socket holds.
many, many_headers = form((f"{n}.{'x' * 1000000}", first) for n in range(8))
asked = (b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + many_headers["Content-Type"].encode() +
         b"\r\nContent-Length: %d\r\n\r\n" % len(many) + many)
check(server.end() == 0, "it ends")
server = Server("--connections", "4", "--requests", "4")
slow, began = [], time.time()
for _ in range(4):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", server.port))
    client.sendall(asked)
    slow.append(client)
got, _ = fast(server)
took = time.time() - began
check(got == 200 and 1 < took < 15, f"who does not take his answer gives way, too ({took:.1f} s)", (got, took))
[client.close() for client in slow]
check(server.end() == 0, "it ends")

# ---- bodies that are not there yet have the memory of --requests bodies, and no more -----------------
server = Server("--requests", "2", "--body-limit", "1M")
before = server.memory()
slow = [start(server, sized % (1 << 20) + bytes(900 << 10)) for _ in range(12)]
time.sleep(0.3)
grown = server.memory() - before
if server.is_sanitized():
    print("skip the sanitizer keeps what is freed")
else:
    check(grown < 6 << 10, f"twelve stalled bodies hold no more than two whole ones may ({grown} KiB)", grown)
got, seconds = fast(server)
check(got == 200 and seconds < 1, "and stop nobody", (got, seconds))
slow[0].sendall(bytes(1 << 20)[900 << 10:])
check(status_of(slow[0], 10) == 503, "the oldest has given way")
slow[-1].sendall(bytes(1 << 20)[900 << 10:])
check(status_of(slow[-1], 10) == 422, "and the youngest has not")
[client.close() for client in slow]
check(server.end() == 0, "it ends")

# ---- many at one address ---------------------------------------------------------------------------
server = Server("--requests", "4", "--time-limit", "300", *endless)
fast(server)
asked = (b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + heavy_headers["Content-Type"].encode() +
         b"\r\nContent-Length: %d\r\n\r\n" % len(heavy) + heavy)
busy = [start(server, asked, "127.0.0.2") for _ in range(4)]
check(until(lambda: server.open() == 4, 10), "one address may have every place while nobody else asks")
time.sleep(0.3)
check(fast(server, "127.0.0.2")[0] == 503, "its next request gets 503")
got = [fast(server, "127.0.0.1")[0], fast(server, "127.0.0.3")[0]]
check(got == [200, 200], "but others are answered", got)
check(status_of(busy[3], 60) == 503 and status_of(busy[0], 0.1) is None, "its youngest request gave way, not its oldest")
[client.close() for client in busy]
check(server.end() == 0, "it ends")
finish()
