# Serves the files of a folder over HTTP on loopback, by the last part of the path alone, so that it can stand for
# a publisher, a mirror or a proxy: weights_server.py FOLDER PORT_FILE LOG [SECONDS]. The port goes to PORT_FILE once it
# listens; each request is a line of LOG. SECONDS pass in the middle of each file.
import http.server
import os
import sys
import time

folder, port_file, log = sys.argv[1:4]
pause = float(sys.argv[4]) if len(sys.argv) > 4 else 0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = os.path.join(folder, os.path.basename(self.path))
        with open(log, "a") as out:
            out.write(self.path + "\n")
        if not os.path.isfile(path):
            self.send_error(404)
            return
        with open(path, "rb") as file:
            body = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        time.sleep(pause)
        self.wfile.write(body[len(body) // 2 :])

    def log_message(self, *unused):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".tmp", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(port_file + ".tmp", port_file)
server.serve_forever()
