"""What the clients of `tandem predict --serve` in this folder share: a server, questions, and how to say
ok or not ok. Their command line is TANDEM MODEL PICTURES."""
import atexit, http.client, json, os, signal, socket, struct, subprocess, sys, time, zlib

tandem, model, folder = sys.argv[1:4]
names = sorted(os.listdir(folder))
pictures = {name: open(os.path.join(folder, name), "rb").read() for name in names}
first = pictures[names[0]]
n_failed = 0


def check(is_right, sentence, found=""):
    global n_failed
    n_failed += not is_right
    print(f"{'ok' if is_right else 'not ok'} - {sentence}{'' if is_right else f' ({found})'}", flush=True)


class Server:
    def __init__(self, *options, environment={}):
        self.process = subprocess.Popen([tandem, "predict", model, "--serve", "0", "--threads", "2", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        atexit.register(self.process.kill)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), (self.url, self.process.stderr.read())
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, headers={}):
        """status, bytes, headers of one request on a connection of its own."""
        connection = self.connect()
        connection.request(method, path, body, {"Content-Type": "image/x-portable-pixmap", **headers} if body is not None else headers)
        answer = connection.getresponse()
        said = answer.status, answer.read(), dict(answer.getheaders())
        connection.close()
        return said

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def say(self, *pieces, pause=0.0):
        """All that comes back on a connection of its own until it ends, or is silent for 5 s."""
        client, said = self.socket(), b""
        client.settimeout(5)
        try:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(pause)
            while chunk := client.recv(65536):
                said += chunk
        except OSError:
            pass
        client.close()
        return said

    def open(self):
        """Requests that are there, but for the one that asks."""
        return json.loads(self.ask("GET", "/healthz")[1])["open"] - 1

    def is_alive(self):
        return self.process.poll() is None and self.ask("GET", "/healthz")[0] == 200

    def memory(self):
        text = open(f"/proc/{self.process.pid}/status").read()
        return int(text.split("VmRSS:")[1].split()[0])

    def is_sanitized(self):
        """Then its memory is the sanitizer's, terabytes of addresses."""
        return self.held() > 1 << 40

    def held(self):
        """Bytes of addresses."""
        text = open(f"/proc/{self.process.pid}/status").read()
        return int(text.split("VmSize:")[1].split()[0]) << 10

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def form(parts, boundary="x-boundary"):
    body = b"".join(f'--{boundary}\r\nContent-Disposition: form-data; name="picture"; filename="{name}"\r\n'
                    f"Content-Type: application/octet-stream\r\n\r\n".encode() + content + b"\r\n"
                    for name, content in parts)
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def told(*arguments, **how):
    return subprocess.run([tandem, "predict", model, *arguments], capture_output=True, **how)


def sentence_of(body):
    value = json.loads(body)
    return value["error"]["message"] if list(value) == ["error"] else None


def refused(server, status, sentence, method, path, body=None, headers={}, says=""):
    got, said, more = server.ask(method, path, body, headers)
    text = sentence_of(said)
    check(got == status and text and says in text and json.loads(said)["error"]["status"] == status, sentence, (got, said))
    return more


def png(side):
    """A white square of one bit a pixel: small as a file."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    packer, row = zlib.compressobj(9), b"\0" + b"\xff" * ((side + 7) // 8)
    rows = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
            + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def until(happens, seconds):
    """Does it happen within that time?"""
    end = time.time() + seconds
    while time.time() < end:
        if happens():
            return True
        time.sleep(0.05)
    return False


def finish():
    sys.exit(n_failed > 0)
