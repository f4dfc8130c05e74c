"""Asks a server of `tandem predict --serve` for more than it should give; test_serve_hostile.sh calls it.

    serve_hostile.py TANDEM MODEL PICTURES     starts servers of its own, says ok / not ok
"""
import json, os, resource, signal, socket, threading, time

from serve_ask import *

bomb = png(10000)  # 12 KB, 100 million pixels
bombs, headers = form((f"{n}.png", bomb) for n in range(256))
endless = "--request-pixel-limit", "1000000000000"
wanted = told("-", "--json", input=first).stdout
post = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/x\r\n"
sized = post + b"Content-Length: %d\r\n\r\n"


def send_bombs(server):
    client = server.socket()
    client.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x-boundary\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(bombs) + bombs)
    return client


def timed(ask):
    began = time.time()
    return ask(), time.time() - began


# ---- a pause, which the rest of this file is for -------------------------------------------------
patient = Server()
paused = patient.socket()
paused.sendall(sized % len(first) + first[:20])
threading.Timer(13, lambda: paused.sendall(first[20:])).start()

# ---- pixels and time of a request ----------------------------------------------------------------
server = Server()
got, took = timed(lambda: server.ask("POST", "/predict", bombs, headers))
check(got[0] == 413 and "400000000 pixels" in sentence_of(got[1]) and took < 10, "a form of 256 bombs is refused before it is decoded", got)
many, form_headers = form((f"{n}.ppm", first) for n in range(200))
check(server.ask("POST", "/predict", many, form_headers)[0] == 200, "one of 200 pictures is answered")
check(server.end() == 0, "it ends")
server = Server("--pixel-limit", "64", "--request-pixel-limit", "200")
for n, status in (3, 200), (4, 413):
    body, form_headers = form([(str(i), first) for i in range(n)])
    got = server.ask("POST", "/predict", body, form_headers)
    check(got[0] == status, f"of 200 pixels {n} pictures of 64 are {'answered' if status == 200 else 'refused'}", got)
body, form_headers = form([("a", bomb)] + [(str(i), first) for i in range(3)])
check(server.ask("POST", "/predict", body, form_headers)[0] == 200, "a picture that is refused for itself costs the others nothing")
check(server.end() == 0, "it ends")

server = Server("--time-limit", "3", *endless)
got, took = timed(lambda: server.ask("POST", "/predict", bombs, headers))
check(got[0] == 503 and got[2].get("Retry-After") == "1" and "of 256 images" in sentence_of(got[1]) and took < 12,
      f"what is not answered in its time is refused ({took:.1f} s)", got[:2])
check(server.ask("POST", "/predict", first)[:2] == (200, wanted), "and the next one is answered")
early = server.socket()
early.sendall(sized % len(first) + first[:20])
time.sleep(1.5)
holder = send_bombs(server)
time.sleep(0.3)
early.sendall(first[20:])
said, took = timed(lambda: early.recv(65536))
check(b" 503 " in said[:20] and b"0 of 1 images" in said and took < 2.2, f"a request that waits behind others gets 503 in time ({took:.1f} s)", said)
said = server.say(sized % 100 + b"P6", pause=4)
check(b" 408 " in said[:20] and b"Connection: close" in said and b'"2 bytes of the body' in said, "a body that does not come gets 408", said)
said = server.say(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nP6", pause=4)
check(b" 404 " in said[:20], "and has the answer that its head has got", said)
holder.close()

# ---- the end -------------------------------------------------------------------------------------
holder = send_bombs(server)
until(lambda: server.open() == 1, 5)
time.sleep(0.3)
began = time.time()
server.process.send_signal(signal.SIGTERM)
said = holder.recv(65536)
check(b" 503 " in said[:20], "SIGTERM leaves the current images their time, and no more", said)
code = server.process.wait(60)
took = time.time() - began
check(code == 0 and took < 12, f"and ends with exit 0 ({took:.1f} s)", (code, took))

# ---- who hangs up --------------------------------------------------------------------------------
server = Server("--requests", "2", "--time-limit", "300", *endless)
holder = send_bombs(server)
check(until(lambda: server.open() == 1, 5), "a long request is there")
time.sleep(1)  # its first pictures are being decoded
waiting = server.socket()
waiting.sendall(sized % len(first) + first)
check(until(lambda: server.open() == 2, 5), "and one waits behind it")
got = server.ask("POST", "/predict", first)
check(got[0] == 503 and got[2].get("Retry-After") == "1" and sentence_of(got[1]), "one request too many gets 503 and Retry-After", got)
check(server.ask("GET", "/healthz")[0] == 200, "pages are answered meanwhile")
client = server.socket()
client.sendall(post + b"Expect: 100-continue\r\nContent-Length: 99\r\n\r\n")
check(b" 503 " in client.recv(4096).split(b"\r\n")[0], "before its body is sent, where it asks")
client.close()
waiting.close()
check(until(lambda: server.open() == 1, 3), "who hangs up while he waits loses his place")
holder.close()
check(until(lambda: server.open() == 0, 60), "so does who hangs up while he is served")
got, took = timed(lambda: server.ask("POST", "/predict", first))
check(got[:2] == (200, wanted) and took < 5, "and nobody waits for him", (got, took))
half = server.socket()
half.sendall(sized % len(bomb) + bomb)
half.shutdown(socket.SHUT_WR)
said = half.recv(65536)
check(b" 400 " in said[:20] and b"closed its side" in said, "a client that closes its half has disconnected, and can read that", said)
check(server.end() == 0, "it ends")

# ---- memory --------------------------------------------------------------------------------------
server = Server()
server.ask("POST", "/predict", first)
if server.is_sanitized():
    print("skip the sanitizer takes memory of its own")
else:
    held = server.held() + (64 << 20)
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (held, held))
    body, form_headers = form([("a", first), ("bomb", bomb), ("b", first)])
    got = server.ask("POST", "/predict", body, form_headers)
    answers = json.loads(got[1]).get("predictions", [{}] * 3)
    check(got[0] == 200 and "no memory" in answers[1].get("problem", "") and "top" in answers[0] and "top" in answers[2],
          "a picture that lacks memory is the only one that is not answered", got)
    refused(server, 503, "and alone it is refused", "POST", "/predict", bomb, says="no memory")
    open("bomb.png", "wb").write(bomb)
    path = os.path.join(folder, names[0])
    got = told(path, "bomb.png", path, "--json", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (250 << 20, 250 << 20)))
    check(got.returncode == 4 and ["problem" in a for a in json.loads(got.stdout)["predictions"]] == [False, True, False]
          and b"1 of 3 images lack memory; the first is bomb.png" in got.stderr, "so it is without a server, with exit 4", got)
check(server.end() == 0, "it ends")

# ---- heads that two programs read in two ways ------------------------------------------------------
length, chunked = b"Content-Length: %d\r\n" % len(first), b"Transfer-Encoding: chunked\r\n"
second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
for sentence, lines, status, says in (
        ("two lengths are refused", length + b"Content-Length: 0\r\n", 400, b"Content-Length is there twice"),
        ("also equal ones", length + length, 400, b"twice"),
        ("a length beside chunks", length + chunked, 400, b"exclude each other"),
        ("another encoding", b"Transfer-Encoding: gzip\r\n", 501, b"'gzip'"),
        ("one before chunks", b"Transfer-Encoding: gzip, chunked\r\n", 501, b"chunked is accepted"),
        ("a blank before the colon", b"Content-Length : 5\r\n", 400, b"character that none may have"),
        ("two hosts", length + b"Host: evil.example\r\n", 400, b"Host is there twice"),
        ("two tokens", length + b"Authorization: a\r\nauthorization: b\r\n", 400, b"twice")):
    said = patient.say(post + lines + b"\r\n" + first + second)
    check(said.startswith(b"HTTP/1.1 %d " % status) and says in said and b"Connection: close" in said and said.count(b"HTTP/1.1") == 1,
          sentence, said)
for sentence, request in (("a request without a host", b"GET /healthz HTTP/1.1\r\n\r\n"),
                          ("chunks of HTTP/1.0", b"POST /predict HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")):
    said = patient.say(request)
    check(b" 400 " in said[:20] and said.count(b"HTTP/1.1") == 1, f"{sentence} is refused once", said)
said = patient.say(b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
check(b" 4" in said[:12] and said.count(b"HTTP/1.1") == 1, "a head above 64 KiB is refused", said)
said = patient.say((sized % len(first) + first) * 2 + b"GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
check(said.count(wanted) == 2 and said.rfind(b" 404 ") > said.rfind(wanted), "requests in one piece are answered in order", said)
said = patient.say(b"HEAD /predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
check(b" 405 " in said[:20] and said.endswith(b"\r\n\r\n"), "HEAD has no body where it is refused", said)

# ---- forms -----------------------------------------------------------------------------------------
body, form_headers = form([(r"C:\new\a%22b%0D%0A.png", first), ("100%25.png", first)])
body = body.replace(b"100%25", b"100%25\xff\xfe")
got = json.loads(patient.ask("POST", "/predict", body, form_headers)[1])["predictions"]
check(got[0]["path"] == 'C:\\new\\a"b\r\n.png', "names are what browsers mean by them", got[0])
check(got[1]["path"].startswith("100%25"), "bytes that are no UTF-8 do no harm", got[1])
body, form_headers = form([(str(i), b"") for i in range(257)])
refused(patient, 400, "257 parts", "POST", "/predict", body, form_headers, "more than 256 parts")
body, form_headers = form([("none", b""), ("inner", b"--y\r\n\r\n--y--"), ("first", first)])
body = body.replace(b"application/octet-stream\r\n\r\n--y", b"multipart/mixed; boundary=y\r\n\r\n--y")
got = json.loads(patient.ask("POST", "/predict", body, form_headers)[1])["predictions"]
check("problem" in got[0] and "problem" in got[1] and "top" in got[2], "parts that are empty, or forms themselves, are no pictures", got)

named = b'Content-Disposition: form-data; name="picture"; filename="a.ppm"\r\n'
for sentence, heads, kind in (("a part with two names", named.replace(b"; filename", b'; name="other"; filename'), ""),
                              ("with two file names", named[:-2] + b'; filename="b.ppm"\r\n', ""),
                              ("with two dispositions", named + named, ""),
                              ("with two encodings", named + 2 * b"Content-Transfer-Encoding: binary\r\n", ""),
                              ("with a NUL in its name", named.replace(b"a.ppm", b"a\0.ppm"), "NUL"),
                              ("with a NUL elsewhere in its head", b"X: \0\r\n" + named, "NUL")):
    body = b"--x\r\n" + heads + b"\r\n" + first + b"\r\n--x--\r\n"
    refused(patient, 400, sentence, "POST", "/predict", body, {"Content-Type": "multipart/form-data; boundary=x"}, kind or "twice")
body = b"--x\r\n" + named + b"\r\n" + first + b"\r\n--x--\r\n"
refused(patient, 400, "a form with two boundaries", "POST", "/predict", body, {"Content-Type": "multipart/form-data; boundary=x; boundary=y"}, "or two")
check(patient.ask("POST", "/predict", 2 * body[:-5] + body[-5:], {"Content-Type": "multipart/form-data; boundary=x"})[0] == 200,
      "fields of one name are as many pictures")

# ---- connections that nobody uses ------------------------------------------------------------------
server = Server("--connections", "4")
idle = [server.socket() for _ in range(8)]
dripping = [server.socket() for _ in range(8)]
[client.sendall(b"GET / HTTP/1.1\r\nX: ") for client in dripping]
refused_ones = [server.socket() for _ in range(8)]
[client.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx") for client in refused_ones]
got, took = timed(lambda: server.ask("POST", "/predict", first))
check(got[0] == 200 and took < 12, f"where every place is taken they give way ({took:.1f} s)", got)
check(server.end() == 0, "it ends")

# ---- the pause is over -----------------------------------------------------------------------------
said = paused.recv(65536)
check(said.startswith(b"HTTP/1.1 200 ") and said.endswith(wanted), "a body that pauses for 13 s is answered", said)
check(patient.end() == 0, "it ends")
finish()
