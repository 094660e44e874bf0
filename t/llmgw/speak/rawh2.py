"""HTTP/2 by hand: requests that no gRPC client would send, and reading at a
chosen pace (a client that does not read gives no window back)."""

import socket
import struct
import time

import h2.config
import h2.connection
import h2.events
import h2.settings

from ..proc.wait import PATIENCE, QUICK, Stopwatch, TooLate


def frame(message, flag=0):
    """A gRPC message after its five-byte prefix."""
    return struct.pack(">BI", flag, len(message)) + message


def unframe(data):
    """The whole messages of a body, and the rest."""
    messages, at = [], 0
    while at + 5 <= len(data):
        flag, size = struct.unpack_from(">BI", data, at)
        if at + 5 + size > len(data):
            break
        messages.append(bytes(data[at + 5:at + 5 + size]))
        at += 5 + size
    return messages, bytes(data[at:])


class Answer:
    def __init__(self):
        self.headers, self.trailers = {}, {}
        self.data = bytearray()
        self.ended = False
        self.reset = None

    @property
    def grpc_status(self):
        value = self.trailers.get("grpc-status",
                                  self.headers.get("grpc-status"))
        return None if value is None else int(value)

    def get(self, name):
        return self.trailers.get(name, self.headers.get(name))


class _Connection(h2.connection.H2Connection):
    """h2 treats a GOAWAY as the end, but running streams go on after it."""

    def _receive_goaway_frame(self, frame):
        done = super()._receive_goaway_frame(frame)
        self.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        return done


class RawH2:
    """window: of a stream and of the connection, given back as it is read.
    tls: the TLS context, if any."""

    def __init__(self, target, window=65535, tls=None):
        host, port = target.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname=host)
        self.h2 = _Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False))
        self.h2.local_settings = h2.settings.Settings(initial_values={
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window,
            h2.settings.SettingCodes.ENABLE_PUSH: 0})
        self.h2.initiate_connection()
        if window > 65535:
            self.h2.increment_flow_control_window(window - 65535)
        self.answers = {}
        self.reading = True
        self.goaway = False
        self.owed = []          # windows not given back while not reading
        self.closed = False
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.settimeout(PATIENCE)
            self.sock.sendall(data)

    def request(self, path, body=b"", method="POST", headers=(), end=True,
                content_type="application/grpc"):
        """Sends headers and body; returns the stream's id."""
        head = [(":method", method), (":scheme", "http"), (":path", path),
                (":authority", "localhost")]
        if content_type:
            head += [("content-type", content_type), ("te", "trailers")]
        sid = self.h2.get_next_available_stream_id()
        self.answers[sid] = Answer()
        self.h2.send_headers(sid, head + list(headers),
                             end_stream=end and not body)
        self.flush()
        if body:
            self.send(sid, body, end)
        return sid

    def send(self, sid, body, end=True):
        view = memoryview(body)
        while view:
            room = min(self.h2.local_flow_control_window(sid),
                       self.h2.max_outbound_frame_size, len(view))
            if room == 0:
                if not self.pump(PATIENCE) or self.answers[sid].ended:
                    return      # refused before all of it was sent
                continue
            self.h2.send_data(sid, bytes(view[:room]),
                              end_stream=end and room == len(view))
            view = view[room:]
            self.flush()

    def cancel(self, sid):
        self.h2.reset_stream(sid, 8)
        self.flush()

    def pump(self, timeout):
        """Reads what comes within timeout; False: nothing came, or closed."""
        self.sock.settimeout(max(timeout, 0.001))
        try:
            data = self.sock.recv(1 << 18)
        except (socket.timeout, TimeoutError):
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.closed = True
            for answer in self.answers.values():
                answer.ended = True
            return False
        for event in self.h2.receive_data(data):
            self._on(event)
        self.flush()
        return True

    def _on(self, event):
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = True
            return
        answer = self.answers.get(getattr(event, "stream_id", None))
        if answer is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            answer.headers = dict(event.headers)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.data += event.data
            if self.reading and event.flow_controlled_length:
                self.h2.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id)
            elif event.flow_controlled_length:
                self.owed.append((event.flow_controlled_length,
                                  event.stream_id))
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.ended, answer.reset = True, event.error_code

    def resume(self):
        """Gives back the windows that were kept while not reading."""
        self.reading = True
        for size, sid in self.owed:
            self.h2.acknowledge_received_data(size, sid)
        self.owed = []
        self.flush()

    def wait(self, sid, timeout=PATIENCE, takes=QUICK):
        """The whole answer of a stream.  takes: seconds until more of any
        comes."""
        answer, deadline = self.answers[sid], time.monotonic() + timeout
        while not answer.ended:
            left, watch = deadline - time.monotonic(), Stopwatch(takes)
            if left <= 0:
                raise TooLate(f"no end of stream {sid} in {timeout} s")
            if not self.pump(left) and self.closed:
                break
            watch.over(f"more of stream {sid}")
        return answer
