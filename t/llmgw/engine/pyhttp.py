"""An engine that speaks HTTP/1.1: for proxy_pass.

It answers every request, after a delay, with its own name and the length of
the request's body; with 200, or with the status in `fails`.  With `breaks` it
stops in the middle of the body; with `once` it closes a connection at the
second request.  While `open` is not set it answers nothing.  `close` ends its
connections, too.  It counts connections and requests, and `heard` has the
headers of each.
"""

import contextlib
import http.server
import socket
import threading
import time


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        with self.server.engine.lock:
            self.server.engine.connections += 1
            self.server.engine.kept.add(self.connection)
        self.answered = 0

    def finish(self):
        with self.server.engine.lock:
            self.server.engine.kept.discard(self.connection)
        super().finish()

    def _answer(self):
        engine = self.server.engine
        engine.heard.append(self.headers)
        size = int(self.headers.get("content-length") or 0)
        self.rfile.read(size)
        if engine.once and self.answered:
            self.close_connection = True
            return
        self.answered += 1
        with engine.lock:
            engine.active += 1
            engine.started += 1
            engine.peak = max(engine.peak, engine.active)
        engine.open.wait(60)
        time.sleep(engine.delay)
        with engine.lock:
            engine.active -= 1
        body = f"{engine.name} {size}".encode()
        self.send_response(engine.fails or 200)
        self.send_header("content-length", str(len(body) + engine.breaks))
        self.end_headers()
        self.close_connection |= engine.breaks
        self.wfile.write(body)

    do_GET = do_POST = do_OPTIONS = _answer

    def log_message(self, *_):
        pass


class HttpEngine:
    def __init__(self, port, name, delay=0.0):
        self.name, self.delay = name, delay
        self.fails, self.breaks, self.once = None, False, False
        self.active = self.started = self.peak = self.connections = 0
        self.open = threading.Event()
        self.open.set()
        self.kept, self.heard = set(), []
        self.lock = threading.Lock()
        self.target = f"127.0.0.1:{port}"
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", port), _Handler)
        self.server.daemon_threads = True
        self.server.engine = self
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.open.set()
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()
        with self.lock:
            for connection in self.kept:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
