"""Asks a server of `tandem predict --serve` what nobody else asks; test_serve.sh calls it.

    serve_client.py TANDEM MODEL PICTURES     starts servers of its own, says ok / not ok
"""
import http.client, json, os, random, signal, socket, threading, time

from serve_ask import *

# ---- the same answers ------------------------------------------------------------------------------
server = Server("--top", "3")
wanted = {name: told("-", "--json", "--top", "3", input=pictures[name]).stdout for name in names}
check(all(server.ask("POST", "/predict", pictures[name])[:2] == (200, wanted[name]) for name in names),
      "a picture gets byte for byte what predict says of it")
got = server.ask("POST", "/predict?top=2&logits=1", first)
check(got[1] == told("-", "--json", "--logits", "--top", "2", input=first).stdout, "with top and logits, too", got)
check(server.ask("POST", "/predict", first, {"Content-Type": "application/octet-stream"})[:2] == (200, wanted[names[0]]),
      "octets are a picture as well")
body, headers = form(pictures.items())
got = server.ask("POST", "/predict", body, headers)
expected = json.loads(told(folder, "--json", "--top", "3").stdout)
check(got[0] == 200 and json.loads(got[1]) == expected, "a form of several gets what predict says of the folder", got)
body, headers = form([("../../etc/passwd", first), ("none", b"no picture"), ("", first)])
got = server.ask("POST", "/predict?top=1", body, headers)
answers = json.loads(got[1])["predictions"]
check(got[0] == 200 and [a["path"] for a in answers] == ["../../etc/passwd", "none", "picture"] and "problem" in answers[1]
      and answers[0]["top"] == answers[2]["top"], "names are labels, and a part that is no picture does not hide the others", got)

wrong = []


def ask_often(number):
    connection = server.connect()
    for i in range(25):
        name = names[(7 * number + i) % len(names)]
        connection.request("POST", "/predict", pictures[name], {"Content-Type": "image/x"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200 or said != wanted[name]:
            wrong.append((answer.status, said))
    connection.close()


threads = [threading.Thread(target=ask_often, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
check(not wrong, "200 requests of eight clients at once get the same bytes", wrong[:1])

# ---- pages -----------------------------------------------------------------------------------------
status, said, more = server.ask("GET", "/")
check(status == 200 and more["Content-Type"].startswith("text/html") and b"<title>" in said
      and "default-src 'none'" in more["Content-Security-Policy"], "the page says what it may load")
about = json.loads(server.ask("GET", "/model")[1])
check(about["name"] == "lenet5" and len(about["classes"]) == 3 and about["preprocess"]["width"] == 28, "the model is described", about)
health = json.loads(server.ask("GET", "/healthz")[1])
check(health["status"] == "ok" and health["pictures"] >= 200, "health counts", health)
connection = server.connect()
connection.request("HEAD", "/healthz")
answer = connection.getresponse()
check(answer.status == 200 and answer.read() == b"", "HEAD is GET without a body")

# ---- what is refused -------------------------------------------------------------------------------
refused(server, 404, "an unknown path", "GET", "/etc/passwd")
more = refused(server, 405, "a method that is not answered", "GET", "/predict", says="POST only")
check(more.get("Allow") == "POST", "which one is", more)
refused(server, 405, "another one", "DELETE", "/model")
refused(server, 400, "an argument out of range", "POST", "/predict?top=0", first, says="from 1 to 1000")
refused(server, 400, "an argument that is no number", "POST", "/predict?top=a", first)
refused(server, 400, "an argument that nobody knows", "POST", "/predict?tip=3", first, says="'tip'")
refused(server, 400, "an argument of a page without", "GET", "/model?top=3")
for name, other in ("top=5", "top=6"), ("top=5", "top=5"), ("logits=1", "logits=0"), ("top", "top=5"), ("top=5", "%74op=6"):
    refused(server, 400, f"{name} and {other}", "POST", f"/predict?{name}&{other}", first, says="top" if "t" in name[:1] else "logits is there twice")
for value in "", "+5", "%205", "5%20", "-1", "0x5", "5.", "1e1", "99999999999999999999":
    refused(server, 400, f"top as '{value}'", "POST", f"/predict?top={value}", first, says="from 1 to 1000")
for path in ("/model%00", "/model%00.png", "/%00", "/healthz%00", "/predict%00", "/model%0a", "/model%0D%0AX:y", "/model%1f", "/model%7F", "/%09model",
             "/model%", "/model%6", "/model%6g", "/model?%00", "/predict?top=5%00", "/predict?top%00=5", "/predict?top=%0a5", "/predict?logits=1%00"):
    for method in "GET", "POST":
        refused(server, 400, f"{method} {path}", method, path, first if method == "POST" else None, says="control character")
check(server.ask("GET", "/%6dodel")[0] == 200, "an escape that stands for a letter is one")
for path in b"/model\0", b"/model\0.png", b"/\0", b"/model\x01", b"/model\x7f", b"/model\tx", b"/mo del":
    said = server.say(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    check(b" 400 " in said[:20] and b"control character" in said and said.count(b"HTTP/1.1") == 1, f"{path} as it is", said)
refused(server, 400, "an empty body", "POST", "/predict", b"", says="empty")
refused(server, 415, "a body of another type", "POST", "/predict", b"{}", {"Content-Type": "application/json"}, "application/json")
refused(server, 422, "what is no picture", "POST", "/predict", b"no picture", says="it is text that begins with 'no picture'")
refused(server, 422, "half a picture", "POST", "/predict", first[: len(first) // 2])
body, headers = form([("a", b"none"), ("b", b"neither")])
refused(server, 422, "a form without a picture in it", "POST", "/predict", body, headers)
refused(server, 400, "a form without a part", "POST", "/predict", b"--x--\r\n", {"Content-Type": "multipart/form-data; boundary=x"})
refused(server, 400, "a form that ends early", "POST", "/predict", body[:-30], headers)
refused(server, 400, "a form without a boundary", "POST", "/predict", body, {"Content-Type": "multipart/form-data"}, "boundary")
refused(server, 403, "another host's name (DNS rebinding)", "GET", "/model", headers={"Host": "evil.example:80"}, says="loopback")
refused(server, 403, "one that only begins like it", "GET", "/model", headers={"Host": "localhost.evil.example"})
refused(server, 403, "and one that is an address but for its end", "GET", "/model", headers={"Host": "127.0.0.1.evil.example"})
refused(server, 403, "a page of another site", "POST", "/predict", first, {"Origin": "http://evil.example"}, "another site")
check(server.ask("POST", "/predict", first, {"Host": f"localhost:{server.port}", "Origin": f"http://localhost:{server.port}"})[0] == 200,
      "its own page, and a tunnel's port, are answered")

# ---- clients that fail -----------------------------------------------------------------------------
random.seed(5)
for i in range(40):
    client = server.socket()
    junk = bytes(random.randrange(256) for _ in range(random.randrange(1, 2000)))
    client.sendall([junk, b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/x\r\nContent-Length: 99\r\n\r\n" + junk[:50],
                    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/x\r\nContent-Length: -5\r\n\r\n" + junk,
                    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50 + junk][i % 4])
    client.close()
check(server.is_alive(), "garbage and broken requests do not end it")
head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/x\r\nContent-Length: %d\r\n\r\n" % len(first)
for i in range(60):
    client = server.socket()
    client.sendall(head + first)
    if i % 2:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # RST
    client.close()
while (got := server.ask("POST", "/predict", first))[0] == 503:  # those before it are being answered
    time.sleep(0.05)
check(got[:2] == (200, wanted[names[0]]), "clients that do not wait for their answer do not end it")

# ---- a thousand requests -----------------------------------------------------------------------------
body, headers = form(list(pictures.items())[:3])


def ask_all(times):
    connection = server.connect()
    for i in range(times):
        if i % 10 == 9:
            connection.request("POST", "/predict", body, headers)
        else:
            connection.request("POST", "/predict" if i % 7 else "/nothing", first if i % 3 else b"none", {"Content-Type": "image/x"})
        connection.getresponse().read()
    connection.close()


ask_all(300)
before = server.memory()
ask_all(1000)
grown = server.memory() - before
if server.is_sanitized():
    print("skip the sanitizer keeps what is freed, and its own check of leaks counts at the end")
else:
    check(grown < 1024, f"a thousand requests leave the memory as it was ({grown} KiB)", grown)
check(server.end() == 0, "SIGTERM ends it with exit 0")

# ---- limits ------------------------------------------------------------------------------------------
server = Server("--body-limit", "1024", "--pixel-limit", "100", "--time-limit", "1", "--requests", "1", "--connections", "20")
refused(server, 413, "a body above the limit", "POST", "/predict", bytes(2000), says="1024 are accepted")
connection = server.connect()
connection.request("POST", "/predict", iter([bytes(800), bytes(800)]), {"Content-Type": "image/x"}, encode_chunked=True)
answer = connection.getresponse()
check(answer.status == 413 and sentence_of(answer.read()), "and one without a length", answer.status)
client = server.socket()
client.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/x\r\nTransfer-Encoding: chunked\r\n\r\n")
try:
    for i in range(100):
        client.sendall(b"400\r\n" + bytes(1024) + b"\r\n")
        time.sleep(0.002)
    is_closed = client.recv(100) == b""
except OSError:
    is_closed = True
check(is_closed, "and which goes on for ever is cut off")
refused(server, 422, "a picture above the limit", "POST", "/predict", b"P6 11 10 255\n" + bytes(330), says="pixels")
check(server.ask("POST", "/predict", b"P6 10 10 255\n" + bytes(300))[0] == 200, "one at the limit is answered")
client = server.socket()
client.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: image/x\r\nContent-Length: 9999\r\n\r\n")
check(b" 413 " in client.recv(4096).split(b"\r\n")[0], "a client that asks first is refused before it sends")


def seconds_until_closed(sentence, start, drip):
    client = server.socket()
    began = time.time()
    client.sendall(start)
    try:
        while time.time() - began < 20:
            client.sendall(drip)
            time.sleep(0.1)
            client.setblocking(False)
            try:
                if client.recv(1000) == b"":
                    break
            except BlockingIOError:
                pass
            client.setblocking(True)
    except OSError:
        pass
    took = time.time() - began
    check(0.8 < took < 8, f"{sentence} is cut off ({took:.1f} s)", took)


seconds_until_closed("a head that drips", b"GET / HTTP/1.1\r\n", b"X")
seconds_until_closed("a body that drips", head, b"x")
check(server.ask("POST", "/predict", b"P6 10 10 255\n" + bytes(300))[0] == 200, "then its place is free again")
clients = [server.socket() for _ in range(30)]
time.sleep(0.1)
[client.close() for client in clients]
check(server.is_alive(), "more connections than are taken wait")
check(server.end() == 0, "it ends while clients are connected")

# ---- the end -------------------------------------------------------------------------------------------
server = Server()
client = server.socket()
client.sendall(head + first[:20])
time.sleep(0.2)
server.process.send_signal(signal.SIGTERM)
time.sleep(0.3)
client.sendall(first[20:])
said = b""
while chunk := client.recv(65536):
    said += chunk
check(said.startswith(b"HTTP/1.1 200 ") and b'"predictions"' in said and b"Connection: close" in said,
      "a request that has begun is finished after SIGTERM", said[:200])
check(server.process.wait(60) == 0, "and then it ends with exit 0")
try:
    server.socket()
    is_open = True
except OSError:
    is_open = False
check(not is_open, "nobody listens any more")

# ---- tokens --------------------------------------------------------------------------------------------
token = "correct-horse-battery"
open("token.txt", "w").write(token + "\n")
os.chmod("token.txt", 0o600)
for server in Server("--token-file", "token.txt"), Server(environment={"TANDEM_TOKEN": token}):
    more = refused(server, 401, "without the token", "POST", "/predict", first, says="Bearer")
    check(more.get("WWW-Authenticate") == "Bearer", "how it is sent", more)
    refused(server, 401, "with another one", "GET", "/model", headers={"Authorization": f"Bearer {token}x"})
    refused(server, 401, "with a part of it", "GET", "/model", headers={"Authorization": f"Bearer {token[:-1]}"})
    refused(server, 401, "with another scheme", "GET", "/model", headers={"Authorization": f"Basic {token}"})
    check(server.ask("POST", "/predict?top=3", first, {"Authorization": f"Bearer {token}", "Host": "any.example"})[1] == wanted[names[0]],
          "with the token, by whatever name")
    check(server.ask("GET", "/")[0] == 200 and server.is_alive(), "page and health need none")
    check(server.end() == 0, "it ends")

finish()
